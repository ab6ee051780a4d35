"""The rows of the paper's tables: what each method trains, from where, on what, with what loss.

A method is data. `probnb.experiment.plan` turns the rows that are asked for into fits, each done
once however many rows read it. No torch here, so that a notebook can check names in its first
second.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .validation import check_choice, check_integer

__all__ = ["KINDS", "METHODS", "REFERENCE", "Method", "check_methods"]

KINDS = (
    "reference",
    "cross entropy",
    "post-processing",
    "ensemble",
    "modified training",
    "CaPE",
    "extension",
    "pretrained",
)
"""The paper's grouping of its rows, and what goes beyond them."""

TARGETS = {
    "observed": (),
    "resampled": (),
    "smoothed": ("smoothing",),
    "bin": ("every", "phase", "mix", "bins"),
    "kernel": ("every", "phase", "mix", "neighbours", "sigma"),
    "held_out": ("every", "phase", "mix", "bins"),
    "taught": ("share",),
    "taught_platt": ("share",),
    "running": ("decay", "share"),
}
"""Schedules of `probnb.training.targets.TARGETS` and the settings that a grid may give them."""

RECIPE = ("schedule", "averaging", "epochs", "patience", "solver")
"""What a row may have of its own in its `Recipe`; the rest is the profile's."""

LOSSES = ("ce", "focal", "entropy", "mmce")
"""Losses of `probnb.training.losses.LOSSES`; a grid gives a strength under the loss's own name."""


@dataclass(frozen=True)
class Method:
    """One row of a table. Every field acts on its own, and all of them together.

    Parameters
    ----------
    label : str
        Name in tables and figures, as the paper spells it.
    kind : str
        One of `KINDS`.
    loss : str or callable, default="ce"
        Training loss: a name in `LOSSES`, or any ``loss(logits, targets, weights)``.
    targets : str or callable, default="observed"
        Schedule of soft targets: a name in `TARGETS` (``"bin"`` and ``"kernel"`` are CaPE's), or
        any callable like those of `probnb.training.targets`.
    start : str or None, default=None
        The row whose kept weights it starts from, to be fine-tuned; None for random weights.
    epoch : {"best", "last"}, default="best"
        Which epoch's predictions: lowest validation cross entropy, or the last.
    members : int, default=1
        Networks whose probabilities are averaged; each starts from a member of its own.
    calibrator : str or None, default=None
        Name in `probnb.calibrators.CALIBRATORS`, fitted to the validation predictions of all the
        above.
    grid : dict of str to tuple, default={}
        Hyperparameters and the values that validation cross entropy chooses among, the best known
        first: the strength of a loss under the loss's name, ``finetune_learning_rate`` of a
        fine-tuning, settings of the targets. A tuple of one value is a fixed setting.
    teachers : str or None, default=None
        The row whose networks the targets ``"taught"`` and ``"taught_platt"`` come from.
    folds : int, default=0
        In how many parts the training rows are cut, so that each part is taught by a network that
        did not see it; 0 for the row's networks as they are, which have seen every row.
    repeats : int, default=1
        How many such cuts; a row is then taught by the mean of as many networks.
    recipe : dict, default={}
        What this row has of its own in its recipe: names in `RECIPE`. A cosine goes to its end.

    Raises
    ------
    ValueError
        If a name is unknown, or the fields cannot be combined.
    """

    label: str
    kind: str
    loss: object = "ce"
    targets: object = "observed"
    start: str | None = None
    epoch: str = "best"
    members: int = 1
    calibrator: str | None = None
    grid: dict = field(default_factory=dict, hash=False)
    teachers: str | None = None
    folds: int = 0
    repeats: int = 1
    recipe: dict = field(default_factory=dict, hash=False)

    def __post_init__(self):
        check_choice(self.kind, KINDS, "kind")
        check_choice(self.epoch, ("best", "last"), "epoch")
        check_integer(self.members, "members")
        known = []
        for name, allowed in (("loss", LOSSES), ("targets", TARGETS)):
            if isinstance(getattr(self, name), str):
                check_choice(getattr(self, name), allowed, name)
            elif not callable(getattr(self, name)):
                raise ValueError(f"{name} must be a name or callable; got {getattr(self, name)!r}.")
        if self.start is not None:
            known.append("finetune_learning_rate")
            if self.targets == "resampled":
                raise ValueError(
                    "targets 'resampled' have nothing to memorise: start must be None."
                )
            self._check_start()
        if isinstance(self.loss, str) and self.loss != "ce":
            known.append(self.loss)
        if isinstance(self.targets, str):
            known += TARGETS[self.targets]
        for name, values in self.grid.items():
            if name not in known:
                raise ValueError(
                    f"grid may have {', '.join(known) or 'nothing'} for loss {self.loss!r}, "
                    f"targets {self.targets!r} and start {self.start!r}; got {name!r}."
                )
            if not isinstance(values, tuple) or not values:
                raise ValueError(f"grid[{name!r}] must be a tuple of values; got {values!r}.")

        self._check_teachers()
        for name in self.recipe:
            check_choice(name, RECIPE, "recipe")
        if self.targets == "held_out" and self.recipe.get("averaging"):
            raise ValueError(
                "recipe must not average the weights of a row with targets 'held_out', which "
                "look at the network as it is."
            )

    def _check_teachers(self):
        check_integer(self.folds, "folds", minimum=0)
        check_integer(self.repeats, "repeats")
        taught = self.targets in ("taught", "taught_platt")
        if taught != (self.teachers is not None):
            raise ValueError(
                "teachers must be a row's name for targets 'taught' and 'taught_platt', and None "
                f"for others; got {self.teachers!r} for {self.targets!r}."
            )
        if not taught:
            if self.folds or self.repeats > 1:
                raise ValueError("folds and repeats are for rows with teachers.")
            return
        row = METHODS[check_choice(self.teachers, METHODS, "teachers")]
        whole = row.calibrator is None and row.epoch == "best"
        alone = row.members == 1 and row.start is None
        if not whole or row.teachers or (self.folds and not alone):
            raise ValueError(
                "teachers must be a row whose kept weights are networks' own (for folds: one "
                f"network's, from random weights); {self.teachers!r} is not."
            )
        if self.folds == 1:
            raise ValueError("folds must be 0, or at least 2; got 1.")

    def _check_start(self):
        start = METHODS[check_choice(self.start, METHODS, "start")]
        if start.calibrator is not None or start.members > 1 or start.epoch == "last":
            raise ValueError(
                f"start must be a row whose kept weights are one network's; {self.start!r} "
                "averages, calibrates or takes the last epoch."
            )


