"""What the chapters' notebooks need before anything else: a check of their parameters.

Importing this module is quick (no torch), so that a wrong parameter stops a run in its first
second.
"""

from __future__ import annotations

import types

from .validation import check_choice

__all__ = ["check_parameters"]

_IPYTHON = {"In", "Out", "exit", "quit", "get_ipython", "open"}


def check_parameters(namespace, allowed):
    """Reject parameters that a notebook does not have, and undo papermill's strings.

    papermill injects whatever ``-p`` names as variables, known to the notebook or not, so that a
    misspelt name would be ignored in silence. Call this in the first cell after the parameters,
    before other variables exist.

    Parameters
    ----------
    namespace : dict
        The notebook's ``globals()``. Text that stands for a value (``"true"``, ``"None"``, ...)
        is replaced in place by that value.
    allowed : iterable of str
        The notebook's parameters.

    Raises
    ------
    ValueError
        If a variable is not one of `allowed`; the message names the nearest that is.

    Examples
    --------
    >>> check_parameters({"scenrio": "linear"}, ["scenario", "seed"])
    Traceback (most recent call last):
    ...
    ValueError: parameter must be one of scenario, seed; got 'scenrio'. Did you mean 'scenario'?
    """
    words = {"true": True, "false": False, "none": None, "null": None, "": None}
    for name, value in list(namespace.items()):
        if name.startswith("_") or name in _IPYTHON or isinstance(value, types.ModuleType):
            continue
        if callable(value):  # an imported function
            continue
        check_choice(name, allowed, "parameter")
        if isinstance(value, str) and value.strip().lower() in words:
            namespace[name] = words[value.strip().lower()]
