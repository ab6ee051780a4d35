"""Bags of tiles on disk: slides of one to tens of thousands of tiles, read bag by bag.

A file holds the tiles of all slides one after the other (``values``), how many each has
(``lengths``), and any vectors of one entry a slide. HDF5 and safetensors are both read without
loading more than a batch. `convert_release` makes such a file from the layout that the paper's
authors describe for their embeddings, which is pickled.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError

from ..store import replace_file
from ..validation import check_choice
from .base import ProbabilityData, Splits
from .ragged import Bags

__all__ = ["convert_release", "read_bags", "slide_splits", "write_bags"]

SUFFIXES = (".h5", ".hdf5", ".safetensors")
"""File names that `write_bags` and `read_bags` know."""


def write_bags(path, bags, **columns):
    """Write bags of tiles to one file, whole or not at all.

    Parameters
    ----------
    path : path-like
        Ends in one of `SUFFIXES`. HDF5 is written bag by bag; safetensors holds all in memory once.
    bags : sequence of array-like of shape (tiles, features)
        Slides of at least one tile each; floating point, at least 16 bits; kept as they are.
    **columns : array-like of shape (n,)
        Numbers or names of one entry a slide: ``outcomes``, ``ids``, ``groups``.

    Raises
    ------
    ValueError
        If the file name has another end, there is no bag, a bag is empty or holds what is not
        finite, bags differ in features, or a column has another length.
    """
    path = Path(path)
    check_choice(path.suffix, SUFFIXES, "path's end")
    if not len(bags):
        raise ValueError("bags must hold at least one bag; got none.")
    lengths = np.array([_check_bag(bag, i, bags[0]) for i, bag in enumerate(bags)], np.int64)
    columns = {name: np.asarray(column) for name, column in columns.items()}
    for name, column in columns.items():
        if name in ("values", "lengths"):
            raise ValueError(f"columns must not be named {name!r}, which the file has itself.")
        if column.shape != lengths.shape:
            raise ValueError(f"{name} must have one entry a bag, {len(bags)}; got {column.shape}.")
    write = _write_safetensors if path.suffix == ".safetensors" else _write_hdf5
    replace_file(path, lambda temporary: write(temporary, bags, lengths, columns))


def read_bags(path):
    """Open a file of bags; tiles stay on disk until a batch asks for them.

    Parameters
    ----------
    path : path-like
        Written by `write_bags`, or by anything else in that layout.

    Returns
    -------
    bags : probnb.data.base.Bags
        The slides. May be pickled to another process, which opens the file itself.
    columns : dict of str to ndarray of shape (n,)
        Everything else of one entry a slide.

    Raises
    ------
    ValueError
        If the file is missing, damaged, or not of that layout.
    """
    path = Path(path)
    check_choice(path.suffix, SUFFIXES, "path's end")
    if not path.is_file():
        raise ValueError(f"path must be a file of bags; {path} does not exist.")
    try:
        vectors = _vectors(path)
        values = StoredTiles(path)
    except (OSError, KeyError, SafetensorError) as error:
        raise ValueError(f"path must hold values and lengths; {path}: {error}.") from None
    lengths = vectors.pop("lengths", None)
    if lengths is None:
        raise ValueError(f"path must hold values and lengths; {path} has no lengths.")
    return Bags(values, lengths), vectors


class StoredTiles:
    """The tiles of a file, indexed like an array of shape (total, features); opened on demand."""

    def __init__(self, path):
        self.path, self._file = Path(path), None
        values = self._values()
        self.shape = tuple(values.shape if hasattr(values, "shape") else values.get_shape())
        if len(self.shape) != 2:
            raise KeyError(f"values of shape (total, features), not {self.shape}")

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        """Return tiles as a float32 array."""
        return np.asarray(self._values()[rows], np.float32)

    def __getstate__(self):
        return self.__dict__ | {"_file": None}

    def _values(self):
        if self._file is None:
            self._file = _open(self.path)
        if self.path.suffix == ".safetensors":
            return self._file.get_slice("values")
        return self._file["values"]


def convert_release(embeddings, outcomes, path):
    """Convert one part of the authors' release, two pickled files, to a file of bags.

    Parameters
    ----------
    embeddings : path-like
        Pickled mapping of slide to tiles, an array or tensor of shape (tiles, features).
    outcomes : path-like
        Pickled mapping of slide to outcome, or to outcome and a placeholder probability.
    path : path-like
        The new file, with columns ``ids`` and ``outcomes``.

    Returns
    -------
    int
        Number of slides.

    Raises
    ------
    ValueError
        If a file refers to anything but tensors, arrays and plain containers (it is then not
        read further, and nothing of it runs), the two differ in slides, or a bag is empty.
    """
    tiles, known = load_tensors(embeddings), load_tensors(outcomes)
    for name, table in (("embeddings", tiles), ("outcomes", known)):
        if not isinstance(table, dict):
            raise ValueError(f"{name} must be a mapping by slide; got {type(table).__name__}.")
    differ = sorted(map(str, set(tiles) ^ set(known)))
    if differ:
        raise ValueError(
            f"embeddings and outcomes must have the same slides; {len(differ)} are in one only: "
            f"{differ[0]!r}."
        )
    labels = [float(np.ravel(np.asarray(known[slide]))[0]) for slide in tiles]
    write_bags(
        path,
        [np.asarray(bag) for bag in tiles.values()],
        ids=list(map(str, tiles)),
        outcomes=labels,
    )
    return len(labels)


def slide_splits(folder):
    """Read the paper's split: ``train``, ``val`` and ``test`` files of bags with outcomes.

    Parameters
    ----------
    folder : path-like
        Holds a file of each name, ending in one of `SUFFIXES`, with a column ``outcomes`` and, if
        slides share patients, ``groups``.

    Returns
    -------
    probnb.data.base.Splits
        The three parts; tiles stay on disk.
    """
    from .cohort import refuse_shared

    parts, groups = {}, {}
    for name in ("train", "val", "test"):
        found = [f for f in (Path(folder) / (name + suffix) for suffix in SUFFIXES) if f.is_file()]
        if len(found) != 1:
            raise ValueError(
                f"folder must hold one file {name}{'|'.join(SUFFIXES)}; {folder} has {len(found)}."
            )
        bags, columns = read_bags(found[0])
        if "outcomes" not in columns:
            raise ValueError(f"{found[0].name} must have a column outcomes; it has none.")
        groups[name] = columns.get("groups", columns.get("ids", np.arange(0)))
        used = {k: columns[k] for k in ("outcomes", "groups", "ids", "weights") if k in columns}
        parts[name] = ProbabilityData(bags, **used)
    refuse_shared(groups, "patient" if "groups" in columns else "slide")
    tiles = "+".join(str(len(part.inputs.values)) for part in parts.values())
    return Splits(**parts, source=f"slides, {tiles} tiles")


class _TensorsOnly(pickle.Unpickler):
    """Builds arrays, tensors and plain containers; any other name in the file is refused."""

    allowed = frozenset(
        [
            ("collections", "OrderedDict"),
            ("numpy", "dtype"),
            ("numpy", "ndarray"),
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy.core.multiarray", "scalar"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "scalar"),
            ("numpy.core.numeric", "_frombuffer"),
            ("numpy._core.numeric", "_frombuffer"),
            ("torch._utils", "_rebuild_tensor_v2"),
            ("_codecs", "encode"),
        ]
    )

    def find_class(self, module, name):
        """Return an allowed builder; storages inside go through torch's own restricted reader."""
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return lambda content: torch.load(
                io.BytesIO(content), map_location="cpu", weights_only=True
            )
        if (module, name) not in self.allowed:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}")
        return super().find_class(module, name)


