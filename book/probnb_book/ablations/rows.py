"""The questions of the chapter as data: which rows each compares, and at what settings.

No torch here, so that a notebook can check names in its first second.
"""

from collections import namedtuple
from dataclasses import replace

from probnb.experiment.profiles import make_profile
from probnb.methods import METHODS
from probnb.validation import check_choice

SMALL = {
    "images": (1000, 300, 1000),
    "size": 16,
    "width": 8,
    "epochs": 20,
    "finetune_epochs": 4,
    "batch_size": 64,
    "learning_rate": 0.05,
    "patience": 4,
    "plateau_patience": 4,
    "members": 3,
}
"""What the profile ``quick`` is here: a third of other chapters' images, for many more rows."""

SIZES = {
    "smoke": ((60, 120), 300),
    "quick": ((500, 2000, 8000), 1000),
    "cpu": ((1000, 4000, 16000), 2329),
}
"""Training images of the study on scale, and test images."""


Row = namedtuple(
    "Row", "method part x augment each member", defaults=("", None, False, False, None)
)
"""One row of a study: the `Method` that is trained, whose grid is tried as it stands; the panel of
the study that it belongs to, and its place there; whether training images, its teachers' as well,
are mirrored, moved and lit at random; whether Platt scaling repairs each member before they are
averaged; and the one member of an ensemble, from 0, that the row is, by default the mean of all."""


def settings_of(profile):
    """Return the `Profile` of the chapter: rows try what their own grids say."""
    check_choice(profile, ("smoke", "quick", "features", "cpu", "paper"), "profile")
    small = SMALL if profile == "quick" else {}
    return replace(make_profile(profile, **small), grid={}, candidates=8)


def _row(name, part="", x=None, augment=False, each=False, member=None, **changes):
    changes |= {} if member is None else {"members": member + 1}
    return Row(replace(METHODS[name], **changes), part, x, augment, each, member)


def _named(*names, **changes):
    return {name: _row(name, **changes) for name in names}


def _fixed(name, part, setting, values, **grid):
    """One row for each value of a setting; everything else as it is chosen elsewhere."""
    return {
        f"{part}={v:g}": _row(
            name, part, v, label=f"{part} = {v:g}", grid={**grid, setting: (v,)}, recipe={}
        )
        for v in values
    }


RATES = {"finetune_learning_rate": (1e-2, 1e-3)}
RATE = {"finetune_learning_rate": (1e-2,)}
USUAL = {**RATE, "bins": (15,)}
CAPE_GRID = {**RATES, "bins": (15,)}
CAPE = _named("cape_bin", grid=CAPE_GRID)
CONTROL = _named("ce_finetuned", grid=RATES)
FOLDS = {"folds": 3, "repeats": 2}  # two networks that did not see the row, at the price of four
COSINE = METHODS["ce_hygiene"].recipe


def _starts(start, part, **how):
    """A network, and what fine-tuning makes of it: without calibration epochs, and with them."""
    tuned = {"ce_finetuned": RATES, "cape_bin": CAPE_GRID}
    tuned = {name: _row(name, part, start=start, grid=grid, **how) for name, grid in tuned.items()}
    rows = {start: _row(start, part, **how), **tuned}
    return {f"{name}, {part}": row for name, row in rows.items()}


TARGETS = {
    **_named("resampled", "ce", "platt", "ensemble"),
    **CAPE,
    **_named("smoothed", grid={"smoothing": (0.1,)}),
    **_named("crossfit", "crossfit_platt", "crossfit_mixed", **FOLDS),
    **_named("distilled", "ce_cosine", "ce_averaged", "ce_hygiene"),
    **_named("self_distilled", grid={**RATES, "share": (0.5,)}),
    "crossfit_hygiene": _row(
        "crossfit_mixed",
        label="Cross-fitted, half outcomes; cosine, averaged",
        recipe=COSINE,
        **FOLDS,
    ),
    "augmented": _row("ce", augment=True, label="CE, augmented"),
    "augmented_hygiene": _row("ce_hygiene", augment=True, label="CE, augmented, cosine, averaged"),
    "augmented_crossfit": _row(
        "crossfit_mixed",
        augment=True,
        recipe=COSINE,
        folds=3,
        label="All of it: augmented, cross-fitted, cosine, averaged",
    ),
}


