"""Parameters of the chapter on theory: what is allowed, and the sizes of a test run."""

from __future__ import annotations

from ...validation import check_choice, check_integer, check_number

__all__ = ["SMOKE", "check_settings"]

SMOKE = {
    "n": 60,
    "replicates": 2,
    "iterations": 300,
    "phase_n": 60,
    "phase_gammas": [0.0, 2.0],
    "phase_replicates": 4,
    "appendix_n": 60,
    "appendix_iterations": 300,
    "grid_n": 60,
    "grid_kappas": [0.2, 1.0],
    "grid_gammas": [1.0, 3.0],
    "grid_replicates": 3,
}
"""Sizes at which the whole chapter runs in seconds."""


def check_settings(settings):
    """Check the chapter's parameters, before anything slow is imported.

    Parameters
    ----------
    settings : mapping of str to object
        The notebook's ``globals()``, with all of its parameters.

    Raises
    ------
    ValueError
        If a value is not allowed; the message names it.
    """
    check_choice(settings["device"], ("cpu", "cuda"), "device")
    counts = """n replicates threads iterations phase_n phase_replicates appendix_n
        appendix_iterations grid_n"""
    for name in counts.split():
        check_integer(settings[name], name)
    check_integer(settings["grid_replicates"], "grid_replicates", minimum=2)
    check_integer(settings["seed"], "seed", minimum=0)
    for name in ("kappa", "eta"):
        check_number(settings[name], name, minimum=0, exclusive=True)
    for name in ("gamma", "gamma_0"):
        check_number(settings[name], name, minimum=0)
    for name in ("grid_kappas", "grid_gammas", "phase_gammas"):
        if not isinstance(settings[name], (list, tuple)) or not settings[name]:
            raise ValueError(f"{name} must be a list of numbers; got {settings[name]!r}.")
        for value in settings[name]:
            check_number(value, name, minimum=0, exclusive=name == "grid_kappas")
