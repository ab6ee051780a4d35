"""Fine-tunings epoch by epoch, by hand: what counts as equally many epochs."""

import numpy as np
import pandas as pd
import pytest

from probnb_book import pause, storage


def made(seeds=4, waits=True):
    """Errors that depend on the epochs on outcomes alone, or on all epochs."""
    lines = []
    for seed, row in ((seed, row) for seed in range(seeds) for row in pause.ROWS[:2]):
        seen = 0
        for epoch in range(9):
            calibration = int(row == "cape_bin" and epoch % 3 == 1)
            seen += epoch > 0 and not (calibration and waits)
            error = 2 + 0.1 * seed + 0.3 * seen
            facts = ("linear", 32, seed, row, 0.01, 15 if calibration else np.nan)
            lines.append((*facts, epoch, calibration, 1 + 0.1 * (epoch - 2) ** 2, error / 100))
    table = pd.DataFrame(lines, columns=pause.COLUMNS)
    return table.assign(bins=np.where(table["row"] == "cape_bin", 15, np.nan))


@pytest.fixture
def read(tmp_path, monkeypatch):
    def through_a_file(table):
        shuffled = table.sample(frac=1, random_state=0)
        storage.keep(tmp_path, "pause", {"made": ({}, {"pause": shuffled})})
        return pause.fine_tunings(pd.DataFrame(), [tmp_path])

    return through_a_file


def test_epochs_on_outcomes_are_counted_along_each_training(read):
    table = read(made())
    cape = table[(table["row"] == "cape_bin") & (table["seed"] == 0)]
    assert cape["epoch"].tolist() == [*range(9)]
    assert cape["outcomes"].tolist() == [0, 0, 1, 2, 2, 3, 4, 4, 5]
    control = table[table["row"] == pause.CONTROL]
    assert (control["outcomes"] == control["epoch"]).all()


def test_a_pause_is_ahead_at_equal_epochs_and_nowhere_at_equal_epochs_on_outcomes(read):
    table = read(made())
    assert pause.less_control(table, "outcomes")["less"].abs().max() < 1e-9
    same = pause.less_control(table, "epoch").set_index(["seed", "epoch"])["less"]
    assert (same < 0).all()
    assert same[0, 8] == pytest.approx(100 * ((2 + 0.3 * 5) / (2 + 0.3 * 8) - 1))


def test_what_does_not_wait_is_level_at_equal_epochs(read):
    table = read(made(waits=False))
    assert pause.less_control(table, "epoch")["less"].abs().max() < 1e-9
    assert (pause.less_control(table, "outcomes")["less"] > 0).any()


def test_kept_by_validation_and_in_hindsight(read):
    table = read(made())
    assert set(pause.kept(table)["epoch"]) == {2}
    hindsight = pause.kept(table, by="error")
    assert (hindsight["outcomes"] == 0).all() and len(hindsight) == 8


def test_over_seeds(read):
    gaps = pause.over_seeds(pause.less_control(read(made())), ["scenario", "epoch"])
    assert gaps["seeds"].eq(4).all() and len(gaps) == 8 and (gaps["high"] < 0).all()