METHODS = {}
"""All rows in the paper's order, with the four that it lacks where they belong: the overfitted
network of its figures, beta calibration, Mix-n-match with the isotonic step that its text has and
its tables have not, and the control for CaPE, which is fine-tuned in the same way without
calibration epochs. The rows of other chapters follow; they run where they are named."""

_POST, _MODIFIED = "post-processing", "modified training"
_RATES = {"finetune_learning_rate": (1e-2, 1e-3, 1e-1, 1e-4)}

# Nothing to memorise, so nothing to stop early: its last epoch, at the end of the schedule.
METHODS["resampled"] = Method(
    "CE + resampled labels", "reference", targets="resampled", epoch="last"
)
METHODS["ce_overfit"] = Method("CE overfit", "cross entropy", epoch="last")
METHODS["ce"] = Method("CE early-stop", "cross entropy")
METHODS["temperature"] = Method("Temperature", _POST, calibrator="temperature")
METHODS["platt"] = Method("Platt scaling", _POST, calibrator="platt")
METHODS["dirichlet"] = Method("Dirichlet cal.", _POST, calibrator="dirichlet")
METHODS["beta"] = Method("Beta cal.", _POST, calibrator="beta")
METHODS["focal"] = Method("Focal loss", _MODIFIED, loss="focal", grid={"focal": (1.0, 2.0, 0.5)})
METHODS["mixnmatch"] = Method("Mix-n-match", "ensemble", calibrator="mixnmatch")
METHODS["mixnmatch_isotonic"] = Method(
    "Mix-n-match, isotonic", "ensemble", calibrator="mixnmatch_isotonic"
)
METHODS["entropy"] = Method(
    "Entropy reg.", _MODIFIED, loss="entropy", grid={"entropy": (0.3, 1.0, 0.1)}
)
METHODS["mmce"] = Method("MMCE reg.", _MODIFIED, loss="mmce", grid={"mmce": (1.0, 3.0, 0.3)})
METHODS["ensemble"] = Method("Deep ensemble", "ensemble", members=5)
METHODS["ce_finetuned"] = Method("CE fine-tuned", "cross entropy", start="ce", grid=_RATES)
METHODS["cape_bin"] = Method(
    "CaPE (bin)", "CaPE", targets="bin", start="ce", grid={**_RATES, "bins": (15, 5)}
)
METHODS["cape_kernel"] = Method("CaPE (kernel)", "CaPE", targets="kernel", start="ce", grid=_RATES)

PAPER = tuple(METHODS)
"""The rows that a table has unless others are asked for."""

