"""Images that come as one array: NumPy, HDF5 or Zarr, read block by block."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np

__all__ = ["is_array", "open_array"]

_ENDINGS = (".npy", ".npz", ".h5", ".hdf5", ".zarr")
# What NumPy, HDF5 and Zarr raise for files that are damaged, and their filters.
_BROKEN = (
    *(OSError, ValueError, KeyError, EOFError, RuntimeError, ImportError, zipfile.BadZipFile),
    *(zlib.error, SyntaxError, tokenize.TokenError),  # the last two: NumPy's header is Python
)


def is_array(path):
    """Whether a path names an array file (or Zarr folder) rather than images."""
    path = Path(path)
    zarr = any((path / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup"))
    return path.name.lower().endswith(_ENDINGS) or zarr


def open_array(path, key=None):
    """Open an array of images, (n, height, width, channels) whatever its order of axes.

    Parameters
    ----------
    path : path-like
        ``.npy``, ``.npz``, ``.h5``, ``.hdf5``, or a Zarr folder.
    key : str, optional
        Which array of a file that holds several.

    Returns
    -------
    images : array of shape (n, height, width) or (n, height, width, channels)
        uint8 or uint16, on disk where the format allows; anything that can be sliced.
    others : dict of str to ndarray
        The vectors of n values, or of shape (n, 1), that lie beside it: outcomes, groups.
    shapes : str
        What lies in the file, for messages.
    """
    path = Path(path)
    try:
        arrays = _arrays(path)
    except _BROKEN as error:
        raise ValueError(f"images: {path.name} cannot be read: {error}") from None
    shapes = ", ".join(f"{name} {tuple(a.shape)}" for name, a in arrays.items()) or "nothing"
    candidates = [name for name, array in arrays.items() if array.ndim in (3, 4)]
    key = candidates[0] if key is None and len(candidates) == 1 else key
    if key not in candidates:
        raise ValueError(
            f"images: {path.name} must hold one array of images (n, height, width, channels), or "
            f"key must name one; it holds {shapes}; got key={key!r}."
        )
    images = arrays.pop(key)
    if str(images.dtype) not in ("uint8", "uint16"):
        raise ValueError(
            f"images: {path.name} must hold uint8 or uint16; got {images.dtype}. Bring floats to "
            "0 to 255 yourself: only you know what their range means."
        )
    if images.ndim == 4 and images.shape[3] > 4 and images.shape[1] > 4:
        raise ValueError(
            f"images: {path.name} must have 1 to 4 channels, second or last; got shape "
            f"{tuple(images.shape)}."
        )
    n = images.shape[0]
    others = {
        name: _Rows(array, path.name)[:].reshape(n)
        for name, array in arrays.items()
        if tuple(array.shape) in ((n,), (n, 1))
    }
    return _Rows(images, path.name, images.ndim == 4 and images.shape[3] > 4), others, shapes


def _arrays(path):
    """Every array in a file, by name."""
    if path.name.lower().endswith(".npy"):
        return {path.stem: np.load(path, mmap_mode="r", allow_pickle=False)}
    if path.name.lower().endswith(".npz"):
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    if path.name.lower().endswith((".h5", ".hdf5")):
        import h5py

        file, found = h5py.File(path, "r"), {}
        file.visititems(
            lambda name, item: found.update({name: item} if isinstance(item, h5py.Dataset) else {})
        )
        return found
    import zarr

    store = zarr.open(path, mode="r")
    return {path.stem: store} if isinstance(store, zarr.Array) else dict(store.arrays())


class _Rows:
    """An array on disk, sliced as if its channels stood last; says which file is damaged."""

    def __init__(self, array, name, channels_second=False):
        self.array, self.name, self.channels_second = array, name, channels_second
        self.dtype, self.ndim, self.shape = array.dtype, array.ndim, tuple(array.shape)
        if channels_second:
            self.shape = (self.shape[0], *self.shape[2:], self.shape[1])

    def __getitem__(self, rows):
        try:
            found = np.asarray(self.array[rows])
        except _BROKEN as error:
            raise ValueError(f"images: {self.name} is damaged: {error}") from None
        return np.moveaxis(found, 1, -1) if self.channels_second else found
