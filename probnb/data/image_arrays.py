"""Images that come as one array: NumPy, HDF5 or Zarr, read block by block."""

from __future__ import annotations

from pathlib import Path

import numpy as np

__all__ = ["is_array", "open_array"]

_ENDINGS = (".npy", ".npz", ".h5", ".hdf5", ".zarr")


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
        Vectors of n values that lie beside it in the file: outcomes, groups.

    Raises
    ------
    ValueError
        If the file is damaged, holds no such array, or values that are not images.
    """
    path = Path(path)
    try:
        arrays = _arrays(path)
    except (OSError, ValueError, KeyError, EOFError, ImportError) as error:
        raise ValueError(f"images: {path.name} cannot be read: {error}") from None
    candidates = [name for name, array in arrays.items() if array.ndim in (3, 4)]
    if key is None and len(candidates) == 1:
        key = candidates[0]
    if key not in candidates:
        shapes = ", ".join(f"{name} {tuple(a.shape)}" for name, a in arrays.items()) or "nothing"
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
    others = {k: np.asarray(a) for k, a in arrays.items() if a.shape == images.shape[:1]}
    return _channels_last(images, path), others


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
    try:
        import zarr
    except ImportError:
        raise ImportError("Zarr arrays need `pip install zarr`") from None
    store = zarr.open(path, mode="r")
    return {path.stem: store} if isinstance(store, zarr.Array) else dict(store.arrays())


class _Moved:
    """An array whose channels stand second, sliced as if they stood last."""

    def __init__(self, array):
        self.array, self.dtype = array, array.dtype
        n, channels, *size = array.shape
        self.shape, self.ndim = (n, *size, channels), 4

    def __getitem__(self, rows):
        return np.moveaxis(np.asarray(self.array[rows]), 1, -1)


def _channels_last(images, path):
    if images.ndim == 3 or images.shape[3] <= 4:
        return images
    if images.shape[1] <= 4:
        return _Moved(images)
    raise ValueError(
        f"images: {path.name} must have 1 to 4 channels, second or last; got shape "
        f"{tuple(images.shape)}."
    )
