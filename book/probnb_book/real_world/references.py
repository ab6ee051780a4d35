"""What a person of the trade would try before a network: simple models of each task.

All are fixed in advance and fitted to the training part alone; each function returns predictions
for the test part by name, the constant first.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from probnb.data import Bags
from probnb.metrics.registry import nll

from ..data.dashcam import FRAME, HISTORY, DashcamInputs

PENALTIES = tuple(10.0 ** np.arange(0, 6))
"""Ridge penalties of Cox regression, among which validation cross entropy chooses."""


def references(splits, seed=0):
    """Return the predictions of simple models for the test part, by what the inputs are."""
    report = splits.report or {}
    if "cohort" in report:
        return survival_references(splits, seed)
    if isinstance(splits.train.inputs, DashcamInputs):
        return box_references(splits, seed)
    if isinstance(splits.train.inputs, Bags):  # slides with bare outcomes
        return {"Constant": np.full(len(splits.test), float(splits.train.outcomes.mean()))}
    return rain_references(splits, seed)


def add_references(results, references):
    """Put the predictions of simple models beside those of the methods, on the test rows."""
    table = results.predictions.copy()
    rows = table.index[table["split"] == "test"]
    for name, values in references.items():
        table[name] = pd.Series(values, index=rows, dtype=float)
    return replace(results, predictions=table)


def rain_references(splits, seed=0):
    """Climatology, the trend's persistence, logistic regression and a forest on `pooled_maps`."""
    x, z = pooled_maps(splits.train.inputs), pooled_maps(splits.test.inputs)
    y = splits.train.outcomes.cpu().numpy()
    change = x.shape[1] * 2 // 3  # mean of the last map less that of the first
    rose, rising = x[:, change] > 0, z[:, change] > 0
    shares = [y[rose == side].mean() if (rose == side).any() else y.mean() for side in (0, 1)]
    linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    forest = RandomForestClassifier(200, min_samples_leaf=20, max_features=0.3, random_state=seed)
    return {
        "Climatology": np.full(len(z), y.mean()),
        "Persistence of trend": np.where(rising, shares[1], shares[0]),
        "Logistic regression": linear.fit(x, y).predict_proba(z)[:, 1],
        "Random forest": forest.fit(x, y).predict_proba(z)[:, 1],
    }


def pooled_maps(inputs):
    """Statistics of the last map and of its two changes, (n, 24), on the logarithmic scale.

    Mean, spread, share with rain, maximum, and the means of the four quarters.
    """
    half = inputs.shape[-1] // 2
    halves, blocks = (slice(None, half), slice(half, None)), []
    for first in range(0, len(inputs), 256):  # inputs may lie on disk
        x = np.asarray(inputs[first : first + 256]).astype(np.float32) / 255
        quarters = [x[..., a, b].mean((2, 3)) for a in halves for b in halves]
        whole = [x.mean((2, 3)), x.std((2, 3)), (x > 0).mean((2, 3)), x.max((2, 3))]
        blocks.append(np.stack([*whole, *quarters], axis=2))
    x = np.concatenate(blocks)
    return np.concatenate([x[:, 2], x[:, 2] - x[:, 1], x[:, 2] - x[:, 0]], axis=1)


def box_references(splits, seed=0):
    """A constant, a logistic curve of the growth, and boosted trees on `box_features`."""
    x, z = (box_features(part.inputs.boxes) for part in (splits.train, splits.test))
    y = splits.train.outcomes.cpu().numpy()
    curve = LogisticRegression(C=100).fit(x[:, :1], y)
    trees = HistGradientBoostingClassifier(
        max_iter=100, learning_rate=0.05, max_leaf_nodes=8, min_samples_leaf=30, random_state=seed
    ).fit(x, y)
    return {
        "Constant": np.full(len(z), y.mean()),
        "Time to collision": curve.predict_proba(z[:, :1])[:, 1],
        "Boxes, boosted trees": trees.predict_proba(z)[:, 1],
    }


