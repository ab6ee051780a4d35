"""Finished work on disk, and where it comes from: its settings, the code, the machine.

A fit is one file, written to a temporary name and renamed. It is safetensors: tensors, and in its
header the configuration, the history and the state of an unfinished training as JSON. Nothing is
read with pickle.
"""

import ast
import contextlib
import dataclasses
import datetime
import functools
import hashlib
import inspect
import io
import json
import linecache
import os
import platform
import re
import subprocess
import sys
import types
import uuid
import warnings
from pathlib import Path

import filelock
import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from . import __version__

__all__ = ["checksum", "fingerprint", "key", "load", "machine", "replace_file", "save", "write_run"]

ROOT = Path(__file__).resolve().parent
TRAINS = (
    "training/*.py",
    "metrics/sample.py",
    "metrics/binning.py",
    "data/base.py",
    "data/inputs.py",
    "pretrained/backbone.py",
    "pretrained/logistic.py",
    "experiment/run.py",
)
"""Files that take part in every training, whole: what is not listed cannot be forgotten."""

_KNOWN = ("builtins.", "torch.", "torchvision.", "typing.", "probnb.training.", "probnb.data.")


def key(configuration):
    """Return the name under which the work of a configuration is stored.

    Parameters
    ----------
    configuration : dict
        Everything the result depends on, as JSON can hold it: data source and its checksum,
        model, recipe, loss, targets.

    Returns
    -------
    str
        The first 16 hexadecimal digits of the SHA-256 of the canonical JSON.

    Examples
    --------
    >>> key({"a": 1, "b": 2}) == key({"b": 2, "a": 1})
    True
    """
    text = json.dumps(configuration, sort_keys=True, separators=(",", ":"), default=plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def save(path, tensors, meta):
    """Write tensors and JSON metadata to one file, whole or not at all.

    Parameters
    ----------
    path : path-like
        Where to; folders are made.
    tensors : dict of str to torch.Tensor
        What to store.
    meta : dict
        What JSON can hold; NaN and infinity are kept.
    """
    own = {"memory_format": torch.contiguous_format}  # each its own bytes: weights may be tied
    contiguous = {name: tensor.detach().cpu().clone(**own) for name, tensor in tensors.items()}
    header = {"meta": json.dumps(meta, default=plain), "sha256": checksum(contiguous)}
    replace_file(path, lambda temporary: save_file(contiguous, temporary, metadata=header))


def checksum(tensors):
    """Return the SHA-256 of the names and bytes of all tensors."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def load(path):
    """Read what `save` wrote.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    tensors : dict of str to torch.Tensor
        What was stored, on the CPU.
    meta : dict
        The metadata, and ``sha256``, the checksum of the tensors.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not one of `save`'s.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"path must be a stored file; {path} does not exist.")
    # Read whole: tensors mapped from a file that somebody cuts short would end the process.
    content = Path(path).read_bytes()
    try:
        tensors, known = safetensors.torch.load(content), _header(io.BytesIO(content))
        if known.get("sha256", found := checksum(tensors)) != found:
            raise ValueError("its contents do not have the checksum that it states")
        return tensors, json.loads(known["meta"]) | {"sha256": found}
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"path must be a file written by probnb; {path}: {error}.") from None


def header(path):
    """Return the metadata of a stored file, as `load` does but for its tensors; None: no file."""
    if not Path(path).exists():
        return None
    with open(path, "rb") as file:
        known = _header(file)
    return json.loads(known["meta"]) | {"sha256": known["sha256"]}


def _header(file):
    return json.loads(file.read(int.from_bytes(file.read(8), "little")))["__metadata__"]


def load_or_set_aside(path):
    """Read what `save` wrote; None where there is no file, or a damaged one, which is set aside."""
    if not Path(path).exists():
        return None
    try:
        return load(path)
    except ValueError as error:
        name = Path(path).name
        os.replace(path, f"{path}.damaged")
        warnings.warn(
            f"{name} is damaged and was set aside as {name}.damaged; its work is done again "
            f"({error})",
            stacklevel=2,
        )
        return None


