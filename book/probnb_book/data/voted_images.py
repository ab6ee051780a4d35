"""Images whose outcomes are uncertain: CIFAR-10 by a rule, and what many people judged.

Appendix J of the paper: class c of CIFAR-10's ten has p = c/10, and the outcome of an image is one
draw from Bernoulli(p). Without data at hand the images are scikit-learn's handwritten digits.

Nobody knows the probability that a person calls a face neutral, but ten people who were asked
about the same face measure it. One of their votes, drawn at random, becomes the outcome y that
training and every ordinary metric see; the others, k of n, say how far a prediction is from the
probability, without bias, through `probnb.metrics.repeated_distance`. CIFAR-10H has the votes of
fifty people on each test image of CIFAR-10; of FER+, Barsoum et al. (2016) asked ten people about
each image of FER-2013 which of eight emotions they see, or none that they can name; of the digits,
the people are simulated. Nothing of the data sets comes with this project.
"""

import hashlib
import logging
import re
import zlib
from collections import namedtuple
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits

from probnb.data.base import Mirror, ProbabilityData, split
from probnb.images.files import list_files
from probnb.images.pictures import decode_files, decode_rows
from probnb.metrics.votes import check_votes
from probnb.training.targets import draw_outcomes
from probnb.validation import check_choice, check_integer

log = logging.getLogger(__name__)

_NAMES = "airplane automobile bird cat deer dog frog horse ship truck"
CLASSES = tuple(_NAMES.split())
"""CIFAR-10's classes, number 0 to 9."""

_NAMES = "neutral happiness surprise sadness anger disgust fear contempt unknown"
EMOTIONS = tuple(_NAMES.split())
"""What a voter of FER+ could say, in the order of the columns."""

QUESTIONS = {
    **{name: (name,) for name in EMOTIONS[:-1]},
    "negative": ("sadness", "anger", "disgust", "fear", "contempt"),
}
"""Yes-or-no questions, and the answers that count as yes; a vote for "unknown" is a no."""

SIDE = 48
"""Height and width of FER+'s images as distributed, in pixels."""

VOTERS = 10
"""Simulated people who judge a digit."""

Judged = namedtuple("Judged", "splits votes")
"""Data whose outcome is one vote of many: `Splits`, whose probabilities are unknown but where
people were simulated, and a DataFrame by row id (``id``) of all three parts: ``split``, ``k``, the
number of *other* people who said yes, and ``n``, how many others there are."""


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
    images, labels, rows, source, augment = _load(data_dir, size, cache_dir)
    p = labels / (labels.max() + 1)
    y = draw_outcomes(p, np.random.SeedSequence([seed, zlib.crc32(b"cifar10")]))
    source = f"{source} p=c/10 size={images.shape[-1]} n={n} seed={seed}"
    return split(ProbabilityData(images, y, p, labels), cut(rows, n, seed), source, augment)


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
    Judged
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
    folder = Path(counts_dir).expanduser()
    counts = np.load(next(folder.glob("*counts.npy"), folder / "counts.npy"), allow_pickle=False)
    images, labels, part, names, checksum = read_cifar10(data_dir, size, cache_dir)
    images, labels = images[torch.from_numpy(part == 1)], labels[part == 1]
    if names is not None:
        original = np.load(folder / "test_labels.npy", allow_pickle=False)
        images, labels = _original_order(images, labels, names[-len(labels) :], original)
    agree = (counts.argmax(1) == labels).mean()
    if agree < 0.9:
        raise ValueError(
            "counts must be in the order of the test images; the class that most people named is "
            f"the image's own for {agree:.0%} of them."
        )
    rows = _parts(len(labels), seed)
    digest = hashlib.sha256(np.ascontiguousarray(counts.astype("<i8"))).hexdigest()
    source = f"cifar10h sha256={digest} images={checksum} question={question} size={size} n={n}"
    parts, yes = cut(rows, n, seed, seed), counts[:, CLASSES.index(question)]
    return judge(images, yes, counts.sum(1), parts, source, seed, augment=(Mirror(),))


def load_judged_digits(size=None, n=None, seed=0):
    """Load scikit-learn's digits, each judged by ten simulated people who say yes with p = c/10.

    A rehearsal of `load_cifar10h` and `load_ferplus` that needs no data, and
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
    Judged
        Splits, with probabilities, and the other votes.
    """
    images, labels, rows, source, _ = _load(None, size, None)
    p = labels / 10
    rng = np.random.default_rng(np.random.SeedSequence([seed, zlib.crc32(b"judged")]))
    people = np.full(len(p), VOTERS)
    source = f"{source} voters={VOTERS} size={images.shape[-1]} n={n}"
    yes, parts = rng.binomial(VOTERS, p), cut(rows, n, seed)
    return judge(images, yes, people, parts, source, seed, probabilities=p)


