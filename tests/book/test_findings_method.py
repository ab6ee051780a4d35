"""Guards of the sentences of book/method: twenty-one trainings, seven seeds on three machines."""

import pytest

from probnb_book import storage

from .pages import RESULTS

TABLE = storage.read(RESULTS, "machines", "method")
KEYS = ["machine", "seed", "start", "targets"]
ERROR = TABLE.groupby([*KEYS, "epoch"])["MSE_p"].first().unstack("epoch")
CALIBRATION, HALF, OUTCOMES = "calibration only", "every second epoch", "outcomes only"


def at(epoch, start):
    """The error at an epoch, by training and kind of targets."""
    return ERROR[epoch].unstack("targets").xs(start, level="start")


END = ERROR.columns.max()
EARLY = at(0, "early stop")[CALIBRATION]


def test_seven_seeds_on_each_of_three_machines():
    assert TABLE.groupby("machine")["seed"].nunique().tolist() == [7, 7, 7]
    # an instruction set is another training: no two machines have one result in common
    assert EARLY.nunique() == len(EARLY) == 21


def test_from_the_early_stop():
    end, change = at(END, "early stop"), at(END, "early stop").div(EARLY, axis=0)
    assert change[OUTCOMES].min() > 1 and change[OUTCOMES].mean() == pytest.approx(2.5, abs=0.2)
    assert change[CALIBRATION].mean() == pytest.approx(1, abs=0.05)
    # "a third lower or higher"
    assert 0.6 < change[CALIBRATION].min() < 0.7 and 1.3 < change[CALIBRATION].max() < 1.4
    assert (end[CALIBRATION] / end[OUTCOMES]).max() < 0.65  # "well below"


def test_from_the_last_epoch():
    end, start = at(END, "last epoch"), at(0, "last epoch")
    assert (start.min(axis=1) > 1.9 * EARLY).all()  # "has overfitted"
    assert (end[CALIBRATION] / start[CALIBRATION]).max() < 0.7
    assert (end[CALIBRATION] / end[OUTCOMES]).mean() == pytest.approx(0.5, abs=0.03)
    assert (end[CALIBRATION] / end[HALF]).max() < 0.8
    half = end[HALF] / end[OUTCOMES]
    assert half.min() < 0.9 and half.max() > 1.1  # "depends on the training"
    back = end[CALIBRATION] / EARLY
    assert back.mean() > 1.5 and (back < 1.05).sum() == (back < 1.1).sum() == 2


def test_figures_of_training_faces():
    """The colours stay together, or come together again, on calibration alone."""
    memory = TABLE.groupby([*KEYS, "epoch"])["memorised"].first().unstack("epoch")
    last = memory[END - 1].unstack("targets")  # before the last epoch, as the figures show it
    early, late = (last.xs(start, level="start") for start in ("early stop", "last epoch"))
    assert (early[CALIBRATION] < early[OUTCOMES] / 2).all() and early[OUTCOMES].min() > 0.1
    assert (late[CALIBRATION] < 0.8 * late[OUTCOMES]).all()
    first = memory[0].unstack("targets").xs("last epoch", level="start")
    assert (late[CALIBRATION] < 0.7 * first[CALIBRATION]).all()  # "forget part of what happened"


def test_empirical_probabilities_of_the_starts():
    error = TABLE.groupby(["machine", "seed", "start"])["p_emp_error"].first().unstack("start")
    assert error["early stop"].max() < 15 and error["last epoch"].min() > 30
    assert (error["last epoch"] > 2.4 * error["early stop"]).all()
