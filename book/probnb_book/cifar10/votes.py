"""What a calibrator should be fitted to where several people judged each image: all their votes.

``python -m probnb_book votes --data-dir DATA`` fits the calibrators to stored
predictions for pictures that no training saw, and keeps the table in the study ``votes``.
"""

import argparse
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from probnb import store
from probnb.calibrators import CALIBRATORS, logits_from_probabilities
from probnb.experiment.results import on_test
from probnb.metrics import difference
from probnb.metrics.votes import check_votes

from ..data import voted_images
from ..storage import find_runs, keep, read_results

MAPS = ("temperature", "platt", "beta", "isotonic")
TARGETS = ("all votes", "one vote", "majority")
SIZES = (100, 300, 1000, None)
"""Pictures to calibrate on; None is half of the test pictures."""


def soft_targets(votes, seed=0):
    """Return what a calibrator may be fitted to, by name of `TARGETS`, for each row.

    Parameters
    ----------
    votes : probnb.metrics.votes.Votes
        Of the rows.
    seed : int or SeedSequence, default=0
        Seed of the one vote; it also decides a tie of the majority.

    Returns
    -------
    dict of str to ndarray of shape (n,)
        In [0, 1].

    Examples
    --------
    >>> found = soft_targets(check_votes([1, 9], [10, 10]))
    >>> found["all votes"].tolist(), found["majority"].tolist()
    ([0.1, 0.9], [0.0, 1.0])
    """
    one = np.random.default_rng(seed).random(len(votes.ones)) < votes.share
    majority = np.where(votes.share == 0.5, one, votes.share > 0.5)
    return dict(zip(TARGETS, (votes.share, one.astype(float), majority.astype(float))))


def fit_soft(name, logits, soft):
    """Fit a calibrator of `CALIBRATORS` to soft targets: a row for each outcome, weighed."""
    y = np.repeat([1, 0], len(soft))
    weights = np.concatenate([soft, 1 - soft])
    return CALIBRATORS[name]().fit(np.concatenate([logits, logits]), y, sample_weight=weights)


