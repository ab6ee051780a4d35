"""The rows of the paper's tables: what each method trains, from where, on what, with what loss.

A method is data. `probnb.experiment.plan` turns the rows that are asked for into fits, each done
once however many rows read it. No torch here, so that a notebook can check names in its first
second.
"""

from dataclasses import dataclass, field, fields

from .validation import check_choice, check_choices, check_integer, check_number

__all__ = ["KINDS", "METHODS", "REFERENCE", "Method", "Recipe", "check_methods"]

KINDS = ("reference", "cross entropy", "post-processing", "ensemble", "modified training", "CaPE")
"""The paper's grouping of its rows, and what goes beyond them."""
KINDS += ("extension", "pretrained")

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

CONVEX = ("observed", "resampled", "smoothed", "taught", "taught_platt")
"""Targets that need no predictions of the network, as a convex fit has none to show."""

LOSSES = ("ce", "focal", "entropy", "mmce")
"""Losses of `probnb.training.losses.LOSSES`; a grid gives a strength under the loss's own name."""


@dataclass(frozen=True)
class Recipe:
    """How to train: every number that `fit` uses.

    Parameters
    ----------
    epochs : int, default=60
        Passes over the training data at most.
    batch_size : int, default=128
        Examples in a step.
    learning_rate : float, default=0.1
        Initial learning rate of SGD.
    momentum : float, default=0.9
        Momentum of SGD.
    weight_decay : float, default=5e-4
        L2 penalty of SGD.
    schedule : {"plateau", "cosine", "constant"}, default="plateau"
        ``"plateau"`` halves the learning rate where validation cross entropy has not improved for
        `plateau_patience` epochs, down to 1e-6; ``"cosine"`` lowers it to 0 over `epochs`.
    plateau_patience : int, default=5
        Epochs without improvement that ``"plateau"`` waits for.
    patience : int or None, default=None
        Stop after so many epochs without improvement; None trains all epochs.
    adversarial : float, default=0
        Size of a fast-gradient-sign step, in normalised input units, on which the loss is taken
        as well; 0 for none. Deep ensembles (Lakshminarayanan et al. 2017) use it.
    seed : int, default=0
        Seed of the order of examples, of the augmentation and of resampled labels.
    averaging : float, default=0
        Decay per step of an exponential average of the weights, which then predicts and is kept in
        their place; 0 for none.
    solver : {"sgd", "convex"}, default="sgd"
        ``"convex"``: `probnb.pretrained.logistic`, for one layer on features. It uses none of the
        rest, which must then be left at their defaults.
    """

    epochs: int = 60
    batch_size: int = 128
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: str = "plateau"
    plateau_patience: int = 5
    patience: int | None = None
    adversarial: float = 0.0
    seed: int = 0
    averaging: float = 0.0
    solver: str = field(default="sgd", metadata={"later": True})

    def __post_init__(self):
        check_integer(self.batch_size, "batch_size", minimum=2)  # batch normalisation needs two
        for name in ("epochs", "plateau_patience"):
            check_integer(getattr(self, name), name)
        if self.patience is not None:
            check_integer(self.patience, "patience")
        check_number(self.learning_rate, "learning_rate", 0, exclusive=True)
        for name in ("momentum", "weight_decay", "adversarial"):
            check_number(getattr(self, name), name, 0)
        check_number(self.averaging, "averaging", 0, 1)
        check_choice(self.schedule, ("plateau", "cosine", "constant"), "schedule")
        check_choice(self.solver, ("sgd", "convex"), "solver")
        for one in () if self.solver == "sgd" else fields(self)[:-1]:
            if (value := getattr(self, one.name)) != one.default:
                raise ValueError(
                    f"{one.name} must be {one.default!r} with solver 'convex'; got {value!r}."
                )


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
        for name, least in (("members", 1), ("folds", 0), ("repeats", 1)):
            check_integer(getattr(self, name), name, least)
        for name, allowed in (("loss", LOSSES), ("targets", TARGETS)):
            if not callable(getattr(self, name)):
                check_choice(getattr(self, name), allowed, name)
        check_choices([*self.recipe], RECIPE, "recipe")
        Recipe(**self.recipe)  # checks the values, and that all of them are used
        for name, values in self.grid.items():
            if name not in self.tunable:
                raise ValueError(
                    f"grid may have {', '.join(self.tunable) or 'nothing'} for loss {self.loss!r}, "
                    f"targets {self.targets!r} and start {self.start!r}; got {name!r}."
                )
            if not isinstance(values, tuple) or not values:
                raise ValueError(f"grid[{name!r}] must be a tuple of values; got {values!r}.")
        if refused := self._refused():
            raise ValueError(refused)

    @property
    def tunable(self):
        """Names that the grid may have."""
        named = TARGETS[self.targets] if isinstance(self.targets, str) else ()
        loss = (self.loss,) if isinstance(self.loss, str) and self.loss != "ce" else ()
        return (*(("finetune_learning_rate",) if self.start else ()), *loss, *named)

    def _refused(self):
        """Why the fields cannot be combined; None where they can."""
        start = METHODS[check_choice(self.start, METHODS, "start")] if self.start else None
        if start and self.targets == "resampled":
            return "targets 'resampled' have nothing to memorise: start must be None."
        if start and (start.calibrator or start.members > 1 or start.epoch == "last"):
            return f"start must be a row whose kept weights are one network's; not {self.start!r}."
        if self.recipe.get("solver") == "convex":
            others = {
                "loss": self.loss != "ce",
                "start": self.start,
                "members": self.members > 1,
                "epoch": self.epoch == "last",
                "targets": isinstance(self.targets, str) and self.targets not in CONVEX,
                "grid": min(self.grid.get("share", (0,))) < 0,
            }
            for name in (name for name, given in others.items() if given):
                return f"solver 'convex' has no use for {name}={getattr(self, name)!r}."
        if "mix" in self.grid and {"every", "phase"} & {*self.grid}:
            return "grid must not have mix beside every or phase: a mixture is of every epoch."
        if self.targets == "held_out" and self.recipe.get("averaging"):
            return "recipe must not average weights of a row whose targets look at the network."
        taught = self.targets in ("taught", "taught_platt")
        if taught != (self.teachers is not None):
            return (
                f"teachers must be a row's name for targets 'taught' alone; got {self.teachers!r}."
            )
        if self.folds == 1 or (self.folds and not taught):
            return f"folds must be 0 (without teachers) or at least 2; got {self.folds}."
        if self.repeats > 1 and not self.folds:
            return f"repeats must be 1 without folds, which it cuts again; got {self.repeats}."
        row = METHODS[check_choice(self.teachers, METHODS, "teachers")] if taught else None
        if taught and (row.calibrator or row.epoch == "last" or row.teachers):
            return f"teachers must be a row of kept weights of its own; not {self.teachers!r}."
        if taught and self.folds and (row.members > 1 or row.start):
            return f"teachers of folds must be one network's, untuned; not {self.teachers!r}."
        return None


