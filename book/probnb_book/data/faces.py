"""Faces whose age sets the probability of an outcome: the inputs of the synthetic experiments.

Section 7.1 of the paper: a face carries its age z, the age sets p = psi(z), and the outcome is
one draw from Bernoulli(p). Without data at hand the faces are drawn; with UTKFace they are
photographs.
"""

import logging
import re
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from probnb.data.base import Mirror, ProbabilityData, split
from probnb.images.files import list_files
from probnb.images.pictures import decode_files
from probnb.training.targets import draw_outcomes
from probnb.validation import check_choice, check_integer

from .. import scenarios
from .drawn_faces import VERSION, drawn_faces

log = logging.getLogger(__name__)

PAPER_SIZES = (16_641, 4_738, 2_329)
"""Training, validation and test images in the paper; any other total is cut in proportion."""

DRAWN = 4_500
"""How many faces are drawn by default: minutes of training on two cores."""


def load_faces(scenario, data_dir=None, size=32, n=None, seed=0, cache_dir=None, mirror=False):
    """Load faces with outcomes of one scenario, split into training, validation and test.

    Parameters
    ----------
    scenario : {"linear", "sigmoid", "centered", "skewed", "discrete"}
        How the age sets the probability; see `probnb_book.scenarios.probability`.
    data_dir : path-like, optional
        UTKFace: a folder of images, the ``.tar.gz`` as distributed, or another tar or zip. By
        default faces are drawn.
    size : int, default=32
        Height and width of the images in pixels, at least 8.
    n : int or tuple of int, optional
        How many images, at least 6: drawn faces by default 4,500, of UTKFace all. Fewer than all
        are a random sample. They are cut in the paper's proportions, 0.70 : 0.20 : 0.10; three
        numbers are how many to train, to validate and to test on.
    seed : int, default=0
        Seed of the drawn faces, of the outcomes and of the split.
    cache_dir : path-like, optional
        Where decoded photographs are kept; by default the environment variable
        ``PROBNB_CACHE``, else the user's cache folder.
    mirror : bool, default=False
        Whether training mirrors half of the images of each batch: a mirrored face has the same
        age.

    Returns
    -------
    Splits
        Inputs are uint8 of shape (n, 3, size, size), groups the ages in years (int64), outcomes
        and probabilities float32, ids the place among the sorted file names, or the number of
        the drawn face. ``source`` names the data down to checksum and seed; ``report`` counts
        images, and for UTKFace what `read_utkface` has to say.

    Raises
    ------
    ValueError
        If an argument is out of range, or `data_dir` has no readable image.
    FileNotFoundError
        If `data_dir` does not exist.

    Notes
    -----
    Liu et al. (2022), Section 7.1. The outcomes of an image depend on its place among the sorted
    file names, the scenario and the seed, and not on `n` or `size`.

    UTKFace as distributed has 375 sets of two to four images that are the same pixel for pixel,
    205 of them with different ages. Images of one set stay in one split: the copies follow the
    first of them in the random order, and a cut that would go through a set comes after it (so
    that a split may have up to three images more). ``source`` then ends in ``copies=together``.

    Examples
    --------
    >>> faces = load_faces("linear", n=50)
    >>> len(faces.train), len(faces.val), len(faces.test)
    (35, 10, 5)
    >>> faces.train.inputs.shape, faces.train.inputs.dtype
    (torch.Size([35, 3, 32, 32]), torch.uint8)
    """
    check_choice(scenario, scenarios.SCENARIOS, "scenario")
    size = check_integer(size, "size", minimum=8)
    seed = check_integer(seed, "seed", minimum=0)
    check_choice(mirror, (True, False), "mirror")
    sizes = None
    if isinstance(n, (tuple, list)):
        if len(n) != 3:
            raise ValueError(f"n must be a number or three, to train, validate, test; got {n!r}.")
        sizes = [
            check_integer(k, f"n[{i}]", least) for i, (k, least) in enumerate(zip(n, (2, 1, 1)))
        ]
        n = sum(sizes)
    n = n if n is None else check_integer(n, "n", minimum=6)
    if data_dir is None:
        images, ages = drawn_faces(DRAWN if n is None else n, size=size, seed=seed)
        source, report = f"drawn-faces v{VERSION}", {}
    else:
        images, ages, checksum, report = read_utkface(data_dir, size, cache_dir)
        source = f"utkface sha256={checksum}"
    n = len(images) if n is None else n
    if not 6 <= n <= len(images):
        raise ValueError(f"n must be from 6 to the {len(images)} images of data_dir; got {n}.")
    p = scenarios.probability(ages, scenario)
    y = draw_outcomes(p, np.random.SeedSequence([seed, zlib.crc32(scenario.encode())]))
    copies = report.get("duplicates", [])
    order, end_of = copies_together(np.random.default_rng(seed).permutation(len(images)), copies)
    *ends, total = np.cumsum(sizes or PAPER_SIZES).tolist()
    cuts = [round(n * end / total) for end in ends]
    rows = np.split(order[: end_of[n]], end_of[cuts])
    cut = f"n={n}" if sizes is None else f"sizes={'+'.join(map(str, sizes))}"
    source = f"{source} scenario={scenario} size={size} {cut} seed={seed}"
    source += " copies=together" if copies else ""
    report = {**report, "images": len(images), "used": sum(map(len, rows))}
    data = ProbabilityData(images, y, probabilities=p, groups=ages)
    parts = dict(zip(("train", "val", "test"), rows))
    return split(data, parts, source, (Mirror(),) if mirror else (), report)


