from dataclasses import replace
from types import SimpleNamespace

import pytest

from probnb.experiment.plan import plan
from probnb.experiment.profiles import make_profile
from probnb.methods import METHODS
from probnb.training.targets import left_out
from probnb_book.ablations.cost import cost_of, passes
from probnb_book.data.faces import load_faces

SPLITS = load_faces("linear", size=8, n=120)
N = len(SPLITS.train)


def fit(epochs, best=0):
    return SimpleNamespace(history=[None] * (epochs + 1), best_epoch=best)


def test_a_training_without_an_end_is_charged_as_if_it_had_patience():
    (ce,) = plan(["ce"], make_profile("quick"))["ce"]
    assert passes(ce, fit(36, 9), SPLITS, 4) == 13 * N
    assert passes(ce, fit(36, 35), SPLITS, 4) == 36 * N
    assert passes(ce, fit(36, 9), SPLITS, 4, last=True) == 36 * N
    patient = replace(ce, recipe=replace(ce.recipe, patience=4))
    assert passes(patient, fit(13, 9), SPLITS, 4) == 13 * N
    cosine = replace(ce, recipe=replace(ce.recipe, schedule="cosine"))
    assert passes(cosine, fit(36, 9), SPLITS, 4) == 36 * N
    adversarial = replace(patient, recipe=replace(patient.recipe, adversarial=0.01))
    assert passes(adversarial, fit(13, 9), SPLITS, 4) == 26 * N


def test_teachers_and_starts_count_once_each():
    profile = make_profile("quick")
    jobs = plan(["ce", "cape_bin", "crossfit"], profile)
    (student,) = jobs["crossfit"]
    fits = {jobs["ce"][0]: fit(36, 6), student: fit(8)}
    fits |= {job: fit(3) for job in jobs["cape_bin"]} | {t: fit(10) for t in student.teachers}
    unit = 10 * N
    assert len(jobs["cape_bin"]) == 2
    assert cost_of(jobs["cape_bin"], fits, SPLITS, 4, unit) == pytest.approx(1 + 2 * 0.3)
    kept = sum(N - len(left_out(SPLITS, t.fold)) for t in student.teachers)
    assert kept == (METHODS["crossfit"].folds - 1) * N
    assert cost_of([student], fits, SPLITS, 4, unit) == pytest.approx(0.8 + kept / N)