STUDIES = {
    "beginning": {
        **_named("ce"), **CAPE, **_named("cape_kernel", grid=RATES),
        **_named("beginning_bin", "beginning_kernel"),
    },
    "losses": {
        **_named("ce"),
        **_fixed("focal", "focal", "focal", (0.3, 1.0, 2.0, 4.0)),
        **_fixed("entropy", "entropy", "entropy", (0.1, 0.3, 1.0)),
        **_fixed("mmce", "mmce", "mmce", (0.3, 1.0, 3.0, 10.0)),
    },
    "cape": {
        **_named("ce"), **CONTROL,
        **_fixed("cape_bin", "m", "every", (1, 2, 3, 4), **USUAL),
        **_fixed("cape_bin", "phase", "phase", (0, 1, 2), **USUAL, every=(3,)),
        **_fixed("cape_bin", "B", "bins", (2, 5, 15, 50), **RATE),
        **_fixed("cape_bin", "rate", "finetune_learning_rate", (1e-1, 1e-2, 1e-3, 1e-4),
                 bins=(15,)),
        **_fixed("cape_kernel", "r", "neighbours", (20, 100, 200, 800), **RATE),
        **_fixed("cape_kernel", "sigma", "sigma", (0.01, 0.0707, 0.3), **RATE),
        **{f"length={n}": _row("cape_bin", "length", n, label=f"length = {n}", grid=USUAL,
                               recipe={"epochs": n}) for n in (2, 4, 12)},
        "held_out=1": _row("cape_held_out", "held_out", 1, grid=USUAL),
    },
    "weighted": {
        **_named("ce"), **CONTROL, **CAPE,
        **_fixed("weighted_sum", "lambda", "mix", (0.3, 1.0, 3.0, 10.0), **CAPE_GRID),
    },
    "targets": TARGETS,
    "ensembles": {
        **_named("ce", "platt", "ensemble", "ensemble_platt"), **CAPE,
        **{f"cape_{kind}": _row("cape_bin", label=f"CaPE, then {name}", grid=CAPE_GRID,
                                calibrator=kind)
           for kind, name in (("temperature", "temperature"), ("platt", "Platt, two logits"))},
        **_named("cape_ensemble", grid=USUAL),
        "cape_ensemble_platt": _row("cape_ensemble", grid=USUAL, calibrator="platt",
                                    label="CaPE in an ensemble, then Platt"),
        "ensemble_members": _row("ensemble", each=True, label="Members, each Platt, two logits"),
        "cape_ensemble_members": _row("cape_ensemble", each=True, grid=USUAL,
                                      label="CaPE, each Platt, two logits"),
    },
    "starts": {
        **{k: row for n in range(3) for k, row in _starts("ce", f"CE {n + 1}", member=n).items()},
        **_starts("ce_averaged", "averaged weights"),
    },
    "stopping": {}, "several": {}, "steps": {}, "reversal": {},
    "weight": {
        f"{part}={xi:g}": _row("crossfit", part, xi, label=f"ξ = {xi:g}, {part}",
                               grid={"share": (1 - xi,)}, **how)
        for part, how in {"unseen": FOLDS, "seen": {"folds": 0}}.items()
        for xi in (0, 0.5, 1, 1.5, 2) if xi or part == "unseen"  # whose teachers say nothing
    },
    "scaling": {
        name: TARGETS[name] for name in ("resampled", "ce", "platt", "ensemble", "cape_bin",
                                         "crossfit_mixed", "augmented_hygiene")
    },
}  # fmt: skip
"""Rows of each study by name; four of them have rows of their own kind."""

PAGE = ("beginning", "weighted", "several")
"""What the notebook trains itself unless it is told otherwise: the quick ones."""