def box_features(boxes):
    r"""What boxes (n, 3, 4) say of size, place and motion, (n, 6).

    First the rate at which a box grows, per second: the inverse of the time to collision. A vehicle
    of size S at distance Z has a box of height fS/Z. At constant closing speed :math:`-\dot Z/Z =
    \dot h/h`, so that the growth rate of the logarithm is one over the time to collision, whatever
    the size, the distance and the camera. Then logarithms of height and of width; offset of the
    centre from the middle of the frame, in widths of the box, without sign; its rate of change,
    positive outward; lowest row.

    Examples
    --------
    >>> boxes = [[[0, 0, 110, 110], [0, 0, 105, 105], [0, 0, 100, 100]]]  # the latest first
    >>> box_features(np.array(boxes, float))[:, 0].round(2)
    array([0.48])
    """
    x, y, width, height = np.moveaxis(np.asarray(boxes, float), 2, 0)
    there = (height > 0).astype(float)
    offset = np.abs(x + width / 2 - FRAME[0] / 2) / np.maximum(width, 1)
    high = boxes[:, :, 3]  # of their own precision, on which stored results rest
    growth = _slope(np.log(np.where(high > 0, high, 1)), there)
    features = [growth, np.log(height[:, 0]), np.log(width[:, 0]), offset[:, 0]]
    return np.stack([*features, _slope(offset, there), (y + height)[:, 0] / FRAME[1]], axis=1)


def _slope(values, there):
    """Slope per second, by least squares, of the values that are there; 0 for a single one."""
    time = -0.1 * np.arange(HISTORY)
    count = np.maximum(there.sum(1), 1)
    late = time - (there * time).sum(1, keepdims=True) / count[:, None]
    spread = (there * late**2).sum(1)
    return (there * late * values).sum(1) / np.where(spread > 0, spread, 1)


def survival_references(splits, seed=0, trees=100):
    """Models of survival, read at the horizon, of everybody in the training part.

    The Kaplan-Meier estimate for everybody; ridge Cox regression and a random survival forest of
    the first 50 principal components (of a slide, of its mean tile); and Cox regression of age,
    sex, stage and cohort. The censored teach them too, whatever the rule of the networks.
    """
    from sksurv.ensemble import RandomSurvivalForest
    from sksurv.linear_model import CoxPHSurvivalAnalysis
    from sksurv.nonparametric import kaplan_meier_estimator
    from sksurv.util import Surv

    cohort, members = splits.report["cohort"], splits.report["members"]
    horizon, test, val = splits.report["horizon"], splits.test.ids, splits.val
    train = members["train"][cohort.first[members["train"]]]
    months, died = cohort.months[train], cohort.died[train].astype(bool)
    y = Surv.from_arrays(died, months)
    times, survival = kaplan_meier_estimator(died, months)
    at = np.searchsorted(times, horizon, side="right")
    inputs = cohort.inputs
    if isinstance(inputs, Bags):
        ends = zip(inputs.offsets, inputs.offsets + inputs.lengths)
        inputs = np.array([np.mean(inputs.values[a:b], axis=0, dtype=float) for a, b in ends])
    few = PCA(min(50, len(train) - 1, inputs.shape[1]), random_state=0)
    x = make_pipeline(StandardScaler(), few).fit(inputs[train].astype(float))
    x = x.transform(inputs.astype(float))
    fits = [CoxPHSurvivalAnalysis(alpha=a, ties="efron").fit(x[train], y) for a in PENALTIES]
    given = {"weights": val.weights.numpy()}
    losses = [nll(val.outcomes.numpy(), _read(fit, x[val.ids], horizon), **given) for fit in fits]
    small = dict(min_samples_leaf=min(15, max(1, len(train) // 10)), max_features="sqrt")
    small |= dict(max_samples=min(len(train), 600), random_state=seed)
    table = clinical_table(cohort.covariates, train)
    cox = CoxPHSurvivalAnalysis(alpha=1.0, ties="efron").fit(table[train], y)
    forest = RandomSurvivalForest(trees, **small).fit(x[train], y)
    return {
        "Kaplan-Meier": np.full(len(test), np.append(1.0, survival)[at]),
        "Cox regression": _read(fits[int(np.argmin(losses))], x[test], horizon),
        "Random survival forest": _read(forest, x[test], horizon),
        "Cox, clinical": _read(cox, table[test], horizon),
    }


def clinical_table(covariates, train):
    """Turn covariates into numbers: age as it is, the others, unknown ones too, as indicators.

    The median age of the rows `train` stands in for a missing one; an indicator says where.
    """
    table = pd.get_dummies(covariates.drop(columns="age"), dtype=float)
    age = covariates["age"].astype(float)
    table["age"] = age.fillna(age.iloc[train].median())
    table["age_missing"] = age.isna().astype(float)
    return table.loc[:, table.iloc[train].nunique() > 1].to_numpy(float)


def _read(model, x, horizon):
    """Survival at the horizon from a model's step functions."""
    curves = model.predict_survival_function(x, return_array=True)
    at = np.searchsorted(model.unique_times_, horizon, side="right") - 1
    return np.ones(len(x)) if at < 0 else np.clip(curves[:, at], 0, 1)
