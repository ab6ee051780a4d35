"""The questions of the chapter as data: which rows each compares, and at what settings.

No torch here, so that a notebook can check names in its first second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...experiment.profiles import make_profile
from ...methods import METHODS, Method
from ...validation import check_choice

__all__ = ["PAGE", "STUDIES", "Row", "check_studies", "settings_of", "sizes_of"]

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


def _named(*names, **changes):
    return {name: Row(replace(METHODS[name], **changes)) for name in names}


def _fixed(base, part, setting, values, **grid):
    """One row for each value of a setting; everything else as it is chosen elsewhere."""
    return {
        f"{part}={value:g}": Row(
            replace(base, label=f"{part} = {value:g}", grid={**grid, setting: (value,)}),
            part,
            value,
        )
        for value in values
    }


CE = _named("resampled", "ce")
CAPE = {"cape_bin": Row(replace(METHODS["cape_bin"], grid=CAPE_GRID))}
KERNEL = {"cape_kernel": Row(replace(METHODS["cape_kernel"], grid=RATES))}
CONTROL = {"ce_finetuned": Row(replace(METHODS["ce_finetuned"], grid=RATES))}

BEGINNING = {
    **_named("ce"),
    **CAPE,
    **KERNEL,
    **_named("beginning_bin", "beginning_kernel"),
}

LOSSES = {
    **_named("ce"),
    **_fixed(METHODS["focal"], "focal", "focal", (0.3, 1.0, 2.0, 4.0)),
    **_fixed(METHODS["entropy"], "entropy", "entropy", (0.1, 0.3, 1.0)),
    **_fixed(METHODS["mmce"], "mmce", "mmce", (0.3, 1.0, 3.0, 10.0)),
}

_BIN = replace(METHODS["cape_bin"], recipe={})
_KERNEL = METHODS["cape_kernel"]
_RATE = {"finetune_learning_rate": (1e-2,)}
HYPERPARAMETERS = {
    **_named("ce"),
    **CONTROL,
    **_fixed(_BIN, "m", "every", (1, 2, 3, 4), **_RATE, bins=(15,)),
    **_fixed(_BIN, "phase", "phase", (0, 1, 2), **_RATE, bins=(15,), every=(3,)),
    **_fixed(_BIN, "B", "bins", (2, 5, 15, 50), **_RATE),
    **_fixed(_BIN, "rate", "finetune_learning_rate", (1e-1, 1e-2, 1e-3, 1e-4), bins=(15,)),
    **_fixed(_KERNEL, "r", "neighbours", (20, 100, 200, 800), **_RATE),
    **_fixed(_KERNEL, "sigma", "sigma", (0.01, 0.0707, 0.3), **_RATE),
    **{
        f"length={n}": Row(
            replace(
                _BIN, label=f"length = {n}", grid={**_RATE, "bins": (15,)}, recipe={"epochs": n}
            ),
            "length",
            n,
        )
        for n in (2, 4, 12)
    },
    "held_out=1": Row(
        replace(METHODS["cape_held_out"], grid={**_RATE, "bins": (15,)}), "held_out", 1
    ),
}

_SUM = METHODS["weighted_sum"]
WEIGHTED = {
    **_named("ce"),
    **CONTROL,
    **CAPE,
    **{
        f"lambda={v:g}": Row(
            replace(_SUM, label=f"lambda = {v:g}", grid={**CAPE_GRID, "mix": (v,)}), "lambda", v
        )
        for v in (0.3, 1.0, 3.0, 10.0)
    },
}

_FOLDS = {"folds": 3, "repeats": 2}  # two networks that did not see the row, at the price of four
_COSINE = METHODS["ce_hygiene"].recipe
TARGETS = {
    **CE,
    **_named("platt", "smoothed", grid={}),
    **_named("ensemble"),
    **CAPE,
    **_named("crossfit", "crossfit_platt", "crossfit_mixed", **_FOLDS),
    **_named("distilled", "ce_cosine", "ce_averaged", "ce_hygiene"),
    "self_distilled": Row(replace(METHODS["self_distilled"], grid={**RATES, "share": (0.5,)})),
    "crossfit_hygiene": Row(
        replace(
            METHODS["crossfit_mixed"],
            label="Cross-fitted, half outcomes; cosine, averaged",
            recipe=_COSINE,
            **_FOLDS,
        )
    ),
    "augmented": Row(replace(METHODS["ce"], label="CE, augmented"), augment=True),
    "augmented_hygiene": Row(
        replace(METHODS["ce_hygiene"], label="CE, augmented, cosine, averaged"), augment=True
    ),
    "augmented_crossfit": Row(
        replace(
            METHODS["crossfit_mixed"],
            label="All of it: augmented, cross-fitted, cosine, averaged",
            recipe=_COSINE,
            folds=3,
        ),
        augment=True,
    ),
}
TARGETS["smoothed"] = Row(replace(METHODS["smoothed"], grid={"smoothing": (0.1,)}))

ENSEMBLES = {
    **_named("ce", "platt", "ensemble", "ensemble_platt"),
    **CAPE,
    "cape_temperature": Row(
        replace(CAPE["cape_bin"].method, label="CaPE, then temperature", calibrator="temperature")
    ),
    "cape_platt": Row(
        replace(CAPE["cape_bin"].method, label="CaPE, then Platt", calibrator="platt")
    ),
    "cape_ensemble": Row(replace(METHODS["cape_ensemble"], grid={**_RATE, "bins": (15,)})),
    "cape_ensemble_platt": Row(
        replace(
            METHODS["cape_ensemble"],
            label="CaPE in an ensemble, then Platt",
            grid={**_RATE, "bins": (15,)},
            calibrator="platt",
        )
    ),
}

SCALING = {
    **_named("resampled", "ce", "platt", "ensemble"),
    **CAPE,
    **_named("crossfit_mixed", **_FOLDS),
    "augmented_hygiene": TARGETS["augmented_hygiene"],
}

MARK = {
    **CE,
    **CAPE,
    "crossfit_hygiene": TARGETS["crossfit_hygiene"],
    "augmented_hygiene": TARGETS["augmented_hygiene"],
}

STUDIES = {
    "beginning": BEGINNING,
    "losses": LOSSES,
    "cape": HYPERPARAMETERS,
    "weighted": WEIGHTED,
    "targets": TARGETS,
    "mark": MARK,
    "ensembles": ENSEMBLES,
    "stopping": {},
    "several": {},
    "scaling": SCALING,
}
"""Rows of each study by name; two of them have rows of their own kind."""

PAGE = ("beginning", "weighted", "several")
"""What the notebook trains itself unless it is told otherwise: the quick ones."""


def check_studies(names):
    """Return names of studies from text or an iterable of names, without repetition."""
    names = names.replace(",", " ").split() if isinstance(names, str) else list(names or ())
    for name in names:
        check_choice(name, STUDIES, "studies")
    return [name for name in STUDIES if name in names]