def calibrate(p_hat, votes, seed=0, repeats=3, maps=MAPS, sizes=SIZES):
    """Calibrate one half of the rows' predictions on the other, again and again.

    Parameters
    ----------
    p_hat : ndarray of shape (n,)
        Predictions by a network that saw none of the rows.
    votes : probnb.metrics.votes.Votes
        Of the rows, two or more each.
    seed : int, default=0
        Seed of halves and votes.
    repeats : int, default=3
        How many times the rows are halved; each half is then judged by the other.
    maps, sizes : tuple
        See `MAPS` and `SIZES`.

    Returns
    -------
    dict of tuple to ndarray of shape (2, n)
        By calibrator, target and number of rows to fit to (None all of the half): for each row the
        unbiased estimate of its squared error and the temperature, if any, means over repeats;
        ``None`` is the key of the predictions as they are.
    """
    z, n = logits_from_probabilities(p_hat), len(p_hat)
    found = {key: np.zeros((2, n)) for key in product(maps, TARGETS, sizes)}
    for repeat in range(repeats):
        words = np.random.SeedSequence([seed, repeat]).spawn(2)
        halves = np.split(np.random.default_rng(words[0]).permutation(n), [n // 2])
        targets = soft_targets(votes, words[1])
        for fit_to, test in (halves, halves[::-1]):
            for (name, target, size), terms in found.items():
                few, soft = fit_to[:size], targets[target]
                fitted = fit_soft(name, z[few], soft[few])
                off = votes[test].squared_error(fitted.predict_proba(z[test])[:, 1])
                warm = np.full(len(off), getattr(fitted, "temperature_", np.nan))
                terms[:, test] += np.array([off, warm]) / repeats
    return {None: np.stack([votes.squared_error(p_hat)] * 2), **found}


def all_votes(data, data_dir):
    """Read every vote of FER+ or CIFAR-10H: ``(columns of `Votes` by question)``, in row order."""
    if data == "ferplus":
        counts, names = voted_images.read_ferplus(data_dir)[1], voted_images.EMOTIONS
        asked = {q: voted_images.QUESTIONS[q] for q in ("neutral", "happiness", "negative")}
    else:
        counts = np.load(next((Path(data_dir) / data).glob("*counts.npy")), allow_pickle=False)
        names, asked = voted_images.CLASSES, {q: (q,) for q in voted_images.CLASSES}
    columns = {q: [names.index(name) for name in yes] for q, yes in asked.items()}
    return {q: check_votes(counts[:, c].sum(1), counts.sum(1)) for q, c in columns.items()}


def compare_targets(data, data_dir, folder, row="ce", replicates=1000, **how):
    """Compare what calibrators are fitted to, over the questions and seeds of a data set.

    Parameters
    ----------
    data : {"ferplus", "cifar10h"}
        The data set.
    data_dir : path-like
        The votes, as `probnb_book.data.voted_images` reads them.
    folder : path-like
        Folder of results, for the predictions of test rows.
    row : str, default="ce"
        Whose predictions are calibrated.
    replicates : int, default=1000
        Resamples of the test rows where seeds share them.
    **how
        For `calibrate`.

    Returns
    -------
    DataFrame
        By ``calibrator``, ``target`` and ``images`` to fit to, means over questions and seeds of
        MSE_p (``mean``) and ``temperature``, and the fields of `probnb.metrics.Difference` in MSE_p
        from what ``less`` says: ``"nothing"``, the predictions as they are, or ``"all votes"``.
    """
    seeds, ids = {}, {}
    for question, votes in all_votes(data, data_dir).items():
        wanted = {"task": question, "data": data, "inputs": "gradients"}
        for run in find_runs([folder], "cifar10", **wanted):
            seed, test = run.record["seed"], on_test(read_results(run).predictions)
            ids[seed] = test["id"].to_numpy()
            found = calibrate(test[row].to_numpy(float), votes[ids[seed]], seed, **how)
            seeds.setdefault(seed, []).append(found)
    found = {k: [np.mean([q[k] for q in qs], axis=0) for qs in seeds.values()] for k in found}
    lines, (first, *others) = [], ids.values()
    shared, n = all(np.array_equal(first, other) for other in others), len(first)
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), replicates) / n
    for (name, target, size), own in ((k, v) for k, v in found.items() if k is not None):
        mean, warm = np.mean([terms.mean(1) for terms in own], axis=0)
        facts = {"data": data, "row": row, "calibrator": name, "target": target}
        facts |= {"images": size or n // 2, "mean": mean, "temperature": warm}
        for less, other in (("nothing", None), ("all votes", (name, "all votes", size))):
            gaps = np.stack([a[0] - b[0] for a, b in zip(own, found[other])], axis=1)
            samples = drawn @ gaps if shared else None
            gap = difference(gaps.mean(0), samples, n if shared else None, shared)
            lines.append(facts | {"less": less} | gap.__dict__)
    table = pd.DataFrame(lines).query("less != target")
    return table.drop_duplicates(["calibrator", "target", "images", "less"])  # half may be a size


def main(arguments=None):
    """Calibrate stored predictions on votes and keep the table."""
    parser = argparse.ArgumentParser(prog="python -m probnb_book votes", description=__doc__)
    parser.add_argument("--data-dir", required=True, help="ferplus.npz and cifar10h")
    parser.add_argument("--results", default="results", help="predictions, and the table")
    given = parser.parse_args(arguments)
    every = [compare_targets(d, given.data_dir, given.results) for d in ("ferplus", "cifar10h")]
    record = {"command": "python -m probnb_book votes --data-dir DATA", **store.machine()}
    tables = {"calibrators": pd.concat(every)}
    print(keep(given.results, "votes", {"calibrators": (record, tables)}))
