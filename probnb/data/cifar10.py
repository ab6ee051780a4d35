"""CIFAR-10 whose classes set the probability of an outcome, and what people saw in its test images.

Appendix J of the paper: class c of ten has p = c/10, and the outcome of an image is one draw from
Bernoulli(p). Without data at hand the images are scikit-learn's handwritten digits, and the people
are simulated.
"""

from __future__ import annotations

import hashlib
import logging
import re
import zlib
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from sklearn.datasets import load_digits

from .. import scenarios
from ..validation import check_choice, check_integer
from .augment import Mirror
from .base import ProbabilityData, Splits
from .ferplus import cut, judge
from .files import list_files
from .image_cache import MappedRows, decode_files, decode_rows

__all__ = ["CLASSES", "load_cifar10", "load_cifar10h", "load_judged_digits", "read_cifar10"]

_NAMES = "airplane automobile bird cat deer dog frog horse ship truck"
CLASSES = tuple(_NAMES.split())
"""CIFAR-10's classes, number 0 to 9."""

VOTERS = 10
"""Simulated people who judge a digit."""

log = logging.getLogger(__name__)


def load_cifar10(data_dir=None, size=None, n=None, seed=0, cache_dir=None):
    """Load images of ten classes with outcomes of probability c/10 for class c.

    Parameters
    ----------
    data_dir : path-like, optional
        As `read_cifar10` takes it. By default scikit-learn's 1,797 handwritten digits.
    size : int, optional
        Height and width of the images in pixels; by default 32, digits 16.
    n : int, optional
        How many training images, a random sample; of validation and test then at most half as
        many. By default all.
    seed : int, default=0
        Seed of the outcomes and of the sample; the test images are the same for every seed.
    cache_dir : path-like, optional
        Where decoded images are kept; by default the environment variable ``PROBNB_CACHE``, else
        the user's cache folder.

    Returns
    -------
    Splits
        Inputs are uint8 of shape (n, channels, size, size), groups the classes, row ids the
        numbers of the images, counted through training and test. A tenth of the training images
        is the validation set. Photographs are mirrored at random in training, digits are not.

    Raises
    ------
    ValueError
        If an argument is out of range, or `data_dir` holds no images of classes.
    FileNotFoundError
        If `data_dir` does not exist.

    Examples
    --------
    >>> digits = load_cifar10(n=200)
    >>> len(digits.train), len(digits.val), len(digits.test)
    (200, 100, 100)
    >>> sorted(set(digits.test.probabilities[digits.test.groups == 3].tolist()))
    [0.30000001192092896]
    """
    seed = check_integer(seed, "seed", minimum=0)
    images, labels, rows, source, photographs = _load(data_dir, size, cache_dir)
    p = labels / (labels.max() + 1)
    y = scenarios.draw_outcomes(p, np.random.SeedSequence([seed, zlib.crc32(b"cifar10")]))
    parts = cut(rows, n, seed) | {"test": cut(rows, n, 0)["test"]}
    data = {
        name: ProbabilityData(
            images[torch.from_numpy(part)],
            y[part],
            probabilities=p[part],
            groups=labels[part],
            ids=part,
            augment=(Mirror(),) if photographs and name == "train" else (),
        )
        for name, part in parts.items()
    }
    source = f"{source} p=c/10 size={images.shape[-1]} n={n} seed={seed}"
    return Splits(**data, source=source, report={"images": len(images)})


def load_cifar10h(question, data_dir, counts_dir, size=32, n=None, seed=0, cache_dir=None):
    """Load CIFAR-10's test images with one person's answer, and what the others answered.

    Parameters
    ----------
    question : str
        One of `CLASSES`, as in "is it a cat?".
    data_dir : path-like
        CIFAR-10, as `read_cifar10` takes it.
    counts_dir : path-like
        CIFAR-10H: a folder with ``counts.npy`` or ``cifar10h-counts.npy`` of shape (10000, 10),
        how many people named each class, in the original order of the test images; and, for
        images in folders, ``test_labels.npy``, their original classes in that order.
    size : int, default=32
        Height and width of the images in pixels.
    n : int, optional
        How many training images, as in `load_cifar10`.
    seed : int, default=0
        Seed of the vote that is the outcome, and of the split: the data set has none, so 60 %
        are for training, 15 % for validation and 25 % for the test.
    cache_dir : path-like, optional
        As in `load_cifar10`.

    Returns
    -------
    probnb.data.ferplus.Judged
        Splits and the other votes, about 50 an image; row ids are the numbers of the test images
        in their original order.

    Raises
    ------
    ValueError
        If an argument is out of range or images and counts do not belong together.
    FileNotFoundError
        If a file is missing.
    """
    check_choice(question, CLASSES, "question")
    seed = check_integer(seed, "seed", minimum=0)
    counts, original = _read_counts(Path(counts_dir).expanduser())
    images, labels, part, names, checksum = read_cifar10(data_dir, size, cache_dir)
    images, labels = images[torch.from_numpy(part == 1)], labels[part == 1]
    if names is not None:
        images, labels = _original_order(images, labels, names[-len(labels) :], original)
    if len(labels) != len(counts):
        raise ValueError(
            f"counts must have a row for each test image; got {len(counts)} and {len(labels)}."
        )
    agree = (counts.argmax(1) == labels).mean()
    if agree < 0.9:
        raise ValueError(
            "counts must be in the order of the test images; the class that most people named is "
            f"the image's own for {agree:.0%} of them."
        )
    rows = _parts(len(labels), seed)
    number = CLASSES.index(question)
    digest = hashlib.sha256(np.ascontiguousarray(counts.astype("<i8"))).hexdigest()
    source = f"cifar10h sha256={digest} images={checksum} question={question} size={size} n={n}"
    parts, yes = cut(rows, n, seed), counts[:, number]
    return judge(images, yes, counts.sum(1), parts, source, seed, augment=(Mirror(),))


