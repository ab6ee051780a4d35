"""Fine-tunings with other epochs between those on outcomes, small: schedules, and what is kept."""

import pytest
import torch

from probnb_book import interleaved, pause, studies
from probnb_book.interleaved import ROWS, Distilled, Interleaved


class Data:
    outcomes = torch.tensor([0.0, 1.0, 1.0])
    classes = 2


def test_other_targets_stand_in_every_third_epoch_from_the_first():
    said = torch.tensor([0.2, 0.5, 0.9])
    schedule = Interleaved(Distilled(), every=3)
    targets = [schedule(epoch, Data, lambda: said, 0) for epoch in range(1, 8)]
    assert [t is Data.outcomes for t in targets] == [False, True, True, False, True, True, False]
    assert torch.equal(targets[3], said)


@pytest.mark.parametrize("row, every", [(row, int(row[-1])) for row in ROWS if "m = " in row])
def test_every_row_ends_with_whole_rounds(row, every):
    schedule = ROWS[row]
    beside = [
        epoch
        for epoch in range(1, interleaved.EPOCHS + 1)
        if (schedule.calibrates(epoch) if row.startswith("cape") else (epoch - 1) % every == 0)
    ]
    assert beside == [*range(1, interleaved.EPOCHS + 1, every)]
    assert interleaved.EPOCHS % every == 0


def test_one_start_and_equal_epochs_on_outcomes(tmp_path, monkeypatch):
    monkeypatch.setattr(interleaved, "EPOCHS", 3)
    for row in [row for row in ROWS if row not in (pause.CONTROL, "cape_bin, m = 3")]:
        monkeypatch.delitem(ROWS, row)
    places = ["--results", str(tmp_path), "--runs", str(tmp_path / "runs"), "--device", "cpu"]
    studies.main(["interleaved", "--profile", "smoke", "--workers", "1", *places])
    table = pause.fine_tunings(None, [tmp_path])
    start = table[table["epoch"] == 0]
    assert start["mse_p"].nunique() == start["val_ce"].nunique() == 1 and len(start) == 2
    on = table[table["row"] == "cape_bin, m = 3"]
    assert on["calibration"].tolist() == [0, 1, 0, 0] and on["outcomes"].tolist() == [0, 0, 1, 2]
    control = table[table["row"] == pause.CONTROL]
    assert control["outcomes"].tolist() == [0, 1, 2, 3]
    # The epoch beside the outcomes moves the network, so that no later one is the control's.
    assert not set(on["mse_p"][1:]) & set(control["mse_p"][1:])