METHODS = {}
"""All rows in the paper's order, with the four that it lacks where they belong: the overfitted
network of its figures, beta calibration, Mix-n-match with the isotonic step that its text has and
its tables have not, and the control for CaPE, which is fine-tuned in the same way without
calibration epochs. The rows of other chapters follow; they run where they are named. "Platt, two
logits" reads both logits of a network, as the paper has it, and may change the order of rows;
"Platt" alone, of an average or of one log-odds, keeps it."""


def _row(name, label, kind="extension", **fields):
    METHODS[name] = Method(label, kind, **fields)


_POST, _MODIFIED = "post-processing", "modified training"
_RATES = {"finetune_learning_rate": (1e-2, 1e-3, 1e-1, 1e-4)}

# Nothing to memorise, so nothing to stop early: its last epoch, at the end of the schedule.
_row("resampled", "CE + resampled labels", "reference", targets="resampled", epoch="last")
_row("ce_overfit", "CE overfit", "cross entropy", epoch="last")
_row("ce", "CE early-stop", "cross entropy")
_row("temperature", "Temperature", _POST, calibrator="temperature")
_row("platt", "Platt, two logits", _POST, calibrator="platt")
_row("dirichlet", "Dirichlet cal.", _POST, calibrator="dirichlet")
_row("beta", "Beta cal.", _POST, calibrator="beta")
_row("focal", "Focal loss", _MODIFIED, loss="focal", grid={"focal": (1.0, 2.0, 0.5)})
_row("mixnmatch", "Mix-n-match", "ensemble", calibrator="mixnmatch")
_row("mixnmatch_isotonic", "Mix-n-match, isotonic", "ensemble", calibrator="mixnmatch_isotonic")
_row("entropy", "Entropy reg.", _MODIFIED, loss="entropy", grid={"entropy": (0.3, 1.0, 0.1)})
_row("mmce", "MMCE reg.", _MODIFIED, loss="mmce", grid={"mmce": (1.0, 3.0, 0.3)})
_row("ensemble", "Deep ensemble", "ensemble", members=5)
_row("ce_finetuned", "CE fine-tuned", "cross entropy", start="ce", grid=_RATES)
_row("cape_bin", "CaPE (bin)", "CaPE", targets="bin", start="ce", grid={**_RATES, "bins": (15, 5)})
_row("cape_kernel", "CaPE (kernel)", "CaPE", targets="kernel", start="ce", grid=_RATES)

