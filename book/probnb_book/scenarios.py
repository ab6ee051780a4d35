"""The paper's five synthetic scenarios: from a person's age to a probability, to an outcome.

Section 7.1 and Appendix I of the paper. The face image carries the age, the age z sets the
probability p = psi(z), and the outcome y is one draw from Bernoulli(p).
"""

import numpy as np

from probnb.validation import check_choice

SCENARIOS = {
    "linear": lambda z: np.clip(z / 100, 0, 1),  # ages reach 116: the paper's z/100 would exceed 1
    "sigmoid": lambda z: 1 / (1 + np.exp(-25 * (z / 100 - 0.29))),
    "centered": lambda z: z / 300 + 0.35,
    "skewed": lambda z: z / 250,
    "discrete": lambda z: 0.2 * (z[..., None] > np.array([20, 40, 60, 80])).sum(axis=-1) + 0.1,
}
"""psi of each scenario, in the paper's order."""


def probability(age, scenario):
    r"""Ground-truth probability psi(age) of a scenario.

    Parameters
    ----------
    age : array-like
        Ages z in years, each at least 0 and at most 150.
    scenario : {"linear", "sigmoid", "centered", "skewed", "discrete"}
        =========  ==================================================
        linear     :math:`z/100`, clipped at 1 (ages reach 116)
        sigmoid    :math:`\sigma(25 (z/100 - 0.29))`
        centered   :math:`z/300 + 0.35`
        skewed     :math:`z/250`
        discrete   :math:`0.2\,[1_{z>20}+1_{z>40}+1_{z>60}+1_{z>80}]+0.1`
        =========  ==================================================

    Returns
    -------
    ndarray
        Probabilities of outcome 1, float64, of the shape of `age`.

    Raises
    ------
    ValueError
        If the scenario is unknown or an age is outside [0, 150] or not a number.

    Notes
    -----
    Liu et al. (2022), Section 7.1. The authors' released code mirrors the sigmoid and puts
    ages 20, 40, 60 and 80 into the higher class; here the formulas are the paper's.

    Examples
    --------
    >>> probability([0, 50, 116], "linear")
    array([0. , 0.5, 1. ])
    """
    check_choice(scenario, SCENARIOS, "scenario")
    age = np.asarray(age, dtype=np.float64)
    wrong = ~((age >= 0) & (age <= 150))
    if wrong.any():
        raise ValueError(f"age must be in [0, 150] years; got {age[wrong].flat[0].item()!r}.")
    return SCENARIOS[scenario](age)
