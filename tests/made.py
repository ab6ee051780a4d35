"""Images, folders, archives and a small table that tests make."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import numpy as np
import pandas as pd
from PIL import Image


def encode(image, kind="PNG", **options):
    file = io.BytesIO()
    (Image.fromarray(image) if isinstance(image, np.ndarray) else image).save(file, kind, **options)
    return file.getvalue()


def write_files(folder, contents):
    """Write the content of each name, and return the folder."""
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def member(name, **settings):
    found = tarfile.TarInfo(name)
    for key, value in settings.items():
        setattr(found, key, value)
    return found


def tar_of(entries, members=()):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in entries:
            tar.addfile(member(name, size=len(content)), io.BytesIO(content))
        for other in members:
            tar.addfile(other)
    return buffer.getvalue()


def zip_of(entries, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return buffer.getvalue()


PACK = {
    "tar": tar_of,
    "gzip": lambda entries: gzip.compress(tar_of(entries)),
    "bzip2": lambda entries: bz2.compress(tar_of(entries)),
    "xz": lambda entries: lzma.compress(tar_of(entries)),
    "zip": zip_of,
    "stored zip": lambda entries: zip_of(entries, zipfile.ZIP_STORED),
    "lzma zip": lambda entries: zip_of(entries, zipfile.ZIP_LZMA),
}
CONTENT = {"a.jpg": b"one", "sub/b.jpg": b"two" * 1000, "sub/c.txt": b""}

Y = np.array([1, 1, 0, 0, 1, 0] * 4)
M = np.round(np.linspace(0.015, 0.985, 24), 3)


def plain(**more):
    """Twenty-four outcomes and predictions of them, and other columns."""
    return pd.DataFrame({"y": Y, "m": M, **more})