def load_judged_digits(size=None, n=None, seed=0):
    """Load scikit-learn's digits, each judged by ten simulated people who say yes with p = c/10.

    A rehearsal of `load_cifar10h` and `probnb.data.ferplus.load_ferplus` that needs no data, and
    whose probabilities are known, so that what is estimated from votes can be checked.

    Parameters
    ----------
    size : int, optional
        Height and width of the images in pixels; by default 16.
    n : int, optional
        As in `load_cifar10`.
    seed : int, default=0
        Seed of the people, of the vote that is the outcome, and of the sample.

    Returns
    -------
    probnb.data.ferplus.Judged
        Splits, with probabilities, and the other votes.
    """
    seed = check_integer(seed, "seed", minimum=0)
    images, labels, rows, source, _ = _load(None, size, None)
    p = labels / 10
    rng = np.random.default_rng(np.random.SeedSequence([seed, zlib.crc32(b"judged")]))
    parts = cut(rows, n, seed) | {"test": cut(rows, n, 0)["test"]}
    people = np.full(len(p), VOTERS)
    source = f"{source} voters={VOTERS} size={images.shape[-1]} n={n}"
    return judge(images, rng.binomial(VOTERS, p), people, parts, source, seed, probabilities=p)


def read_cifar10(path, size=32, cache_dir=None):
    """Read images of classes, decoded once.

    Parameters
    ----------
    path : path-like
        A folder with torchvision's ``cifar-10-batches-py``, or a folder or archive of images in
        ``train/<class>/`` and ``test/<class>/``.
    size : int, default=32
        Height and width of the images returned, in pixels.
    cache_dir : path-like, optional
        As in `load_cifar10`.

    Returns
    -------
    images : torch.Tensor of shape (n, 3, size, size)
        uint8; training images first.
    labels : ndarray of shape (n,)
        Class numbers; of folders, in the alphabetical order of their names.
    part : ndarray of shape (n,)
        0 for training, 1 for test.
    names : list of str or None
        The files' names, in whose order images of folders are; None where they are in CIFAR-10's
        original order (torchvision's format).
    checksum : str
        SHA-256 of the contents.

    Raises
    ------
    ValueError
        If there are no images of at least two classes, or torchvision's files are damaged.
    FileNotFoundError
        If `path` does not exist.
    """
    size = check_integer(size, "size", minimum=8)
    path = Path(path).expanduser()
    path = path.parent if path.name == "cifar-10-batches-py" else path
    if (path / "cifar-10-batches-py").is_dir():
        return _read_torchvision(path, size, cache_dir)
    try:
        listing = list_files(path)
        names = [name for name in listing.pictures() if name in listing.files]
        decoded = decode_files(path, listing, names, size, cache_dir=cache_dir)
    except (FileNotFoundError, ValueError) as error:
        raise type(error)(f"data_dir {error}") from None
    places = [PurePosixPath(n) for n in names if decoded.reasons[decoded.row[n]] is None]
    inside = [place for place in places if place.parent.parent.name in ("train", "test")]
    inside.sort(key=lambda place: (place.parts[-3] == "test", *place.parts[-2:]))
    if left := sorted({*names, *listing.skipped} - {str(place) for place in inside}):
        log.warning("CIFAR-10: skipped %d files: %s", len(left), ascii(left[:10]))
    classes = sorted({place.parent.name for place in inside})
    if len(classes) < 2:
        raise ValueError(
            "data_dir must hold images in train/<class>/ and test/<class>/ of at least two classes;"
            f" {str(path)!r} has {len(inside)} that can be decoded, of the classes {classes}. "
            + listing.left_out()
        )
    part = np.array([place.parent.parent.name == "test" for place in inside], np.int64)
    labels = np.array([classes.index(place.parent.name) for place in inside])
    images = MappedRows(decoded.path, [decoded.row[str(place)] for place in inside]).tensor()
    return images, labels, part, [place.name for place in inside], decoded.checksum