METHODS["beginning_bin"] = Method(
    "From the beginning (bin)", "extension", targets="bin", grid={"bins": (15,)}
)
METHODS["beginning_kernel"] = Method("From the beginning (kernel)", "extension", targets="kernel")
METHODS["weighted_sum"] = Method(
    "CaPE, weighted sum",
    "extension",
    targets="bin",
    start="ce",
    grid={**_RATES, "mix": (1.0, 3.0, 0.3), "bins": (15,)},
)
METHODS["cape_ensemble"] = Method(
    "CaPE in an ensemble", "extension", targets="bin", start="ce", members=5, grid={"bins": (15,)}
)
METHODS["ensemble_platt"] = Method(
    "Ensemble, then Platt", "extension", members=5, calibrator="platt"
)
METHODS["focal_platt"] = Method(
    "Focal, then Platt", "extension", loss="focal", calibrator="platt", grid={"focal": (1.0, 2.0)}
)
METHODS["smoothed"] = Method(
    "Label smoothing", "extension", targets="smoothed", grid={"smoothing": (0.1, 0.05, 0.2)}
)
METHODS["cape_held_out"] = Method(
    "CaPE, p_emp held out",
    "extension",
    targets="held_out",
    start="ce",
    grid={**_RATES, "bins": (15, 5)},
)
_COSINE = {"schedule": "cosine"}
METHODS["ce_cosine"] = Method("CE, cosine", "extension", recipe=_COSINE)
METHODS["ce_averaged"] = Method("CE, averaged weights", "extension", recipe={"averaging": 0.99})
METHODS["ce_hygiene"] = Method(
    "CE, cosine and averaged", "extension", recipe={**_COSINE, "averaging": 0.99}
)
_FOLDS = {"kind": "extension", "teachers": "ce", "folds": 5}
METHODS["crossfit"] = Method("Cross-fitted", targets="taught", **_FOLDS)
METHODS["crossfit_platt"] = Method("Cross-fitted, Platt", targets="taught_platt", **_FOLDS)
METHODS["crossfit_mixed"] = Method(
    "Cross-fitted, half outcomes", targets="taught", grid={"share": (0.5,)}, **_FOLDS
)
METHODS["distilled"] = Method(
    "Distilled ensemble", "extension", targets="taught", teachers="ensemble"
)
METHODS["self_distilled"] = Method(
    "Mean of own predictions",
    "extension",
    targets="running",
    start="ce",
    grid={**_RATES, "share": (0.5,)},
)

# Logistic regression on the features of a pretrained network, for profiles that have a backbone.
_CONVEX = {"kind": "pretrained", "recipe": {"solver": "convex"}}
_HEAD = {"kind": "pretrained", "start": "logistic"}
METHODS["logistic"] = Method("Logistic regression", **_CONVEX)
METHODS["logistic_platt"] = Method("Logistic, Platt", calibrator="platt", **_CONVEX)
METHODS["logistic_beta"] = Method("Logistic, beta cal.", calibrator="beta", **_CONVEX)
METHODS["logistic_best"] = Method("Logistic, true probabilities", targets="resampled", **_CONVEX)
METHODS["logistic_finetuned"] = Method("Logistic, fine-tuned", grid=_RATES, **_HEAD)
METHODS["logistic_bin"] = Method(
    "Logistic, CaPE (bin)", targets="bin", grid={**_RATES, "bins": (15, 5)}, **_HEAD
)
METHODS["logistic_kernel"] = Method(
    "Logistic, CaPE (kernel)", targets="kernel", grid=_RATES, **_HEAD
)

REFERENCE = "ce"
"""The row that every other is compared with."""


def check_methods(methods=None, known=True, features=False):
    """Return method names in table order.

    Parameters
    ----------
    methods : None, str or iterable of str, optional
        None for the paper's rows; a string may hold several names separated by commas or spaces.
    known : bool, default=True
        Whether the ground-truth probabilities are known; without them no labels can be resampled,
        and that row drops out of the default.
    features : bool, default=False
        Whether the data are features of a pretrained network, for which rows of the kind
        "pretrained" are; they are then part of the default.

    Returns
    -------
    list of str
        The names, without repetition, in the order of `METHODS`; ``"ce"``, with which every row
        is compared, is always among them.

    Raises
    ------
    ValueError
        If a name is unknown, or a row needs probabilities that are not known, or features.

    Examples
    --------
    >>> check_methods("platt, resampled")
    ['resampled', 'ce', 'platt']
    """
    if methods is None:
        rows = [name for name in METHODS if name in PAPER or METHODS[name].kind == "pretrained"]
        rows = rows if features else PAPER
        return [name for name in rows if known or METHODS[name].targets != "resampled"]
    names = methods.replace(",", " ").split() if isinstance(methods, str) else list(methods)
    for name in names:
        check_choice(name, METHODS, "methods")
        if METHODS[name].targets == "resampled" and not known:
            raise ValueError(
                f"methods: {name!r} needs the ground-truth probabilities, which these data lack."
            )
        if METHODS[name].kind == "pretrained" and not features:
            raise ValueError(f"methods: {name!r} needs a backbone, such as -p backbone lite0.")
    return [name for name in METHODS if name in names or name == REFERENCE]