def whole(parts):
    """Return the tensors of named parts under one name each, as `part` finds them again."""
    return {f"{name}.{k}": v for name, tensors in parts.items() for k, v in tensors.items()}


def part(tensors, prefix):
    """Return the tensors whose names start with `prefix`, without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def replace_file(path, write):
    """Call ``write(temporary)`` and rename the result to `path`, so no reader sees a part of it.

    The file has the mode that the user's umask gives, whatever mode the writer chose: what one
    user has made, others may read (safetensors writes for the owner alone). A link stays one, and
    what it leads to is replaced; a pipe or a device is written to as it is.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        write(path)
        return
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")  # other machines write here
    try:
        temporary.touch()
        mode = temporary.stat().st_mode
        write(temporary)
        temporary.chmod(mode & 0o777)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path):
    """Keep other writers from a path; whoever waited finds the lock's file gone, and makes one."""
    lock = Path(path).with_name(f".{Path(path).name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(lock):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def write_table(path, table):
    """Write a table as Parquet, whole or not; bytes of numbers apart, a third smaller together."""
    numbers = [name for name, kind in table.dtypes.items() if kind.kind == "f"]
    how = {"use_dictionary": [name for name in table if name not in numbers]}
    how |= {"use_byte_stream_split": numbers, "index": False, "compression": "zstd"}
    replace_file(path, lambda temporary: table.to_parquet(temporary, **how))


def write_run(folder, tables, record):
    """Write tables (by name) as Parquet and their record as ``run.json``, each whole or not."""
    for name, table in tables.items():
        write_table(Path(folder, f"{name}.parquet"), table)
    text = json.dumps(record, indent=1, default=plain) + "\n"
    replace_file(Path(folder, "run.json"), lambda path: path.write_text(text))


def plain(value):
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"configuration must hold plain values; got {type(value).__name__}.")


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
    """What stands in memory where the library's files define something else."""
    found = []
    for path in (path for pattern in patterns for path in sorted(ROOT.glob(pattern))):
        module = sys.modules.get(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))
        for name in _defined(path) if module else ():
            value = getattr(module, name, None)
            members = vars(value).values() if isinstance(value, type) else [value]
            for one in map(inspect.unwrap, filter(callable, members)):
                code = getattr(one, "__code__", None)
                if code and not code.co_filename.startswith((module.__file__, "<")):
                    found.append(f"{module.__name__}.{name} {code.co_code.hex()}")
    return found


@functools.cache
def _defined(path):
    return re.findall(r"^(?:class|def) (\w+)", path.read_text(), re.MULTILINE)


def _own(value):
    """The files, or the cells of a notebook, that hold what is not the library's, whole."""
    kind = value if isinstance(value, type | types.FunctionType) else type(value)
    places = []
    for one in getattr(kind, "__mro__", (kind,)):
        if not f"{one.__module__}.".startswith(_KNOWN):
            members = vars(one).values() if isinstance(one, type) else (one,)
            places += [m.__code__.co_filename for m in members if hasattr(m, "__code__")]
    return [_plain("".join(linecache.getlines(place))) for place in dict.fromkeys(places)]


@functools.cache
def _plain(text):
    """Code as it parses, without comments and without text that stands alone."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a cell with commands of IPython
        return text
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _is_text(line)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node):
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


def machine():
    """Return what a run's record says of version, commit, date, processor and its instructions."""
    return {
        "version": __version__,
        "commit": _commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "python": platform.python_version(),
    }


def _commit():
    """The commit of the checkout that this code is in, "+" where it was changed since; or None."""
    command = ["git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() or None


def _processor():
    known = Path("/proc/cpuinfo")
    found = (
        re.search(r"^model name\s*: *(.*\S)", known.read_text(), re.M) if known.exists() else None
    )
    return found[1] if found else platform.processor() or platform.machine()
