"""Where numbers come from: the code that trained, the machine, the version."""

from __future__ import annotations

import ast
import datetime
import functools
import hashlib
import inspect
import platform
import subprocess
import sys
import textwrap
import types
from pathlib import Path

from .. import __version__

__all__ = ["fingerprint", "machine"]

ROOT = Path(__file__).resolve().parents[1]
TRAINS = (
    "training/*.py",
    "metrics/sample.py",
    "metrics/binning.py",
    "data/base.py",
    "data/inputs.py",
    "scenarios.py",
    "experiment/run.py",
)
"""Files that take part in every training, whole: what is not listed cannot be forgotten."""

_KNOWN = ("builtins.", "torch.", "torchvision.", "typing.", "probnb.training.", "probnb.data.")


def fingerprint(job, augment=(), root=None):
    """Return a hash of the code that trains a job, comments and docstrings left out.

    A stored result whose code had another hash may differ from what would be trained today.

    Parameters
    ----------
    job : Job
        What it has of one's own (loss, targets, network) counts besides `TRAINS`.
    augment : tuple of callable, default=()
        Augmentation of its data.
    root : path-like, optional
        The package, where it is another copy than the one that runs.

    Returns
    -------
    str
        Sixteen hexadecimal digits.
    """
    taught = getattr(job.targets, "calibrator", None) is not None
    files = (*TRAINS, "calibrators/*.py") if taught else TRAINS
    parts = [_files(files, Path(root or ROOT)), *_replaced(files)]
    for value in (job.loss, job.targets, job.network.kind, *augment):
        parts += [] if isinstance(value, str) else _own(value)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@functools.cache
def _files(patterns, root):
    paths = [path for pattern in patterns for path in sorted(root.glob(pattern))]
    return "\n".join(f"{path.relative_to(root)}\n{_plain(path.read_text())}" for path in paths)


def _replaced(patterns):
    """Sources of what stands in memory where the library's files define something else."""
    found = []
    for path in (path for pattern in patterns for path in sorted(ROOT.glob(pattern))):
        name = ".".join((__package__.split(".")[0], *path.relative_to(ROOT).with_suffix("").parts))
        module = sys.modules.get(name)
        for node in ast.parse(path.read_text()).body if module else ():
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                value = getattr(module, node.name, None)
                members = vars(value).values() if isinstance(value, type) else [value]
                for one in map(_function, members):
                    if one and not one.__code__.co_filename.startswith((module.__file__, "<")):
                        found.append(f"{name}.{node.name} {_source(one)}")
    return found


def _function(member):
    """The function that a member of a class or a module is made of, or None."""
    member = member.fget if isinstance(member, property) else member
    member = inspect.unwrap(member) if callable(member) else getattr(member, "__func__", member)
    return member if isinstance(member, types.FunctionType) else None


def _own(value):
    """Sources of a function or of a class that is not the library's."""
    if isinstance(value, types.FunctionType):
        return [_source(value)]
    kinds = (value if isinstance(value, type) else type(value)).__mro__
    own = [kind for kind in kinds if not f"{kind.__module__}.".startswith(_KNOWN)]
    members = [_function(member) for kind in own for member in vars(kind).values()]
    return [_source(member) for member in members if member]


def _source(function):
    """The source of a function, or its bytes, names and values where there is none."""
    try:
        return _plain(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        code = function.__code__
        plain = [value for value in code.co_consts if not isinstance(value, types.CodeType)]
        return f"{code.co_code.hex()} {code.co_names} {plain}"


@functools.cache
def _plain(text):
    """Code as it parses, without comments and without text that stands alone."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _is_text(line)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node):
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


def machine():
    """Return what a run's record says of version, commit, date and processor."""
    return {
        "version": __version__,
        "commit": _commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "python": platform.python_version(),
    }


def _commit():
    """The commit of the checkout that this code is in, "+" where it was changed since; or None."""
    here = Path(__file__).resolve().parent

    def git(*words):
        return subprocess.run(["git", *words], cwd=here, capture_output=True, text=True)

    try:
        head = git("rev-parse", "--short=12", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".").stdout.strip()
    except OSError:
        return None
    return head.stdout.strip() + "+" * bool(changed) if head.returncode == 0 else None


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
