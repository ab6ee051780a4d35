"""What the chapters' notebooks need before anything else: a check of their parameters.

Importing this module is quick (no torch), so that a wrong parameter stops a run in its first
second.
"""

import ast
import os
import re
import types
from pathlib import Path

from probnb.experiment.profiles import PROFILE_FIELDS, make_profile
from probnb.paths import find_path, possible_places
from probnb.validation import check_choice, check_integer

_IPYTHON = re.compile(
    r"In|Out|exit|quit|get_ipython|open|_{1,3}|_i{1,3}|_i?\d+|_[iod]h|_exit_code|__\w+__"
    r"|PAPERMILL_\w+"  # which papermill itself injects on request
)
_CHECKED = "__parameters_checked__"
_WORDS = {"true": True, "false": False, "none": None, "null": None, "": None}
_NAMES = ("stem", "cape", "finetune_schedule", "backbone", "layers")  # fields of a profile


def check_parameters(namespace, allowed, text=()):
    """Reject parameters that a notebook does not have, and undo papermill's strings.

    papermill injects whatever ``-p`` names as variables, known to the notebook or not, so that a
    misspelt name would be ignored in silence. Call this in the first cell after the parameters,
    before other variables exist. Where a kernel runs the notebook a second time, its own variables
    exist, and only values are looked at.

    Parameters
    ----------
    namespace : dict
        The notebook's ``globals()``. Text that stands for a value (``"true"``, ``"None"``, ...)
        is replaced in place by that value, since papermill undoes only some of it. Digits in
        text stay text: papermill makes numbers of those that ``-p`` gives, and ``-r`` says that
        text is meant (a group called 007).
    allowed : str or iterable of str
        The notebook's parameters; a string holds several, separated by white space.
    text : str or iterable of str, optional
        Those of them that are names or paths, None or text as it stands: a folder may be called
        true, 02 or 2020.

    Returns
    -------
    dict
        The parameters with their values.

    Raises
    ------
    ValueError
        If a variable is not one of `allowed` (the message names the nearest that is), or one of
        `text` is no text.

    Examples
    --------
    >>> check_parameters({"scenrio": "linear"}, "scenario seed")
    Traceback (most recent call last):
    ...
    ValueError: parameter must be one of scenario, seed; got 'scenrio'. Did you mean 'scenario'?
    """
    allowed = allowed.split() if isinstance(allowed, str) else list(allowed)
    text = text.split() if isinstance(text, str) else list(text)
    again = _CHECKED in namespace
    for name, value in list(namespace.items()):
        if name in text:
            if value is not None and not isinstance(value, str | os.PathLike):
                raise ValueError(
                    f"{name} must be text; got {value!r}, which papermill makes of a name that "
                    f"looks like a value. Give the name as it stands: -r {name} NAME."
                )
            continue
        imported = callable(value) or isinstance(value, types.ModuleType)
        if imported or _IPYTHON.fullmatch(name) or (again and name not in allowed):
            continue
        check_choice(name, allowed, "parameter")
        if isinstance(value, str) and value.strip().lower() in _WORDS:
            namespace[name] = _WORDS[value.strip().lower()]
    if "get_ipython" in namespace:
        namespace[_CHECKED] = True
    return {name: namespace[name] for name in allowed if name in namespace}


_RUN = {
    "device": lambda value, name: check_choice(value, ("auto", "cpu", "cuda", "mps"), name),
    "mirror": lambda value, name: check_choice(value, (True, False), name),
    "retrain": lambda value, name: check_choice(value, (True, False), name),
    "seed": lambda value, name: check_integer(value, name, minimum=0),
    "devices": check_integer,
    "replicates": lambda value, name: check_integer(value, name, minimum=2),
    "data_dir": lambda value, name: None if value is None else find_path(value, name),
    "results_dir": lambda value, _: results_path(value),
    "profile": lambda value, _: default_profile(value),
}


def check_run(namespace):
    """Check what notebooks that train are asked for alike, such as their device and folders.

    Parameters
    ----------
    namespace : dict
        The notebook's ``globals()``. Names of folders are replaced by their paths, and a profile
        that was not asked for by the usual one.

    Raises
    ------
    ValueError, FileNotFoundError
        If a value is not allowed; the message says what is.
    """
    for name, check in _RUN.items():
        if name in namespace:
            namespace[name] = check(namespace[name], name)


def default_profile(profile, usual="quick"):
    """The profile that a notebook runs at: the one asked for, or else the usual one.

    Where the environment variable ``PROBNB_SMOKE`` is 1, the smallest profile stands for one that
    was not asked for, so that tests can run every notebook within seconds.

    Parameters
    ----------
    profile : str or None
        The notebook's parameter; None where it was left alone.
    usual : str, default="quick"
        The notebook's usual profile.

    Returns
    -------
    str
        A name for `probnb.experiment.profiles.make_profile`.

    Examples
    --------
    >>> default_profile("cpu")
    'cpu'
    """
    return profile or ("smoke" if smoke() else usual)


def profile_of(name, namespace):
    """Return the profile with whatever a notebook's variables override of it.

    Parameters
    ----------
    name : str
        Where to start from.
    namespace : dict
        The notebook's ``globals()``; text such as ``"5, 15"`` stands for several numbers.

    Returns
    -------
    Profile
        The result, checked.
    """
    given = {key: value for key, value in namespace.items() if key in PROFILE_FIELDS}
    return make_profile(name, **{key: _numbers(key, value) for key, value in given.items()})


def _numbers(name, value):
    if not isinstance(value, str) or name in _NAMES:
        return value
    try:
        read = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        raise ValueError(
            f"{name} must be a number or several with commas; got {value!r}."
        ) from None
    return tuple(read) if isinstance(read, (list, tuple)) else read


def results_path(results_dir=None):
    """Return where runs are kept: `results_dir`, or by default ``runs`` in the project's folder.

    Smoke runs (see `smoke`) lie apart, in ``_smoke``, where no page for readers looks.

    A notebook is started from the project's folder by papermill and from ``book`` by jupyter-book
    and by tests; all of them should find each other's finished work.

    Parameters
    ----------
    results_dir : path-like, optional
        A folder, by the rule of `probnb.paths.find_path`: in ``book``, one that is not there
        is looked for, and made, in the folder above.

    Returns
    -------
    pathlib.Path
        The folder, which need not exist yet.
    """
    if results_dir is not None:
        tried = possible_places(results_dir, "results_dir")
        found = next((place for place in tried if place.exists()), tried[-1])
        if found.exists() and not found.is_dir():
            raise ValueError(f"results_dir must be a folder; {str(found)!r} is a file.")
        return found
    here = Path.cwd()
    inside = (f for f in (here, *here.parents) if (f / "book" / "synthetic.py").exists())
    return next(inside, here) / ("_smoke" if smoke() else "runs")


def stored_folders(results_dir=None):
    """Return where a page looks for stored runs: in one folder, or in the project's two.

    Parameters
    ----------
    results_dir : path-like, optional
        A folder that is there; by default ``results``, and what the reader has run.
    """
    if results_dir:
        return [find_path(results_dir, "results_dir")]
    runs = results_path()
    return [runs.parent / "results", runs]


def smoke():
    """Whether the environment variable PROBNB_SMOKE is 1: notebooks run at the size of a test."""
    value = os.environ.get("PROBNB_SMOKE", "")
    return check_choice(value, ("", "0", "1"), "PROBNB_SMOKE") == "1"
