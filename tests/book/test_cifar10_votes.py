import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from probnb.calibrators import CALIBRATORS
from probnb.experiment.results import Results
from probnb.metrics.votes import Votes, check_votes
from probnb_book.cifar10 import votes as study

N, VOTERS = 400, 10


def made_up(n=N, seed=0):
    """Probabilities, votes of ten people, and predictions that are twice too sure."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 2, n)
    votes = check_votes(rng.binomial(VOTERS, p), np.full(n, VOTERS))
    return p, votes, expit(2 * (logit(p) + 0.3 * rng.normal(size=n)))


def test_one_vote_is_on_average_the_share_and_the_majority_is_none():
    _, votes, _ = made_up()
    ones = np.mean([study.soft_targets(votes, seed)["one vote"] for seed in range(400)], axis=0)
    assert np.abs(ones - votes.share).max() < 4.5 * 0.5 / np.sqrt(400)
    majority = study.soft_targets(votes)["majority"]
    clear = votes.share != 0.5
    assert np.array_equal(majority[clear], votes.share[clear] > 0.5) and set(majority) == {0, 1}


@pytest.mark.parametrize("name", study.MAPS)
def test_all_votes_are_a_row_each(name):
    _, votes, p_hat = made_up()
    z = logit(p_hat)
    of_row = np.repeat(np.arange(N), VOTERS)
    y = (np.tile(np.arange(VOTERS), N) < votes.ones[of_row]).astype(int)
    expected = CALIBRATORS[name]().fit(z[of_row], y).predict_proba(z)
    found = study.fit_soft(name, z, votes.share).predict_proba(z)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_each_half_is_judged_by_the_other():
    _, votes, p_hat = made_up()
    found = study.calibrate(p_hat, votes, seed=3, repeats=1, maps=("platt",), sizes=(50,))
    order = np.random.default_rng(np.random.SeedSequence([3, 0]).spawn(2)[0]).permutation(N)
    for few, test in ((order[:50], order[200:]), (order[200:250], order[:200])):
        fitted = study.fit_soft("platt", logit(p_hat[few]), votes.share[few])
        said = fitted.predict_proba(logit(p_hat[test]))[:, 1]
        terms = found["platt", "all votes", 50][0, test]
        np.testing.assert_allclose(terms, votes[test].squared_error(said), atol=1e-9)
    np.testing.assert_allclose(found[None][0], votes.squared_error(p_hat))


def test_the_majority_leaves_predictions_too_sure_and_votes_do_not():
    p, votes, p_hat = made_up(4000)
    how = {"maps": ("temperature",), "sizes": (100, None), "repeats": 3}
    mean = {k: v.mean(1) for k, v in study.calibrate(p_hat, votes, **how).items()}
    none = mean[None][0]
    votes_of, one, most = (mean["temperature", target, None] for target in study.TARGETS)
    assert none == pytest.approx(np.mean((p_hat - p) ** 2), abs=0.003)
    best = CALIBRATORS["temperature"]().fit(logit(p_hat), p > np.random.default_rng(1).random(4000))
    assert votes_of[1] == pytest.approx(best.temperature_, rel=0.1)
    assert most[1] < 0.7 * votes_of[1] and most[0] > votes_of[0] + 0.005
    assert one[0] == pytest.approx(votes_of[0], abs=0.001) and votes_of[0] < none - 0.005
    few = [mean["temperature", target, 100][0] for target in study.TARGETS]
    assert few[0] < few[1]


def test_differences_are_those_of_the_means_over_questions_and_seeds(monkeypatch):
    """Two questions and two seeds with the same test rows, out of order in the votes."""
    _, votes, p_hat = made_up(60)
    other = Votes(VOTERS - votes.ones, votes.counts)
    monkeypatch.setattr(study, "all_votes", lambda *_: {"a": votes, "b": other})
    monkeypatch.setattr(study, "MAPS", ("platt",))

    class Run:
        def __init__(self, task, seed):
            self.record = {"task": task, "seed": seed}

    ids = np.arange(60)[::-1]

    def read(run):
        shift = 0.1 * run.record["seed"]
        said = p_hat if run.record["task"] == "a" else 1 - p_hat
        table = {"id": ids, "split": "test", "ce": expit(logit(said[ids]) + shift)}
        return Results(pd.DataFrame(table), None, None)

    monkeypatch.setattr(study, "find_runs", lambda *_, task, **__: [Run(task, 0), Run(task, 1)])
    monkeypatch.setattr(study, "read_results", read)
    how = {"repeats": 2, "maps": ("platt",), "sizes": (20, None)}
    table = study.compare_targets("ferplus", "", "", "ce", replicates=200, **how)
    means = {key: [] for key in ("all votes", "majority", None)}
    for seed in (0, 1):
        for of, said in ((votes, p_hat), (other, 1 - p_hat)):
            moved = expit(logit(said[ids]) + 0.1 * seed)
            found = study.calibrate(moved, of[ids], seed, **how)
            for key, values in means.items():
                values.append(found[key and ("platt", key, 20)][0].mean())
    line = table.query("target == 'majority' and images == 20").set_index("less")
    everything, majority, nothing = (np.mean(v) for v in means.values())
    assert line.loc["all votes", "value"] == pytest.approx(majority - everything)
    assert line.loc["nothing", "value"] == pytest.approx(majority - nothing)
    assert line.loc["nothing", "mean"] == pytest.approx(majority)
    assert (table["units"] == 60).all() and (table["seeds"] == 2).all()
    assert set(table["images"]) == {20, 30} and (table["low"] < table["high"]).all()
    assert table.query("target == 'all votes'")["less"].eq("nothing").all()


def test_votes_of_the_questions(tmp_path):
    counts = np.zeros((6, 10), int)
    counts[:, 3], counts[:, 5] = np.arange(6), 50 - np.arange(6)
    (tmp_path / "cifar10h").mkdir()
    np.save(tmp_path / "cifar10h" / "counts.npy", counts)
    found = study.all_votes("cifar10h", tmp_path)
    assert list(found)[3] == "cat" and found["cat"].ones.tolist() == list(range(6))
    assert (found["dog"].counts == 50).all() and not found["ship"].ones.any()
