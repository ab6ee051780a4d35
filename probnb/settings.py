"""How a report is made, what reads its predictions and which rows are meant, checked where said.

No torch here, so that a wrong setting ends a run in its first second.
"""

import contextlib
import re
from dataclasses import dataclass

import numpy as np

from .validation import check_choice, check_integer, check_number

SCALES = ("auto", "probability", "logit", "each")
"""What a column of predictions may be taken for."""


@dataclass(frozen=True)
class TableSettings:
    """Which columns of a table of predictions have which role, and which rows are judged.

    Parameters
    ----------
    y : str, default="y"
        Column of outcomes, 0 or 1.
    p : str or None, default="p"
        Column of true probabilities; the default is used if present, as are the next five.
    group : str or None, default="group"
        Column of groups.
    cluster : str or None, default="cluster"
        Column of clusters; without one, ids that stand in several rows are clusters.
    weight : str or None, default="weight"
        Column of weights, at least 0, by which rows count in every number.
    id : str or None, default="id"
        Column of the rows' names.
    split : str or None, default="split"
        Column that says to which part of the data a row belongs.
    part : str, default="test"
        The part to judge, "holdout" being one word for "test"; all rows are judged, with a note,
        where no row belongs to it.
    k, n : str, optional
        Columns of repeated outcomes, k ones of n in all (n at least 2), which the predictions
        have not seen. They stand in place of `p`: the distance from it is then estimated.
    scale : {"auto", "probability", "logit", "each"}, default="auto"
        ``"auto"`` takes columns within [0, 1] for probabilities, and columns with values on both
        sides of 0 and at least a fifth outside [0, 1] for logits (log-odds); all must be alike.
        ``"each"`` lets the columns differ.
    """

    y: str = "y"
    p: str | None = "p"
    group: str | None = "group"
    cluster: str | None = "cluster"
    weight: str | None = "weight"
    id: str | None = "id"
    split: str | None = "split"
    part: str = "test"
    k: str | None = None
    n: str | None = None
    scale: str = "auto"

    def __post_init__(self):
        check_choice(self.scale, SCALES, "scale")
        if (self.k is None) != (self.n is None):
            got = f"{self.k!r} and {self.n!r}"
            raise ValueError(f"k and n must be columns, or both None; got {got}.")


MASTERS = r"(local(\[(\*|[1-9]\d*)(,[1-9]\d*)?\])?|yarn|(spark|k8s|mesos)://.+)"


@dataclass(frozen=True)
class EngineSettings:
    """What reads predictions that memory does not hold.

    Parameters
    ----------
    engine : str, default="duckdb"
        ``duckdb``, or the master of a Spark: ``local[2]``, ``spark://host:7077``.
    memory : str, default="2GB"
        What it may take, such as 500MB.
    exact_auc : bool, default=True
        See `probnb.scale.DataSet`.
    """

    engine: str = "duckdb"
    memory: str = "2GB"
    exact_auc: bool = True

    def __post_init__(self):
        if self.name != "duckdb" and not re.fullmatch(MASTERS, self.name):
            raise ValueError(
                "engine must be duckdb, or the master of a Spark such as local[2] or "
                f"spark://host:7077; got {self.name!r}."
            )
        if not self.size:
            raise ValueError(f"memory must be a size such as 500MB or 2GB; got {self.memory!r}.")
        check_choice(self.exact_auc, (True, False), "exact_auc")

    @property
    def name(self):
        """The engine, however spelt."""
        name = str(self.engine).strip()
        return name.casefold() if name.casefold() == "duckdb" else name

    @property
    def size(self):
        """Bytes of memory; 0 where they are not understood."""
        memory = str(self.memory).strip()
        held = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])i?B?", memory, re.IGNORECASE)
        return float(held[1]) * 1000 ** (1 + "KMGT".index(held[2].upper())) if held else 0


def check_engine(engine=None, memory="2GB", exact_auc=True):
    """Check the settings of an engine, without which none may be given."""
    given = EngineSettings("duckdb" if engine is None else engine, memory, exact_auc)
    if engine is None and given != EngineSettings():
        raise ValueError(
            f"memory and exact_auc are of an engine; got {memory!r}, {exact_auc!r} without one."
        )


@dataclass(frozen=True)
class ReportSettings:
    """How a report on predictions is made.

    Parameters
    ----------
    reference : str or None, default=None
        Compare each other column with this one; None for all pairs.
    bins : int, default=15
        Quantile bins of the decomposition, at most as many as rows.
    replicates : int, default=1000
        Resamples, lowered for large tables.
    seed : int, default=0
        Seed of the resamples and of the folds.
    scale : {"auto", "probability", "logit", "each"}, default="auto"
        See `probnb.report.check_table`.
    threshold : float, sequence of float, str or None, default=None
        See `probnb.report.decide.decision_curve`.
    """

    reference: object = None
    bins: int = 15
    replicates: int = 1000
    seed: int = 0
    scale: str = "auto"
    threshold: object = None

    def __post_init__(self):
        check_integer(self.bins, "bins")
        check_integer(self.replicates, "replicates", minimum=2)
        check_integer(self.seed, "seed", minimum=0)
        check_choice(self.scale, SCALES, "scale")
        if self.threshold is not None:
            check_numbers(self.threshold, "threshold", 0, 1, exclusive=True)

    def reference_of(self, names, rows):
        """Return the reference as these columns are called, or raise if a setting is not theirs."""
        if self.bins > rows:
            raise ValueError(f"bins must be at most the number of rows, {rows:,}; got {self.bins}.")
        if self.reference is None or str(self.reference) in names:  # digits arrive as a number
            return self.reference if self.reference is None else str(self.reference)
        return check_choice(self.reference, names, "reference")


def check_numbers(values, name, minimum=-np.inf, maximum=np.inf, exclusive=False):
    """Return one number or several, or text that holds them, as a tuple of floats."""
    several = values.replace(",", " ").split() if isinstance(values, str) else np.ravel(values)
    with contextlib.suppress(ValueError, TypeError):  # what is no number is named below
        several = [float(value) for value in several]
    bounds = minimum, maximum, exclusive
    return tuple(check_number(x, name, *bounds) for x in (several if len(several) else [values]))


PARTS = {
    "train": "train training",
    "val": "val valid validate validation dev development tune tuning",
    "test": "test tests testing holdout heldout",
}
"""What the parts of a division are called; an eval is a test, and where there is one, a val."""


def parts_of(values):
    """Return "train", "val" or "test" for each value of a division, None for another word.

    Examples
    --------
    >>> parts_of(["Training", "hold-out", "Test set", "eval", "A"])
    ['train', 'test', 'test', 'val', None]
    """
    words = {word: part for part, words in PARTS.items() for word in words.split()}
    plain = [re.sub(r"[\W_]", "", str(value).casefold()) for value in values]
    plain = [re.sub(r"(sets?|data|split|part|images|rows)$", "", value) for value in plain]
    several = any(words.get(value) == "test" for value in plain)
    words |= dict.fromkeys(("eval", "evaluation"), "val" if several else "test")
    return [words.get(value) for value in plain]


def part_names(part, names):
    """Return those of the names in a column that mean a part: by its word, or as it is spelt."""
    same = [name for name in names if name.casefold() == str(part).casefold()]
    (word,), words = parts_of([part]), parts_of(names)
    if word is None or (same and word != str(part).casefold()):
        return same
    return [name for name, own in zip(names, words) if own == word]