def load_ferplus(question, data_dir, size=24, n=None, seed=0):
    """Load faces with one person's answer to a question, and what the others answered.

    Parameters
    ----------
    question : {"neutral", "happiness", "negative", ...}
        A key of `QUESTIONS`: one of eight emotions, or ``"negative"`` for five of them.
    data_dir : path-like
        As `read_ferplus` takes it.
    size : {48, 24, 16, 12}, default=24
        Height and width of the images in pixels; smaller ones are means of blocks.
    n : int, optional
        How many training images, a random sample; of validation and test then at most half as
        many. By default all of every part.
    seed : int, default=0
        Seed of the vote that is the outcome, and of the sample of training and validation
        images; the sample of test images is the same for every seed.

    Returns
    -------
    Judged
        Splits as the data set has them (training, public test, private test); inputs are uint8 of
        shape (n, 1, size, size), row ids the numbers of the images in the file. A mirrored face
        has the same expression, so training images are mirrored at random.

    Raises
    ------
    ValueError
        If an argument is out of range or the files are not FER+.
    FileNotFoundError
        If there is nothing at `data_dir`.
    """
    check_choice(question, QUESTIONS, "question")
    if SIDE % check_integer(size, "size", minimum=12):
        raise ValueError(f"size must be 48, 24, 16 or 12; got {size}.")
    images, votes, part, checksum = read_ferplus(data_dir)
    yes = votes[:, [EMOTIONS.index(name) for name in QUESTIONS[question]]].sum(1)
    rows = {name: np.flatnonzero(part == i) for i, name in enumerate(("train", "val", "test"))}
    source = f"ferplus sha256={checksum} question={question} size={size} n={n}"
    parts, images = cut(rows, n, seed), shrink(images, size)
    return judge(images, yes, votes.sum(1), parts, source, seed=seed, augment=(Mirror(),))


def judge(images, k, n, parts, source, seed=0, probabilities=None, augment=()):
    """Make data to train on from images and the votes about them.

    Parameters
    ----------
    images : torch.Tensor of shape (rows, channels, height, width)
        uint8.
    k : array-like of shape (rows,)
        Number of people who said yes.
    n : array-like of shape (rows,)
        Number of people who were asked.
    parts : dict of str to array-like of int
        Row numbers of ``"train"``, ``"val"`` and ``"test"``; they become the row ids.
    source : str
        What identifies images, votes and question; the seed is added to it.
    seed : int, default=0
        Seed of the vote that becomes the outcome: a vote depends on it and on the row's number
        alone, not on which other rows are used.
    probabilities : array-like of shape (rows,), optional
        Where people are simulated, the probabilities of a yes.
    augment : tuple of callable, default=()
        As `probnb.data.base.ProbabilityData` takes it; for the training part.

    Returns
    -------
    Judged
        Splits and the other votes.

    Raises
    ------
    ValueError
        As `draw_vote` and `probnb.data.base.Splits`.
    """
    y, k, n = draw_vote(k, n, seed)
    rows = np.concatenate([*parts.values()])
    votes = pd.DataFrame({"k": k, "n": n}).rename_axis("id").loc[rows]
    votes.insert(0, "split", np.repeat([*parts], [*map(len, parts.values())]))
    data = ProbabilityData(images, y, probabilities=probabilities)
    return Judged(split(data, parts, f"{source} seed={seed}", augment), votes)


def draw_vote(k, n, seed=0):
    """Take one vote of each row at random, without regard to what it says.

    Parameters
    ----------
    k : array-like of shape (rows,)
        Number of people who said yes.
    n : array-like of shape (rows,)
        Number of people who were asked, at least 2 so that one is left to score with.
    seed : int, default=0
        Seed of the draw.

    Returns
    -------
    y : ndarray of shape (rows,)
        The vote, 0 or 1; int64.
    k_rest, n_rest : ndarray of shape (rows,)
        The others: given the probability of a yes, independent of `y`; int64.

    Raises
    ------
    ValueError
        If a count is not an integer, `n` is less than 2, or `k` is not in [0, n].

    Examples
    --------
    >>> draw_vote([0, 10], [10, 10])
    (array([0, 1]), array([0, 9]), array([9, 9]))
    """
    seed = check_integer(seed, "seed", minimum=0)
    votes = check_votes(k, n, ("k", "n"))
    k, n = votes.ones.astype(np.int64), votes.counts.astype(np.int64)
    y = (np.random.default_rng(seed).random(len(k)) * n < k).astype(np.int64)
    return y, k - y, n - 1


