"""What each rule for the censored does to probabilities, where the truth is known."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...data.simulated_slides import simulate_follow_up, survival_probability
from ...data.survival import HORIZON, RULES, label
from ...validation import check_integer

__all__ = ["rule_bias", "rule_bias_sentence"]

QUANTITIES = {
    "all": "Share of survivors, all patients",
    "worst third": "The same, third with the lowest probabilities",
    "best third": "The same, third with the highest",
    "slope": "Slope of outcomes on the true log-odds",
}
"""What `rule_bias` estimates; the truth of a slope is 1: the true probabilities are calibrated."""


def rule_bias(censored=(0.2, 0.5, 0.7), patients=1000, repeats=200, seed=0):
    """Measure the bias of each rule on simulated patients.

    Parameters
    ----------
    censored : sequence of float, default=(0.2, 0.5, 0.7)
        Expected shares of patients whose outcome is hidden; TCGA's lung cohorts are at 0.5.
    patients : int, default=1000
        Patients of one sample; the paper has 1,009.
    repeats : int, default=200
        Samples.
    seed : int, default=0
        Seed of all samples.

    Returns
    -------
    DataFrame
        One row for each share, rule and quantity of `QUANTITIES`: ``truth`` (what the survival
        times give where nobody is censored, averaged over samples), ``estimate``, ``bias`` with
        its standard error ``se``, and ``sd``, the spread of single samples.

    Notes
    -----
    The slope is that of a logistic regression of the rule's outcomes, with its weights, on the
    logarithm of the true odds: a forecaster who knows the truth is judged by it.
    """
    check_integer(patients, "patients", 30)
    check_integer(repeats, "repeats", 2)
    rows = []
    for share in censored:
        for repeat, sequence in enumerate(np.random.SeedSequence(seed).spawn(repeats)):
            first, second = sequence.generate_state(2)
            severity = np.random.default_rng(int(first)).standard_normal(patients)
            months, died, survival = simulate_follow_up(severity, share, int(second))
            p = survival_probability(severity)
            truth = _quantities((survival > HORIZON).astype(float), np.ones(patients), p)
            for rule in RULES:
                labels = label(months, died, rule)
                estimate = _quantities(labels.outcomes, labels.weights, p)
                rows += [
                    (share, rule, name, repeat, truth[name], estimate[name]) for name in QUANTITIES
                ]
    keys = ["censored", "rule", "quantity"]
    table = pd.DataFrame(rows, columns=[*keys, "repeat", "truth", "estimate"])
    table["bias"] = table["estimate"] - table["truth"]
    groups = table.groupby(keys, sort=False)
    means = groups[["truth", "estimate", "bias"]].mean()
    means["se"] = groups["bias"].std() / np.sqrt(repeats)
    means["sd"] = groups["estimate"].std()
    return means.reset_index()


def rule_bias_sentence(table, censored=0.5):
    """Say by how much each rule is off, from `rule_bias`, at one share of censored patients."""
    rows = table[(table["censored"] == censored) & (table["quantity"] == "all")].set_index("rule")
    paper, known, ipcw = (rows.loc[rule] for rule in RULES)
    settled = "is not told apart from" if abs(ipcw["bias"]) < 2 * ipcw["se"] else "differs from"
    return (
        f"With {censored:.0%} of the outcomes hidden, {rows['truth'].iloc[0]:.1%} of the simulated "
        f"patients live to the horizon. The paper's rule says {paper['estimate']:.1%} "
        f"({paper['bias']:+.3f}), known outcomes alone say {known['estimate']:.1%} "
        f"({known['bias']:+.3f}), and inverse-probability weights {ipcw['estimate']:.1%} "
        f"({ipcw['bias']:+.4f}, standard error {ipcw['se']:.4f}), which {settled} the truth."
    )


def _quantities(y, w, p):
    """What `QUANTITIES` names, of weighted outcomes."""
    low, high = np.quantile(p, [1 / 3, 2 / 3])
    means = {
        name: float(np.average(y[rows], weights=w[rows]))
        for name, rows in (
            ("all", w > 0),
            ("worst third", (p <= low) & (w > 0)),
            ("best third", (p >= high) & (w > 0)),
        )
    }
    return means | {"slope": _slope(y, w, np.log(p / (1 - p)))}


def _slope(y, w, z):
    """Weighted logistic regression of y on z by Newton's method; the second coefficient."""
    x = np.column_stack([np.ones_like(z), z])
    beta = np.zeros(2)
    for _ in range(25):
        mean = 1 / (1 + np.exp(-x @ beta))
        curvature = (x * (w * mean * (1 - mean))[:, None]).T @ x
        step = np.linalg.solve(curvature, x.T @ (w * (y - mean)))
        beta += step
        if np.abs(step).max() < 1e-10:
            break
    return float(beta[1])
