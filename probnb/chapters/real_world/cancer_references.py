"""What a statistician would do: Cox regression and a random survival forest, read at five years.

They learn from everybody in the training part, the censored among them, whatever the rule by which
the networks' outcomes are made.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...data.ragged import Bags
from ...metrics.scores import nll
from ...validation import check_integer

__all__ = [
    "clinical_table",
    "cox",
    "pooled_inputs",
    "principal_components",
    "survival_forest",
    "survival_references",
]

COMPONENTS = 50
"""Principal components of the genes that models of survival see."""

SAMPLE = 600
"""Patients that a tree of the forest draws at most."""

PENALTIES = tuple(10.0 ** np.arange(0, 6))
"""Ridge penalties among which validation cross entropy chooses, from weak to strong."""


def survival_references(splits, seed=0, trees=100):
    """Predict five-year survival of the test part by models of survival.

    Parameters
    ----------
    splits : probnb.data.base.Splits
        From `probnb.data.cohort.survival_splits`.
    seed : int, default=0
        Seed of the forest.
    trees : int, default=100
        Trees of the forest.

    Returns
    -------
    dict of str to ndarray of shape (n_test,)
        Probability of being alive at the horizon: the Kaplan-Meier estimate of the training part
        for everybody; ridge Cox regression and a random survival forest of what the network sees
        (the first 50 principal components; of a slide, of its mean tile); and Cox regression of
        age, sex, stage and cohort, where these are known.

    Notes
    -----
    The forest has at least 15 patients a leaf and tries the square root of the features at a
    split (Ishwaran et al. 2008). Cox regression's ridge penalty is the one with the lowest
    validation cross entropy, by the rule and the weights of the networks.
    """
    cohort, members = splits.report["cohort"], splits.report["members"]
    horizon = splits.report["horizon"]
    train = members["train"][cohort.first[members["train"]]]
    follow_up = cohort.months[train], cohort.died[train]
    test = splits.test.ids
    x = principal_components(pooled_inputs(cohort.inputs), train)
    weights = splits.val.weights
    validation = (
        x[splits.val.ids],
        splits.val.outcomes.numpy(),
        None if weights is None else weights.numpy(),
    )
    predictions = {
        "Kaplan-Meier": np.full(len(test), _at_horizon(*follow_up, horizon)),
        "Cox regression": cox(x[train], *follow_up, x[test], horizon, validation),
        "Random survival forest": survival_forest(
            x[train], *follow_up, x[test], horizon, trees, seed
        ),
    }
    if cohort.covariates is not None:
        table = clinical_table(cohort.covariates, train)
        predictions["Cox, clinical"] = cox(
            table[train], *follow_up, table[test], horizon, penalties=(1.0,)
        )
    return predictions


def cox(x, months, died, x_new, horizon, validation=None, penalties=PENALTIES):
    """Ridge Cox regression, read at the horizon.

    Parameters
    ----------
    x : array-like of shape (n, features)
        Training inputs.
    months, died : array-like of shape (n,)
        Follow-up.
    x_new : array-like of shape (m, features)
        Inputs to predict for.
    horizon : float
        Months.
    validation : tuple, optional
        Inputs, outcomes and weights by which the penalty is chosen; needed for more than one.
    penalties : tuple of float, default=PENALTIES
        What to choose among.

    Returns
    -------
    ndarray of shape (m,)
        Probabilities of being alive at the horizon. Ties are Efron's, the baseline hazard
        Breslow's.
    """
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    if len(penalties) > 1 and validation is None:
        raise ValueError(f"validation must be given to choose among penalties {penalties}.")
    best, y = (np.inf, None), _survival(months, died)
    for alpha in penalties:
        model = CoxPHSurvivalAnalysis(alpha=alpha, ties="efron").fit(x, y)
        loss = 0.0
        if validation is not None:
            inputs, outcomes, weights = validation
            loss = nll(outcomes, _read(model, inputs, horizon), weights=weights)
        if loss < best[0]:
            best = (loss, model)
    return _read(best[1], x_new, horizon)


def survival_forest(x, months, died, x_new, horizon, trees=100, seed=0):
    """Random survival forest, read at the horizon; arguments as those of `cox`."""
    from sksurv.ensemble import RandomSurvivalForest

    forest = RandomSurvivalForest(
        check_integer(trees, "trees"),
        min_samples_leaf=min(15, max(1, len(x) // 10)),
        max_features="sqrt",
        max_samples=min(len(x), SAMPLE),
        random_state=seed,
    )
    return _read(forest.fit(x, _survival(months, died)), x_new, horizon)


def clinical_table(covariates, train):
    """Turn covariates into numbers: age as it is, the others as indicators.

    Parameters
    ----------
    covariates : pandas.DataFrame of n rows
        Columns among ``age``, ``sex``, ``stage``, ``cohort``.
    train : ndarray of int or slice
        Rows whose median age stands in for a missing one; an indicator says where.

    Returns
    -------
    ndarray of shape (n, columns)
        A missing stage is a stage of its own.
    """
    table = pd.get_dummies(covariates.drop(columns="age", errors="ignore"), dtype=float)
    if "age" in covariates:
        age = covariates["age"].astype(float)
        table["age"] = age.fillna(age.iloc[train].median())
        table["age_missing"] = age.isna().astype(float)
    return table.loc[:, table.iloc[train].nunique() > 1].to_numpy(float)


def pooled_inputs(inputs):
    """Return inputs as a matrix: tables as they are, of each bag the mean tile."""
    if not isinstance(inputs, Bags):
        return np.asarray(inputs, float)
    ends = inputs.offsets + inputs.lengths
    return np.array(
        [np.mean(inputs.values[a:b], axis=0, dtype=float) for a, b in zip(inputs.offsets, ends)]
    )


def principal_components(x, train, components=COMPONENTS):
    """Scale features by the training rows and return their first principal components."""
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    components = min(components, len(train) - 1, x.shape[1])
    return (
        make_pipeline(StandardScaler(), PCA(components, random_state=0)).fit(x[train]).transform(x)
    )


def _survival(months, died):
    from sksurv.util import Surv

    return Surv.from_arrays(np.asarray(died, bool), months)


def _read(model, x, horizon):
    """Survival at the horizon from a model's step functions."""
    curves = model.predict_survival_function(x, return_array=True)
    times = model.unique_times_
    at = np.searchsorted(times, horizon, side="right") - 1
    return np.ones(len(x)) if at < 0 else np.clip(curves[:, at], 0, 1)


def _at_horizon(months, died, horizon):
    from ...data.survival import kaplan_meier

    curve = kaplan_meier(months, died)
    return float(curve.loc[curve["months"] <= horizon, "survival"].iloc[-1])