def cut(rows, n, seed=0, test_seed=0):
    """Take a random sample of `n` training rows, and at most half as many of each other part.

    `rows` are the row numbers of the three parts by name. A small experiment is not spent on
    predicting a large test set after every epoch; samples of fewer rows are within those of more.
    The test rows are by default the same for every seed.
    """
    if n is None:
        return rows
    n = check_integer(n, "n", minimum=8)
    if n > len(rows["train"]):
        raise ValueError(f"n must be at most the {len(rows['train'])} training images; got {n}.")
    found = {}
    for i, (name, part) in enumerate(rows.items()):
        words = [test_seed if name == "test" else seed, zlib.crc32(b"cut")]
        rng = np.random.default_rng(np.random.SeedSequence(words).spawn(3)[i])
        found[name] = np.sort(rng.permutation(part)[: n if name == "train" else n // 2])
    return found


def read_cifar10(path, size=32, cache_dir=None):
    """Read images of classes, decoded once.

    Parameters
    ----------
    path : path-like
        torchvision's folder ``cifar-10-batches-py``, or a folder or archive of images in
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
    if path.name == "cifar-10-batches-py":
        return _read_torchvision(path.parent, size, cache_dir)
    listing = list_files(path)
    images, table, checksum = decode_files(path, listing, size, cache_dir=cache_dir)
    places = map(PurePosixPath, table.index[table["reason"].isna()])
    inside = [place for place in places if place.parent.parent.name in ("train", "test")]
    inside.sort(key=lambda place: (place.parts[-3] == "test", *place.parts[-2:]))
    used = [*map(str, inside)]
    if left := sorted({*table.index, *listing.skipped} - {*used}):
        log.warning("CIFAR-10: skipped %d files: %s", len(left), ascii(left[:10]))
    classes, labels = np.unique([place.parent.name for place in inside], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"data_dir must hold images in train/<class>/ and test/<class>/; {str(path)!r} has "
            f"{len(inside)} that can be decoded, of {len(classes)} classes. {listing.left_out()}"
        )
    part = np.array([place.parts[-3] == "test" for place in inside], np.int64)
    images, names = images[table.loc[used, "row"]].tensor(), [place.name for place in inside]
    return images, labels, part, names, checksum


def _load(data_dir, size, cache_dir):
    """Images, classes, rows of the parts, what they are, and the augmentation of photographs."""
    if data_dir is None:
        size = check_integer(size or 16, "size", minimum=8)
        data, labels = load_digits(return_X_y=True)
        images = torch.from_numpy(np.minimum(data * 16, 255).reshape(-1, 1, 8, 8)).float()
        images = torch.nn.functional.interpolate(images, (size, size), mode="bilinear")
        images = images.round().to(torch.uint8)
        rows = _parts(len(labels), 0)
        return images, labels, rows, "scikit-learn digits", ()
    images, labels, part, _, checksum = read_cifar10(data_dir, size or 32, cache_dir)
    order = np.random.default_rng(0).permutation(np.flatnonzero(part == 0))
    points = len(order) // 10
    rows = {"train": np.sort(order[points:]), "val": np.sort(order[:points])}
    rows["test"] = np.flatnonzero(part == 1)
    return images, labels, rows, f"cifar10 sha256={checksum}", (Mirror(),)


def _parts(n, seed):
    """Random rows of the three parts, 60, 15 and 25 %."""
    order = np.random.default_rng(seed).permutation(n)
    cuts = np.split(order, [round(n * 0.6), round(n * 0.75)])
    return dict(zip(("train", "val", "test"), map(np.sort, cuts)))


def _read_torchvision(path, size, cache_dir):
    from torchvision.datasets import CIFAR10  # verifies the files' checksums before it reads them

    sets = [CIFAR10(path, train=train) for train in (True, False)]
    data = np.concatenate([s.data for s in sets])
    images, _, checksum = decode_rows(data, size, cache_dir=cache_dir)
    labels = np.concatenate([np.asarray(s.targets) for s in sets])
    part = np.repeat([0, 1], [len(s.data) for s in sets])
    return images.tensor(), labels, part, None, checksum


def _original_order(images, labels, names, original):
    """Put images of folders in the order that `original` lists their classes in, by their numbers.

    A file is called by its number among the images of its class, or among all images.
    """
    numbers = np.array([int((re.findall(r"\d+", name) or [-1])[-1]) for name in names])
    if len({*zip(labels.tolist(), numbers.tolist())}) < len(names) or (numbers < 0).any():
        raise ValueError(
            "data_dir must have the number of a test image in the name of its file, each once in "
            f"its class; got names such as {names[0]!r}."
        )
    place = np.empty(len(labels), np.int64)
    place[np.argsort(original, kind="stable")] = np.lexsort((numbers, labels))
    of_all = len({*numbers}) == len(numbers)
    if (labels[place] != original).any() or (of_all and (place != np.argsort(numbers)).any()):
        raise ValueError("test_labels must be the classes of data_dir's images by their numbers.")
    return images[torch.from_numpy(place)], labels[place]


def read_ferplus(path):
    """Read the images and all votes.

    Parameters
    ----------
    path : path-like
        A folder with ``fer2013.csv`` (pixels, as Kaggle gives it) and ``fer2013new.csv`` (votes, as
        Microsoft gives it), or an ``.npz`` of ``images`` (n, 48, 48), ``votes`` (n, 9) and
        ``split`` (n,), 0 training, 1 public test, 2 private test; or a folder with
        ``ferplus.npz``.

    Returns
    -------
    images : ndarray of shape (n, 48, 48)
        uint8.
    votes : ndarray of shape (n, 9)
        How many of ten people chose each of `EMOTIONS`; int64.
    split : ndarray of shape (n,)
        0, 1 or 2.
    checksum : str
        SHA-256 of what was read.

    Raises
    ------
    ValueError
        If the files do not hold what they should.
    FileNotFoundError
        If there is nothing at `path`.

    Notes
    -----
    Of the CSV files three kinds of rows are left out: images that a voter called no face, images
    without at least two votes, and later copies of an image that occurs more than once, in
    whatever part, so that no test image was trained on.
    """
    path = Path(path).expanduser()
    path = path / "ferplus.npz" if (path / "ferplus.npz").exists() else path
    images, votes, split = _read_csv(path) if path.is_dir() else _read_npz(path)
    digest = hashlib.sha256(np.ascontiguousarray(images))
    for part in (votes.astype("<i8"), split.astype("<i8")):
        digest.update(np.ascontiguousarray(part))
    return images, votes, split, digest.hexdigest()


def shrink(images, size):
    """Images of shape (n, side, side) as a tensor (n, 1, size, size) of rounded block means."""
    n, side, _ = images.shape
    block = side // size
    sums = images.reshape(n, size, block, size, block).sum((2, 4), dtype=np.uint16)
    return torch.from_numpy(((sums + block * block // 2) // block**2).astype(np.uint8))[:, None]


def _read_npz(path):
    with np.load(path, allow_pickle=False) as file:
        names = "images", "votes", "split"
        images, votes, split = (file[k] if k in file else np.zeros(0) for k in names)
    shapes = images.shape[1:], votes.shape, split.shape
    right = shapes == ((SIDE, SIDE), (len(images), len(EMOTIONS)), (len(images),))
    if not right or images.dtype != np.uint8 or not np.isin(split, (0, 1, 2)).all():
        raise ValueError(
            f"{path.name} must have images (n, {SIDE}, {SIDE}) of uint8, votes (n, 9) and split "
            f"(n,) of 0, 1 and 2; got {images.shape} of {images.dtype}, {shapes[1:]}."
        )
    return images, votes.astype(np.int64), split.astype(np.int64)


def _read_csv(folder):
    tables = []
    for name in ("fer2013.csv", "fer2013new.csv"):
        try:
            tables.append(pd.read_csv(folder / name))
        except ValueError as error:  # of pandas' parser, too
            raise ValueError(f"data_dir: {name} cannot be read: {error}") from None
    pixels, labels = tables
    if not {"Usage", "NF", *EMOTIONS} <= {*labels} or not {"Usage", "pixels"} <= {*pixels}:
        raise ValueError("data_dir: fer2013.csv and fer2013new.csv must have the columns of FER+.")
    if not np.array_equal(pixels["Usage"], labels["Usage"]):
        raise ValueError(
            "data_dir must hold fer2013.csv and fer2013new.csv, the same images row by row, as "
            f"their columns Usage say; got {len(pixels)} and {len(labels)} rows."
        )
    usage = {"Training": 0, "PublicTest": 1, "PrivateTest": 2}
    split = labels["Usage"].map(usage).fillna(-1).to_numpy(np.int64)
    votes = labels[[*EMOTIONS]].to_numpy(np.int64)
    keep = ~pixels["pixels"].duplicated().to_numpy() & (labels["NF"] == 0).to_numpy()
    keep &= (votes.sum(1) >= 2) & (split >= 0)
    images = [np.array(text.split(), np.uint8) for text in pixels["pixels"][keep]]
    return np.stack(images).reshape(len(images), SIDE, SIDE), votes[keep], split[keep]