def copies_together(order, copies):
    """Bring rows that are copies of each other next to the first of them in a random order.

    Parameters
    ----------
    order : ndarray of shape (n,)
        The rows 0 to n - 1 in any order.
    copies : list of list of int
        Rows of each set of copies.

    Returns
    -------
    order : ndarray of shape (n,)
        The same rows, the same order where there are no copies.
    end_of : ndarray of shape (n + 1,)
        The first place, from each place on, at which a cut does not go through a set.
    """
    first = np.arange(len(order))
    for rows in copies:
        first[rows] = rows[0]
    place = np.full(len(order), len(order))
    np.minimum.at(place, first[order], np.arange(len(order)))
    order = order[np.argsort(place[first[order]], kind="stable")]
    inside = np.r_[False, first[order][1:] == first[order][:-1], False]
    clear = np.where(inside, len(order), np.arange(len(order) + 1))
    return order, np.minimum.accumulate(clear[::-1])[::-1]


def age_from_name(name):
    """Read the age from the name of a UTKFace image.

    Parameters
    ----------
    name : str
        File name, without folders: ``[age]_[gender]_[race]_[time].jpg.chip.jpg``.

    Returns
    -------
    int or None
        Age in years; None where the name does not start with an age from 0 to 150.

    Examples
    --------
    >>> age_from_name("61_1_20170109150557335.jpg.chip.jpg")
    61
    """
    match = re.match(r"(\d{1,3})_", name)
    return int(match[1]) if match and int(match[1]) <= 150 else None


def read_utkface(path, size, cache_dir=None):
    """Read UTKFace from a folder or an archive, through the cache.

    Parameters
    ----------
    path : path-like
        A folder of images (subfolders included), or an archive: the ``.tar.gz`` as distributed,
        another tar, a zip. It is never unpacked; see `probnb.images.files`.
    size : int
        Height and width of the images returned, in pixels; resized with antialiasing.
    cache_dir : path-like, optional
        Where decoded images are kept; see `probnb.images.files.cache_folder`.

    Returns
    -------
    images : torch.Tensor of shape (n, 3, size, size)
        uint8, in the order of the file names, whatever the order on disk.
    ages : ndarray of shape (n,)
        int64, in years.
    checksum : str
        SHA-256 of the archive, or of the names and contents of the folder's images.
    report : dict
        ``images`` read; files skipped because they are ``corrupt`` or have an
        ``unreadable_age``; what is ``left_out`` as no image; ``unread`` links and files by name,
        with the reason; ``repeated`` files, left out because an image of the same file name and
        pixels comes first; ``duplicates``, the rows of each set of images whose pixels are the
        same under different names.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist.
    ValueError
        If `path` holds no readable image or is no archive that can be read.
    """
    size = check_integer(size, "size")
    path = Path(path).expanduser()
    listing = list_files(path)
    images, table, checksum = decode_files(path, listing, size, cache_dir=cache_dir)
    table["file"] = pd.Series([Path(n).name for n in table.index], table.index, dtype=object)
    table = table.sort_values("file", kind="stable")  # the same for folder and archive
    table["age"] = table["file"].map(age_from_name)
    known = table[table["age"].notna()]
    good = known[known["digest"].notna()]
    repeated = good.duplicated(["digest", "file"])
    kept = good[~repeated]
    if kept.empty:
        raise ValueError(
            f"data_dir must hold images named [age]_[gender]_[race]_[time].jpg; {str(path)!r} has "
            f"{len(table)} images, {len(known)} with a readable age, none that can be decoded. "
            + listing.left_out()
        )
    copies = pd.Series(range(len(kept))).groupby(kept["digest"].to_numpy(), sort=False).apply(list)
    report = {
        "images": len(kept),
        "unreadable_age": [*table.index[table["age"].isna()]],
        "left_out": listing.left_out(),
        "unread": listing.skipped,
        "corrupt": [*known.index[known["digest"].isna()]],
        "repeated": [*good.index[repeated]],
        "duplicates": [rows for rows in copies if len(rows) > 1],
    }
    for problem in ("corrupt", "unreadable_age", "unread", "repeated"):
        if report[problem]:
            some = ascii([*report[problem]][:10])  # names may hold line breaks
            count, words = len(report[problem]), problem.replace("_", " ")
            log.warning("UTKFace: skipped %d files (%s): %s", count, words, some)
    return images[kept["row"]].tensor(), kept["age"].to_numpy(np.int64), checksum, report
