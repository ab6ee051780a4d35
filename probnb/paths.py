"""Where a user's files are, and may be written: a clear error before any work."""

import os
import re
from pathlib import Path
from unicodedata import normalize

HIDDEN = re.compile(
    r"(^|/)(\.(?!\.?(/|$))|(__MACOSX|__pycache__|_temporary|_delta_log|@eaDir|#recycle|\$RECYCLE\.BIN)/)",
    re.IGNORECASE,
)
"""Files and folders that a system or a program keeps for itself."""


def composed(text):
    """Return a name in which letters have their accents in one way, typed on whatever system."""
    return normalize("NFC", str(text))


def find_path(path, name):
    """Return the existing file or folder that a notebook's parameter names.

    A relative path is taken from the working directory and, where nothing is there and that
    directory is ``book``, from the folder above: papermill starts a notebook in the project's
    folder, jupyter-book and tests start it in ``book``.

    Parameters
    ----------
    path : path-like
        A file or folder; ``~`` is the user's own.
    name : str
        The parameter's name, for the message.

    Returns
    -------
    pathlib.Path
        The path that exists.

    Raises
    ------
    ValueError
        If `path` is not a path.
    FileNotFoundError
        If there is nothing; the message names the places that were tried.
    """
    tried = possible_places(path, name)
    for place in tried:
        if place.exists():
            return place
    places = " and ".join(str(place.absolute()) for place in tried)
    raise FileNotFoundError(f"{name} must be an existing file or folder; found none at {places}.")


def possible_places(path, name):
    """Where a notebook's path may lie, in the order to try."""
    if not isinstance(path, str | os.PathLike) or not str(path).strip() or "\0" in str(path):
        hint = "" if isinstance(path, str) else f" A name of digits is given as -r {name} NAME."
        raise ValueError(f"{name} must be the path of a file or folder; got {path!r}.{hint}")
    try:
        path = Path(path).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{name}: {error} (got {str(path)!r}).") from None
    if path.is_absolute() or Path.cwd().name != "book":
        return [path]
    return [path, ".." / path]


def check_output(path, name="output"):
    """Return where a file can be written, before the work that it is to hold."""
    ends = str(path).endswith(("/", os.sep))
    path = Path(path).expanduser()
    if path.is_dir() or ends:
        raise ValueError(f"{name} must be a file; {str(path)!r} is a folder.")
    if path.exists() and not path.is_file():  # which a file would replace
        raise ValueError(f"{name} must be a file; {str(path)!r} is a device or a pipe.")
    parent = next(parent for parent in path.absolute().parents if parent.exists())
    if not (parent.is_dir() and os.access(parent, os.W_OK)):
        what = "cannot be written to" if parent.is_dir() else "is no folder"
        raise ValueError(f"{name} must be a file in a folder; {str(parent)!r} {what}.")
    return path
