"""Finished work on disk: one file per fit, written to a temporary name and renamed.

A file is safetensors: tensors, and in its header the configuration, the history and the state of
an unfinished training as JSON. Nothing is read with pickle.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

__all__ = ["checksum", "header", "key", "load", "load_or_set_aside", "part", "replace_file", "save"]


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
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
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
        tensors = safetensors.torch.load(content)
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])["__metadata__"]
        if header.get("sha256", found := checksum(tensors)) != found:
            raise ValueError("its contents do not have the checksum that it states")
        return tensors, json.loads(header["meta"]) | {"sha256": found}
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"path must be a file written by probnb; {path}: {error}.") from None


def header(path):
    """Return the metadata of a stored file, as `load` does, without reading its tensors."""
    with open(path, "rb") as file:
        found = json.loads(file.read(int.from_bytes(file.read(8), "little")))["__metadata__"]
    return json.loads(found["meta"]) | {"sha256": found["sha256"]}


def load_or_set_aside(path):
    """Read what `save` wrote; None where there is no file, or a damaged one, which is set aside."""
    if not Path(path).exists():
        return None
    try:
        return load(path)
    except ValueError as error:
        set_aside(path, error)
        return None


def set_aside(path, reason):
    """Rename a damaged file, so that its work is done again, and say so in a warning."""
    path = Path(path)
    aside = path.with_name(f"{path.name}.damaged")
    os.replace(path, aside)
    warnings.warn(
        f"{path.name} is damaged and was set aside as {aside.name}; its work is done again "
        f"({reason})",
        stacklevel=3,
    )


def part(tensors, prefix):
    """Return the tensors whose names start with `prefix`, without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def replace_file(path, write):
    """Call ``write(temporary)`` and rename the result to `path`, so no reader sees a part of it.

    The file has the mode that the user's umask gives, whatever mode the writer chose: what one
    user has made, others may read (safetensors writes for the owner alone).
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.touch()
        mode = temporary.stat().st_mode
        write(temporary)
        temporary.chmod(mode & 0o777)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def plain(value):
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"configuration must hold plain values; got {type(value).__name__}.")
