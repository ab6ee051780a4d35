"""What the chapters' notebooks need before anything else: a check of their parameters.

Importing this module is quick (no torch), so that a wrong parameter stops a run in its first
second.
"""

from __future__ import annotations

import os
import types
from pathlib import Path

from .validation import check_choice

__all__ = ["check_parameters", "check_path", "results_path", "smoke"]

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
    allowed : str or iterable of str
        The notebook's parameters; a string holds several, separated by white space.

    Raises
    ------
    ValueError
        If a variable is not one of `allowed`; the message names the nearest that is.

    Examples
    --------
    >>> check_parameters({"scenrio": "linear"}, "scenario seed")
    Traceback (most recent call last):
    ...
    ValueError: parameter must be one of scenario, seed; got 'scenrio'. Did you mean 'scenario'?
    """
    allowed = allowed.split() if isinstance(allowed, str) else list(allowed)
    words = {"true": True, "false": False, "none": None, "null": None, "": None}
    for name, value in list(namespace.items()):
        if name.startswith("_") or name in _IPYTHON or isinstance(value, types.ModuleType):
            continue
        if callable(value):  # an imported function
            continue
        check_choice(name, allowed, "parameter")
        if isinstance(value, str) and value.strip().lower() in words:
            namespace[name] = words[value.strip().lower()]


def check_path(path, name):
    """Return an existing path, or None for None.

    Parameters
    ----------
    path : path-like or None
        A file or folder, relative to where the notebook was started.
    name : str
        The parameter's name, for the message.

    Returns
    -------
    pathlib.Path or None
        The path.

    Raises
    ------
    FileNotFoundError
        If there is nothing at `path`.
    """
    if path is None:
        return None
    path = Path(path).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"{name} must be an existing file or folder; {path} is not there.")
    return path


def results_path(results_dir=None):
    """Return where runs are kept: `results_dir`, or by default ``runs`` in the project's folder.

    A notebook is started from the project's folder by papermill and from ``book`` by jupyter-book
    and by tests; all of them should find each other's finished work.

    Parameters
    ----------
    results_dir : path-like, optional
        A folder, relative to where the notebook was started.

    Returns
    -------
    pathlib.Path
        The folder, which need not exist yet.
    """
    if results_dir is not None:
        return Path(results_dir).expanduser()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "book" / "synthetic.py").exists():
            return folder / "runs"
    return here / "runs"


def smoke():
    """Whether the environment variable PROBNB_SMOKE is 1: notebooks run at the size of a test."""
    return os.environ.get("PROBNB_SMOKE") == "1"
