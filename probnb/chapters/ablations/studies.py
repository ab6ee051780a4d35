"""The questions of the chapter as data: which rows each compares, and at what settings.

No torch here, so that a notebook can check names in its first second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...experiment.profiles import make_profile
from ...methods import METHODS, Method
from ...validation import check_choice

SMALL = {
    "images": (1000, 300, 1000), "size": 16, "width": 8, "epochs": 20, "finetune_epochs": 4,
    "batch_size": 64, "learning_rate": 0.05, "patience": 4, "plateau_patience": 4, "members": 3,
}  # fmt: skip
"""What the profile ``quick`` is here: a third of other chapters' images, for many more rows."""

SIZES = {"smoke": (60, 120), "quick": (500, 2000, 8000, 32000), "cpu": (1000, 4000, 16000)}
"""Training images of the study on scale."""

RATES = {"finetune_learning_rate": (1e-2, 1e-3)}
CAPE_GRID = {**RATES, "bins": (15,)}


@dataclass(frozen=True)
class Row:
    """One row of a study.

    Parameters
    ----------
    method : Method
        What is trained; its grid is tried as it stands.
    part : str, default=""
        The panel of the study that it belongs to.
    x : float or None, default=None
        Its place in the panel.
    augment : bool, default=False
        Whether training images, its teachers' as well, are mirrored, moved and lit at random.
    """

    method: Method
    part: str = ""
    x: float | None = None
    augment: bool = False


def settings_of(profile):
    """Return the `Profile` of the chapter: rows try what their own grids say."""
    small = SMALL if profile == "quick" else {}
    return replace(make_profile(profile, **small), grid={}, candidates=8)


def sizes_of(profile):
    """Return the training sizes of the study on scale."""
    return SIZES.get(profile, SIZES["cpu"])


def _row(name, part="", x=None, augment=False, **changes):
    return Row(replace(METHODS[name], **changes), part, x, augment)


def _named(*names, **changes):
    return {name: _row(name, **changes) for name in names}


def _fixed(name, part, setting, values, **grid):
    """One row for each value of a setting; everything else as it is chosen elsewhere."""
    labels = {f"{part}={v:g}": (v, f"{part} = {v:g}") for v in values}
    return {
        key: _row(name, part, v, label=label, grid={**grid, setting: (v,)}, recipe={})
        for key, (v, label) in labels.items()
    }


CE = _named("resampled", "ce")
CAPE = _named("cape_bin", grid=CAPE_GRID)
CONTROL = _named("ce_finetuned", grid=RATES)

BEGINNING = {
    **_named("ce"), **CAPE, **_named("cape_kernel", grid=RATES),
    **_named("beginning_bin", "beginning_kernel"),
}  # fmt: skip

LOSSES = {
    **_named("ce"),
    **_fixed("focal", "focal", "focal", (0.3, 1.0, 2.0, 4.0)),
    **_fixed("entropy", "entropy", "entropy", (0.1, 0.3, 1.0)),
    **_fixed("mmce", "mmce", "mmce", (0.3, 1.0, 3.0, 10.0)),
}

_RATE = {"finetune_learning_rate": (1e-2,)}
_USUAL = {**_RATE, "bins": (15,)}
HYPERPARAMETERS = {
    **_named("ce"),
    **CONTROL,
    **_fixed("cape_bin", "m", "every", (1, 2, 3, 4), **_USUAL),
    **_fixed("cape_bin", "phase", "phase", (0, 1, 2), **_USUAL, every=(3,)),
    **_fixed("cape_bin", "B", "bins", (2, 5, 15, 50), **_RATE),
    **_fixed("cape_bin", "rate", "finetune_learning_rate", (1e-1, 1e-2, 1e-3, 1e-4), bins=(15,)),
    **_fixed("cape_kernel", "r", "neighbours", (20, 100, 200, 800), **_RATE),
    **_fixed("cape_kernel", "sigma", "sigma", (0.01, 0.0707, 0.3), **_RATE),
    **{f"length={n}": _row("cape_bin", "length", n, label=f"length = {n}", grid=_USUAL,
                           recipe={"epochs": n}) for n in (2, 4, 12)},
    "held_out=1": _row("cape_held_out", "held_out", 1, grid=_USUAL),
}  # fmt: skip

WEIGHTED = {
    **_named("ce"), **CONTROL, **CAPE,
    **_fixed("weighted_sum", "lambda", "mix", (0.3, 1.0, 3.0, 10.0), **CAPE_GRID),
}  # fmt: skip

_FOLDS = {"folds": 3, "repeats": 2}  # two networks that did not see the row, at the price of four
_COSINE = METHODS["ce_hygiene"].recipe
_ALL = "All of it: augmented, cross-fitted, cosine, averaged"
TARGETS = {
    **CE,
    **_named("platt", grid={}),
    **_named("smoothed", grid={"smoothing": (0.1,)}),
    **_named("ensemble"),
    **CAPE,
    **_named("crossfit", "crossfit_platt", "crossfit_mixed", **_FOLDS),
    **_named("distilled", "ce_cosine", "ce_averaged", "ce_hygiene"),
    **_named("self_distilled", grid={**RATES, "share": (0.5,)}),
    "crossfit_hygiene": _row(
        "crossfit_mixed", label="Cross-fitted, half outcomes; cosine, averaged", recipe=_COSINE,
        **_FOLDS,
    ),
    "augmented": _row("ce", augment=True, label="CE, augmented"),
    "augmented_hygiene": _row("ce_hygiene", augment=True, label="CE, augmented, cosine, averaged"),
    "augmented_crossfit": _row("crossfit_mixed", augment=True, label=_ALL, recipe=_COSINE, folds=3),
}  # fmt: skip

_MEMBERS = "CaPE in an ensemble, then Platt"
ENSEMBLES = {
    **_named("ce", "platt", "ensemble", "ensemble_platt"),
    **CAPE,
    **{f"cape_{kind}": _row("cape_bin", label=f"CaPE, then {name}", grid=CAPE_GRID, calibrator=kind)
       for kind, name in (("temperature", "temperature"), ("platt", "Platt"))},
    **_named("cape_ensemble", grid=_USUAL),
    "cape_ensemble_platt": _row("cape_ensemble", label=_MEMBERS, grid=_USUAL, calibrator="platt"),
}  # fmt: skip

SCALING = {
    **_named("resampled", "ce", "platt", "ensemble"), **CAPE, **_named("crossfit_mixed", **_FOLDS),
    "augmented_hygiene": TARGETS["augmented_hygiene"],
}  # fmt: skip

MARK = {
    **CE, **CAPE, "crossfit_hygiene": TARGETS["crossfit_hygiene"],
    "augmented_hygiene": TARGETS["augmented_hygiene"],
}  # fmt: skip

STUDIES = {
    "beginning": BEGINNING, "losses": LOSSES, "cape": HYPERPARAMETERS, "weighted": WEIGHTED,
    "targets": TARGETS, "mark": MARK, "ensembles": ENSEMBLES, "stopping": {}, "several": {},
    "scaling": SCALING,
}  # fmt: skip
"""Rows of each study by name; two of them have rows of their own kind."""

PAGE = ("beginning", "weighted", "several")
"""What the notebook trains itself unless it is told otherwise: the quick ones."""


def check_studies(names):
    """Return names of studies from text or an iterable of names, without repetition."""
    names = names.replace(",", " ").split() if isinstance(names, str) else list(names or ())
    for name in names:
        check_choice(name, STUDIES, "studies")
    return [name for name in STUDIES if name in names]