PAPER = tuple(METHODS)
"""The rows that a table has unless others are asked for."""

_BIN = {"targets": "bin", "start": "ce"}
_COSINE, _AVERAGED = {"schedule": "cosine"}, {"averaging": 0.99}
_FOLDS = {"teachers": "ce", "folds": 5}
_row("beginning_bin", "From the beginning (bin)", targets="bin", grid={"bins": (15,)})
_row("beginning_kernel", "From the beginning (kernel)", targets="kernel")
_MIXED = {**_RATES, "mix": (1.0, 3.0, 0.3), "bins": (15,)}
_row("weighted_sum", "CaPE, weighted sum", grid=_MIXED, **_BIN)
_row("cape_ensemble", "CaPE in an ensemble", members=5, grid={"bins": (15,)}, **_BIN)
_row("quadratic", "Quadratic cal.", calibrator="quadratic")
_row("spline", "Spline cal.", calibrator="spline")
_row("venn_abers", "Venn-Abers", calibrator="venn_abers")
_row("ensemble_platt", "Ensemble, then Platt", members=5, calibrator="platt")
_FOCAL = {"loss": "focal", "grid": {"focal": (1.0, 2.0)}}
_row("focal_platt", "Focal, then Platt, two logits", calibrator="platt", **_FOCAL)
_row("smoothed", "Label smoothing", targets="smoothed", grid={"smoothing": (0.1, 0.05, 0.2)})
_BINS = {**_RATES, "bins": (15, 5)}
_row("cape_held_out", "CaPE, p_emp held out", targets="held_out", start="ce", grid=_BINS)
_row("ce_cosine", "CE, cosine", recipe=_COSINE)
_row("ce_averaged", "CE, averaged weights", recipe=_AVERAGED)
_row("ce_hygiene", "CE, cosine and averaged", recipe=_COSINE | _AVERAGED)
_row("crossfit", "Cross-fitted", targets="taught", **_FOLDS)
_row("crossfit_platt", "Cross-fitted, Platt, two logits", targets="taught_platt", **_FOLDS)
_HALF = {"share": (0.5,)}
_row("crossfit_mixed", "Cross-fitted, half outcomes", targets="taught", grid=_HALF, **_FOLDS)
_row("distilled", "Distilled ensemble", targets="taught", teachers="ensemble")
_OWN = {"targets": "running", "grid": _RATES | _HALF}
_row("self_distilled", "Mean of own predictions", start="ce", **_OWN)

# Logistic regression on the features of a pretrained network, for profiles that have a backbone.
_CONVEX = {"kind": "pretrained", "recipe": {"solver": "convex"}}
_HEAD = {"kind": "pretrained", "start": "logistic"}
_TAUGHT = {"kind": "pretrained", "targets": "taught", "teachers": "logistic", "folds": 5}
_row("logistic", "Logistic regression", **_CONVEX)
_row("logistic_platt", "Logistic, Platt", calibrator="platt", **_CONVEX)
_row("logistic_beta", "Logistic, beta cal.", calibrator="beta", **_CONVEX)
_row("logistic_best", "Logistic, true probabilities", targets="resampled", **_CONVEX)
_row("logistic_finetuned", "Logistic, fine-tuned", grid=_RATES, **_HEAD)
_row("logistic_bin", "Logistic, CaPE (bin)", targets="bin", grid=_BINS, **_HEAD)
_row("logistic_kernel", "Logistic, CaPE (kernel)", targets="kernel", grid=_RATES, **_HEAD)
_row("logistic_taught", "Taught by logistic regression", **_TAUGHT)

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
        heads = [n for n, m in METHODS.items() if m.kind == "pretrained" and not m.teachers]
        rows = [*PAPER, *heads] if features else PAPER
        return [name for name in rows if known or METHODS[name].targets != "resampled"]
    names = check_choices(methods, METHODS, "methods")
    for name in names:
        if METHODS[name].targets == "resampled" and not known:
            raise ValueError(
                f"methods: {name!r} needs the ground-truth probabilities; none are known."
            )
        if METHODS[name].kind == "pretrained" and not features:
            raise ValueError(f"methods: {name!r} needs a backbone, such as -p backbone lite0.")
    return [name for name in METHODS if name in names or name == REFERENCE]
