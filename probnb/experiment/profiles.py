"""Sizes of an experiment, from seconds on a laptop to the paper's recipe on a GPU.

No torch here, so that a notebook can check its parameters in its first second.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from ..validation import check_choice, check_integer, check_number

__all__ = ["PROFILES", "PROFILE_FIELDS", "Profile", "make_profile"]


@dataclass(frozen=True)
class Profile:
    """What an experiment costs, and the small grids on which its rows are tuned.

    Parameters
    ----------
    images : int or None
        How many images, split in the paper's proportions; None for all of a data set (drawn
        faces: the paper's 23,708).
    size : int
        Height and width of the images in pixels.
    width : int
        Channels of the first stage of ResNet-18.
    stem : {"small", "large"}
        Stem of the network; see `probnb.training.models.ResNet18`.
    epochs : int
        Passes of the fits that start from random weights.
    patience : int
        Epochs without improvement after which a fit is stopped; cross entropy and resampled labels
        train all epochs, for the figures that show what comes after.
    plateau_patience : int
        Epochs without improvement after which the learning rate is halved.
    batch_size : int
        Examples in a step.
    learning_rate : float
        Initial learning rate from random weights.
    finetune_epochs : int
        Passes of the fits that start from early-stopped weights.
    finetune_learning_rates : tuple of float
        Tried for CE fine-tuned and for CaPE.
    every : int
        CaPE's m: every m-th epoch is a calibration epoch.
    phase : int
        0 where CaPE's first epoch is on the outcomes, as in the paper's Algorithm 1; ``every - 1``
        where it is a calibration epoch, as in the authors' code, which matters if there are few.
    bins : tuple of int
        Numbers of bins tried for CaPE (bin).
    neighbours : int
        Neighbours of CaPE (kernel).
    sigmas : tuple of float
        Kernel widths tried for CaPE (kernel), in units of probability.
    gammas : tuple of float
        Strengths tried for focal loss.
    entropy_betas : tuple of float
        Strengths tried for entropy regularisation.
    mmce_betas : tuple of float
        Strengths tried for MMCE.
    adversarial : float
        Adversarial step of the deep ensemble, in normalised input units; 0 for none.
    """

    images: int | None
    size: int
    width: int
    stem: str
    epochs: int
    patience: int
    plateau_patience: int
    batch_size: int
    learning_rate: float = 0.1
    finetune_epochs: int = 8
    finetune_learning_rates: tuple = (1e-2, 1e-3)
    every: int = 2
    phase: int = 0
    bins: tuple = (5, 15)
    neighbours: int = 200
    sigmas: tuple = (0.05,)
    gammas: tuple = (1.0, 2.0)
    entropy_betas: tuple = (0.3, 1.0)
    mmce_betas: tuple = (1.0, 3.0)
    adversarial: float = 0.0

    def __post_init__(self):
        for name in (
            "size",
            "width",
            "epochs",
            "patience",
            "plateau_patience",
            "batch_size",
            "finetune_epochs",
            "every",
            "neighbours",
        ):
            check_integer(getattr(self, name), name)
        check_integer(self.phase, "phase", minimum=0)
        if self.images is not None:
            check_integer(self.images, "images")
        check_number(self.learning_rate, "learning_rate", 0, exclusive=True)
        check_number(self.adversarial, "adversarial", 0)
        check_choice(self.stem, ("small", "large"), "stem")
        for name in ("finetune_learning_rates", "sigmas"):
            _check_grid(getattr(self, name), name, exclusive=True)
        for name in ("gammas", "entropy_betas", "mmce_betas"):
            _check_grid(getattr(self, name), name)
        for value in _check_grid(self.bins, "bins"):
            check_integer(value, "bins")


def _check_grid(values, name, exclusive=False):
    if not values:
        raise ValueError(f"{name} must have at least one value; got {values!r}.")
    for value in values:
        check_number(value, name, 0, exclusive=exclusive)
    return values


PROFILE_FIELDS = tuple(field.name for field in fields(Profile))
"""What a parameter of the same name can override."""

PROFILES = {
    "smoke": Profile(
        images=300,
        size=32,
        width=8,
        stem="small",
        epochs=3,
        patience=2,
        plateau_patience=1,
        batch_size=64,
        finetune_epochs=2,
        phase=1,
        finetune_learning_rates=(1e-2,),
        bins=(5,),
        gammas=(1.0,),
        entropy_betas=(0.3,),
        mmce_betas=(1.0,),
        neighbours=50,
    ),
    "quick": Profile(
        images=3200,
        size=32,
        width=16,
        stem="small",
        epochs=26,
        patience=6,
        plateau_patience=3,
        batch_size=64,
        learning_rate=0.05,
        finetune_epochs=6,
        finetune_learning_rates=(3e-3, 3e-4),
        phase=1,
        bins=(15,),
    ),
    "cpu": Profile(
        images=None,
        size=48,
        width=16,
        stem="small",
        epochs=60,
        patience=8,
        plateau_patience=5,
        batch_size=128,
    ),
    "paper": Profile(
        images=None,
        size=200,
        width=64,
        stem="large",
        epochs=200,
        patience=20,
        plateau_patience=5,
        batch_size=256,
        finetune_epochs=100,
        finetune_learning_rates=(1e-3, 1e-4),
        sigmas=(0.05, 0.1),
        gammas=(0.5, 1.0, 2.0),
        entropy_betas=(0.1, 0.3, 1.0),
        mmce_betas=(0.3, 1.0, 3.0),
        adversarial=0.01,
    ),
}
"""Profiles by name, from the quickest; ``quick`` is the default."""


def make_profile(name="quick", **overrides):
    """Return a profile, with some of its values replaced.

    Parameters
    ----------
    name : {"smoke", "quick", "cpu", "paper"}, default="quick"
        Where to start from.
    **overrides
        Fields of `Profile`; None leaves a field as it is, and a single number stands for a grid of
        one.

    Returns
    -------
    Profile
        The result, checked.

    Raises
    ------
    ValueError
        If the name, a field or a value is not allowed.

    Examples
    --------
    >>> make_profile("quick", epochs=5, bins=10).bins
    (10,)
    """
    profile = PROFILES[check_choice(name, PROFILES, "profile")]
    given = {field: value for field, value in overrides.items() if value is not None}
    for field, value in given.items():
        check_choice(field, PROFILE_FIELDS, "profile override")
        if isinstance(getattr(profile, field), tuple):
            given[field] = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    return replace(profile, **given)