def load_tensors(path):
    """Read a file of tensors and arrays in plain containers that was written with pickle.

    Parameters
    ----------
    path : path-like
        Written by ``torch.save`` or by ``pickle.dump``.

    Returns
    -------
    object
        Its content.

    Raises
    ------
    ValueError
        If the file is missing, cut, or refers to anything else.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"path must be a file; {path} does not exist.")
    try:
        if zipfile.is_zipfile(path):
            return torch.load(path, map_location="cpu", weights_only=True)
        with open(path, "rb") as file:
            return _TensorsOnly(file).load()
    except (pickle.UnpicklingError, EOFError, RuntimeError, AttributeError, ImportError) as error:
        raise ValueError(
            f"path must hold tensors and arrays only, whole; {path}: {str(error).splitlines()[0]}."
        ) from None


def _check_bag(bag, i, first):
    """Return the number of tiles of a bag, or say what is wrong with it."""
    shape = tuple(bag.shape) if hasattr(bag, "shape") else np.shape(bag)
    if len(shape) != 2 or shape[0] < 1 or shape[1:] != tuple(np.shape(first))[1:]:
        raise ValueError(
            f"bags must be of shape (tiles, features), at least one tile and as many features as "
            f"bag 0, {tuple(np.shape(first))}; bag {i} has shape {shape}."
        )
    tiles = np.asarray(bag)
    if tiles.dtype.kind != "f" or not np.isfinite(tiles).all():
        raise ValueError(f"bags must be finite floating point; bag {i} ({tiles.dtype}) is not.")
    return shape[0]


def _write_hdf5(path, bags, lengths, columns):
    import h5py

    first = np.asarray(bags[0])
    shape = (int(lengths.sum()), first.shape[1])
    with h5py.File(path, "w") as file:
        values = file.create_dataset("values", shape, first.dtype)
        for bag, end, length in zip(bags, np.cumsum(lengths), lengths):
            values[end - length : end] = np.asarray(bag)
        file["lengths"] = lengths
        for name, column in columns.items():
            file[name] = _encode(column) if column.dtype.kind in "UO" else column


def _write_safetensors(path, bags, lengths, columns):
    from safetensors.numpy import save_file

    values = np.concatenate([np.asarray(bag) for bag in bags])
    names = {k: _encode(c) for k, c in columns.items() if c.dtype.kind in "UO"}
    texts = {k: c.view(np.uint8).reshape(len(c), -1) for k, c in names.items()}
    numbers = {k: c for k, c in columns.items() if k not in names}
    meta = {"text": " ".join(texts)}
    save_file({"values": values, "lengths": lengths, **numbers, **texts}, path, metadata=meta)


def _encode(names):
    return np.char.encode(names.astype(str), "utf-8")


def _open(path):
    if path.suffix == ".safetensors":
        from safetensors import safe_open

        return safe_open(path, "numpy")
    import h5py

    return h5py.File(path, "r")


def _vectors(path):
    """Every array of a file but the tiles; names as str."""
    file = _open(path)
    if path.suffix != ".safetensors":
        with file:
            vectors = {name: file[name][:] for name in file if name != "values"}
        return {
            k: np.char.decode(v, "utf-8") if v.dtype.kind == "S" else v for k, v in vectors.items()
        }
    vectors = {name: file.get_tensor(name) for name in file.keys() if name != "values"}  # noqa: SIM118
    for name in (file.metadata() or {}).get("text", "").split():
        rows = np.ascontiguousarray(vectors[name])
        vectors[name] = np.char.decode(rows.view(f"S{rows.shape[1]}").ravel(), "utf-8")
    return vectors