def _load(data_dir, size, cache_dir):
    """Images, classes, rows of the parts, what they are, and whether they are photographs."""
    if data_dir is None:
        size = check_integer(16 if size is None else size, "size", minimum=8)
        data, labels = load_digits(return_X_y=True)
        images = torch.from_numpy(np.minimum(data * 16, 255).reshape(-1, 1, 8, 8)).float()
        images = torch.nn.functional.interpolate(images, (size, size), mode="bilinear")
        images = images.round().to(torch.uint8)
        rows = _parts(len(labels), 0)
        return images, labels, rows, "scikit-learn digits", False
    images, labels, part, _, checksum = read_cifar10(data_dir, size or 32, cache_dir)
    order = np.random.default_rng(0).permutation(np.flatnonzero(part == 0))
    points = len(order) // 10
    rows = {"train": np.sort(order[points:]), "val": np.sort(order[:points])}
    rows["test"] = np.flatnonzero(part == 1)
    return images, labels, rows, f"cifar10 sha256={checksum}", True


def _parts(n, seed):
    """Random rows of the three parts, 60, 15 and 25 %."""
    order = np.random.default_rng(seed).permutation(n)
    cuts = np.split(order, [round(n * 0.6), round(n * 0.75)])
    return dict(zip(("train", "val", "test"), map(np.sort, cuts)))


def _read_torchvision(path, size, cache_dir):
    from torchvision.datasets import CIFAR10  # verifies the files' checksums before it reads them

    try:
        sets = [CIFAR10(path, train=train) for train in (True, False)]
    except RuntimeError as error:
        raise ValueError(f"data_dir must hold CIFAR-10 whole; {str(path)!r}: {error}.") from None
    data = np.concatenate([s.data for s in sets])
    images = MappedRows(decode_rows(data, size, cache_dir=cache_dir).path, range(len(data)))
    labels = np.concatenate([np.asarray(s.targets) for s in sets])
    part = np.repeat([0, 1], [len(s.data) for s in sets])
    checksum = hashlib.sha256(np.ascontiguousarray(data)).hexdigest()
    return images.tensor(), labels, part, None, checksum


def _read_counts(folder):
    path = folder / "counts.npy"
    path = path if path.exists() else folder / "cifar10h-counts.npy"
    if not path.exists():
        raise FileNotFoundError(f"counts_dir must hold counts.npy; {str(folder)!r} does not.")
    counts = np.load(path, allow_pickle=False)
    if counts.ndim != 2 or counts.shape[1] != len(CLASSES) or counts.dtype.kind not in "iuf":
        raise ValueError(
            f"{path.name} must be whole numbers of shape (n, {len(CLASSES)}); got {counts.shape}, "
            f"{counts.dtype}."
        )
    labels = folder / "test_labels.npy"
    return counts.astype(np.int64), np.load(labels, allow_pickle=False) if labels.exists() else None


def _original_order(images, labels, names, original):
    """Put images of folders in the order that `original` lists their classes in, by their numbers.

    A file is called by its number among the images of its class, or among all images.
    """
    if original is None:
        raise FileNotFoundError(
            "counts_dir must hold test_labels.npy, the order of the test images, where data_dir "
            "is a folder or an archive of images."
        )
    numbers = np.array([int((re.findall(r"\d+", name) or [-1])[-1]) for name in names])
    places = {*zip(labels.tolist(), numbers.tolist())}
    if len(places) < len(names) or (numbers < 0).any():
        raise ValueError(
            "data_dir must have the number of a test image in the name of its file, each once in "
            f"its class; got names such as {names[0]!r}."
        )
    if not np.array_equal(np.bincount(original), np.bincount(labels)):
        raise ValueError("test_labels must have as many images of each class as data_dir.")
    place, all_of_them = np.empty(len(labels), np.int64), np.argsort(numbers)
    place[np.argsort(original, kind="stable")] = np.lexsort((numbers, labels))
    if len(set(numbers)) == len(numbers) and not np.array_equal(place, all_of_them):
        raise ValueError("test_labels must have the classes of data_dir's images by their numbers.")
    return images[torch.from_numpy(place)], labels[place]
