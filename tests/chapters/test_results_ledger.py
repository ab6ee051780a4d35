"""The ledger: 109 claims, and verdicts that follow the numbers in both directions."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probnb.chapters.results import evidence, figures, ledger
from probnb.chapters.results.rules_runs import chance_bound
from probnb.chapters.results.sources import CAPE, PAPER_ROWS, Measured, Printed
from probnb.chapters.results.verdicts import RULES, VERDICTS, Verdict, judge
from probnb.metrics import ece
from probnb.scenarios import SCENARIOS

HOLDS, OPEN, AGAINST, UNTESTABLE = VERDICTS


class Told(Printed):
    """A source that says what it is told: values by scenario and method, of every metric."""

    def __init__(self, values):
        self._values = values
        self.tasks = tuple(values)

    def value(self, task, method, metric):
        return self._values.get(task, {}).get(method, float("nan"))

    def clear(self, task, a, b, metric):
        return self.sign(task, a, b, metric)


def told(**by_method):
    """The same values in all five scenarios."""
    rows = dict.fromkeys(PAPER_ROWS, 3.0) | by_method
    return Told({task: dict(rows) for task in SCENARIOS})


def ask(source, words):
    name, *arguments = words.split()
    return RULES[name](source, *arguments)


def test_every_claim_has_a_verdict_and_a_reason_without_any_run():
    table = ledger.ledger(evidence.Evidence([]))
    assert table["number"].tolist() == list(range(1, 110))
    assert set(table["verdict"]) == set(VERDICTS)
    assert table["reason"].str.len().gt(5).all()
    assert (table.loc[table["decides"] != "text", "rule"] != "").all()
    text = ledger.count_sentence(table)
    assert sum(int(n) for n in re.findall(r"(\d+) (?:holds|not|contra|cannot)", text)) == 109
    page = ledger.ledger_html(table)
    assert page.count('class="claim"') == 109 and "<script" not in page


def test_rules_and_checks_exist():
    table = ledger.claims()
    for words in [*table["printed"], *table["measured"]]:
        assert not words or words.split()[0] in RULES, words
    root = Path(__file__).resolve().parents[1]
    for check in table["check"]:
        if check:
            file, function = check.split("::")
            (path,) = root.rglob(file)
            assert f"def {function}(" in path.read_text(), check
    typed = table["decides"] == "text"
    assert table.loc[typed, "verdict"].isin(VERDICTS).all()
    assert (table.loc[typed & (table["verdict"] == HOLDS), "check"] != "").sum() > 20
    assert (table.loc[~typed, "verdict"] == "").all()  # computed, never typed


@pytest.mark.parametrize(
    ("words", "good", "bad"),
    [
        ("below platt ce mse_p every", {"platt": 2.0}, {"platt": 4.0}),
        ("below cape ce mse_p every", {"cape_bin": 2.0}, {"cape_bin": 4.0, "cape_kernel": 4.0}),
        ("below cape ce auc every", {"cape_bin": 4.0}, {"cape_bin": 2.0, "cape_kernel": 2.0}),
        ("on_par cape resampled mse_p every", {"resampled": 3.0}, {"resampled": 1.0}),
        ("cells", dict.fromkeys(CAPE, 1.0), dict.fromkeys(CAPE, 5.0)),
        ("unbeaten mse_p", {}, {"ensemble": 1.0}),
        ("leads mse_p,kl_p", {"cape_bin": 1.0}, {"platt": 1.0}),
        ("unbeaten_in brier every", {"cape_kernel": 1.0}, {"mmce": 1.0}),
        ("rank_within ensemble brier linear 0.3", {"ensemble": 1.0}, {"ensemble": 9.0}),
        ("first_half ece every", dict.fromkeys(CAPE, 1.0), {"cape_bin": 9.0}),
        ("little_gain skewed mse_p", {"platt": 1.0}, {"ce": 9.0}),
        ("similar brier linear", {"mmce": 3.1}, {"mmce": 9.0}),
        ("any_below platt,ensemble ce mse_p most", {"ensemble": 1.0}, {"ce": 1.0}),
        ("best_case", {"resampled": 1.0}, {"mmce": 2.0}),
        ("robust_rank mmce,focal,entropy", {"mmce": 1.0}, {"focal": 1.0}),
        ("same cape ce mse_p skewed", {}, {"cape_bin": 1.0}),
    ],
)
def test_rules_in_both_directions(words, good, bad):
    assert ask(told(**good), words).verdict == HOLDS
    assert ask(told(**bad), words).verdict == AGAINST
    if "real" not in words:
        assert ask(Told({}), words) is None


def test_equal_numbers_are_not_better_in_print():
    assert ask(told(), "below platt ce mse_p every").verdict == AGAINST


def test_printed_tables_say_what_is_known_of_them():
    printed = Printed()
    assert "best in 15 of 30 cells" in ask(printed, "cells").reason
    assert ask(printed, "cells").verdict == AGAINST
    assert ask(printed, "unbeaten_in brier real").verdict == HOLDS
    assert "10 of 11" in ask(printed, "first_half ece real").reason
    assert "sigmoid 5.17 / 5.34" in ask(printed, "best_case").reason
    assert "0.80" in ask(printed, "follows mse_p 0.75").reason
    assert ask(printed, "rate 2096 13582 0.1") == Verdict(AGAINST, "2,096 of 13,582 are 15%")


def test_chance_alone_stays_below_its_bound():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.4, 0.6, 600)
    values = [100 * ece(rng.random(600) < p, p) for _ in range(200)]
    assert 0.5 * chance_bound(600, 15) < np.mean(values)
    assert np.max(values) < chance_bound(600, 15) * 1.1


@pytest.mark.parametrize(
    ("printed", "measured", "decides", "expected"),
    [
        (HOLDS, AGAINST, "print", HOLDS),
        (HOLDS, None, "runs", OPEN),
        (AGAINST, None, "runs", AGAINST),
        (None, None, "runs", OPEN),
        (AGAINST, HOLDS, "runs", OPEN),
        (HOLDS, HOLDS, "runs", HOLDS),
        (HOLDS, AGAINST, "runs", AGAINST),
        (AGAINST, OPEN, "runs", AGAINST),
        (None, HOLDS, "runs", HOLDS),
    ],
)
def test_two_answers_make_one(printed, measured, decides, expected):
    answers = [v and Verdict(v, "because") for v in (printed, measured)]
    assert judge(*answers, decides).verdict == expected


@pytest.mark.parametrize(("shift", "expected"), [(0.1, HOLDS), (2.0, AGAINST)])
def test_two_trainings_decide_and_one_does_not(tmp_path, store, shift, expected):
    shifts = {"platt": shift}
    store(tmp_path / "one", shifts=shifts)
    for seed in (0, 1):
        store(tmp_path / "two", seed=seed, shifts=shifts, n=2000)
    one, two = (evidence.gather([tmp_path / name], 40) for name in ("one", "two"))
    words = "below platt ce mse_p linear"
    assert ask(Measured(one), words).verdict == OPEN
    assert ask(Measured(two), words).verdict == expected
    assert ask(Measured(two, photographs=False), words) is None  # drawn faces do not count
    assert "not run yet" in ask(Measured(two), "below platt ce mse_p every").reason
    assert ask(Measured(two), "overfits").verdict == HOLDS
    assert ask(Measured(two), "memorises").verdict == HOLDS
    assert ask(Measured(two), "falls_early").verdict == HOLDS
    assert ask(Measured(two), "ends_badly").verdict == HOLDS
    assert ask(Measured(two), "ends_badly mse_p 9").verdict == OPEN
    assert ask(Measured(two), "calibrated ce").verdict == AGAINST
    assert ask(Measured(two), "calibrated resampled").verdict == HOLDS
    assert ask(Measured(two), "goes_on_falling").verdict == AGAINST
    assert ask(Measured(two), "stays mse_p cape_bin 0.6").verdict == HOLDS
    assert ask(Measured(two), "stays mse_p cape_bin 0.4").verdict == AGAINST
    assert ask(Measured(two), "prevents mse_p cape_bin 0.6").verdict == OPEN  # its control does too


def test_figures_draw_what_there_is(tmp_path, store):
    store(tmp_path)
    some, none = evidence.gather([tmp_path], 10), evidence.Evidence([])
    assert len(figures.glance_figure(some)) == len(figures.glance_figure(none)) == 5
    assert len(figures.curves_figure(some)) == len(figures.reliability_figure(some)) == 4
    assert len(figures.overfitting(some, "linear")) == 4 and len(figures.psi_figure()) == 5
    assert figures.overfitting(some, "discrete") == figures.curves_figure(none) == []
    assert figures.outcomes_figure(none) == figures.reliability_figure(none) == []
    table = pd.DataFrame([{"source": "published", "scenario": "linear", "weakness": 1.0,
                           "platt": 0.5, "cape": 0.7}])  # fmt: skip
    assert len(figures.gain_figure(table)) == 2
