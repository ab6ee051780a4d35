"""Sizes of an experiment, from seconds on a laptop to the paper's recipe on a GPU.

No torch here, so that a notebook can check its parameters in its first second.
"""

import math
from dataclasses import dataclass, field, fields, replace

from ..methods import LOSSES, TARGETS
from ..validation import check_choice, check_integer, check_number

__all__ = ["GRID_FIELDS", "PROFILES", "PROFILE_FIELDS", "Profile", "make_profile"]


CHOICES = {
    "stem": ("small", "large"),
    "layers": ("stages", "last", "both"),
    "tune": (True, False),
    "cape": ("released", "printed"),
    "finetune_schedule": ("plateau", "cosine", "constant"),
}
"""What the fields that are no numbers may be; a backbone is known to its room."""


@dataclass(frozen=True)
class Profile:
    """What an experiment costs.

    Parameters
    ----------
    images : int, tuple of int or None
        How many images, split in the paper's proportions; three numbers for training, validation
        and test; None for all of a data set (drawn faces: the paper's 23,708).
    size : int
        Height and width of the images in pixels.
    width : int
        Channels of the first stage of ResNet-18; of a head on features, its hidden units.
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
    finetune_schedule : {"plateau", "cosine", "constant"}
        What happens to their learning rate.
    members : int
        Members of an ensemble at most.
    adversarial : float
        Adversarial step of a deep ensemble, in normalised input units; 0 for none.
    cape : {"released", "printed"}
        CaPE's schedule, by name; see `probnb.training.targets.CAPE`.
    candidates : int
        How many values of each hyperparameter are tried, from the first of a method's grid.
    backbone : str
        The pretrained network on whose features heads are trained, see
        `probnb.pretrained.backbone.Backbone`; ``"none"`` trains a ResNet-18 from random weights.
    layers : {"stages", "last", "both"}
        What is read of it.
    tune : bool
        Whether the backbone is trained too, on the images, from its pretrained weights.
    dropout : float
        Of a head on its features.
    weight_decay : float
        L2 penalty of SGD.
    grid : dict of str to tuple
        Values to try instead of a method's own: names of `GRID_FIELDS`.
    """

    images: object
    size: int
    width: int
    stem: str
    epochs: int
    patience: int
    plateau_patience: int
    batch_size: int
    learning_rate: float = 0.1
    finetune_epochs: int = 12
    finetune_schedule: str = "plateau"
    members: int = 5
    adversarial: float = 0.0
    cape: str = "released"
    candidates: int = 2
    backbone: str = "none"
    layers: str = "stages"
    tune: bool = False
    dropout: float = 0.0
    weight_decay: float = 5e-4
    grid: dict = field(default_factory=dict, hash=False)

    def __post_init__(self):
        for one in fields(self):
            if one.type is int:
                check_integer(getattr(self, one.name), one.name)
        counts = self.images if isinstance(self.images, tuple) else (self.images,)
        for count in () if self.images is None else counts:
            check_integer(count, "images")
        if len(counts) not in (1, 3):
            raise ValueError(
                f"images must be a number, or three (train, val, test); got {self.images!r}."
            )
        check_number(self.learning_rate, "learning_rate", 0, exclusive=True)
        for name, most in {"adversarial": math.inf, "dropout": 1, "weight_decay": math.inf}.items():
            check_number(getattr(self, name), name, 0, most)
        for name, allowed in CHOICES.items():
            check_choice(getattr(self, name), allowed, name)
        if self.tune and self.backbone == "none":
            raise ValueError("tune must be False without a backbone; got True.")
        for name, values in self.grid.items():
            check_choice(name, GRID_FIELDS, "grid")
            for value in values:  # the rest its targets, losses and recipes check
                least, above = -1 if name == "share" else 0, ("finetune_learning_rate", "sigma")
                check_number(value, name, least, exclusive=name in above)
            check_integer(len(values), f"number of values of {name}")

    @property
    def frozen(self):
        """Whether heads are trained on the features of a backbone that stays as it is."""
        return self.backbone != "none" and not self.tune


_TUNED = (name for names in TARGETS.values() for name in names)
GRID_FIELDS = tuple(dict.fromkeys(["finetune_learning_rate", *_TUNED, *LOSSES[1:]]))
"""Hyperparameters whose values a parameter of the same name can set."""

PROFILE_FIELDS = (*(f.name for f in fields(Profile) if f.name != "grid"), *GRID_FIELDS)
"""What a parameter of the same name can override."""

PROFILES = {
    "smoke": Profile(
        300, 32, 8, "small", 3, 2, 1, 64, finetune_epochs=2, members=2, candidates=1,
        grid={"bins": (5,), "neighbours": (50,)},
    ),
    "quick": Profile(
        (3000, 600, 2329), 20, 12, "small", 36, 4, 4, 64, learning_rate=0.05, finetune_epochs=3,
        members=3, candidates=1, grid={"finetune_learning_rate": (1e-2, 1e-3)},
    ),
    "features": Profile(
        None, 128, 64, "small", 30, 4, 2, 512, learning_rate=0.02, finetune_epochs=6,
        candidates=1, backbone="lite0", dropout=0.5, weight_decay=0.03,
        grid={"finetune_learning_rate": (5e-3, 5e-4)},
    ),
    "finetune": Profile(
        None, 128, 64, "small", 8, 3, 1, 64, learning_rate=0.01, finetune_epochs=2, candidates=1,
        backbone="lite0", tune=True, dropout=0.5, grid={"finetune_learning_rate": (1e-3,)},
    ),
    "cpu": Profile(None, 32, 8, "small", 24, 5, 5, 128, finetune_epochs=8, members=3),
    "paper": Profile(
        None, 200, 64, "large", 200, 20, 5, 256, finetune_epochs=100, adversarial=0.01, candidates=4
    ),
}  # fmt: skip
"""Profiles by name, from the quickest; ``quick`` is the default."""


def make_profile(name="quick", **overrides):
    """Return a profile, with some of its values replaced.

    Parameters
    ----------
    name : {"smoke", "quick", "features", "finetune", "cpu", "paper"}, default="quick"
        Where to start from.
    **overrides
        Names in `PROFILE_FIELDS`; None leaves a value as it is, and a single number stands for a
        grid of one.

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
    >>> make_profile("cpu", epochs=5, bins=10).grid
    {'bins': (10,)}
    """
    profile = PROFILES[check_choice(name, PROFILES, "profile")]
    direct, grid = {}, dict(profile.grid)
    for key, value in overrides.items():
        check_choice(key, PROFILE_FIELDS, "profile override")
        value = tuple(value) if isinstance(value, list) else value
        if value is not None and key in GRID_FIELDS:
            grid[key] = value if isinstance(value, tuple) else (value,)
        elif value is not None:
            direct[key] = value
    made = replace(profile, **direct, grid=grid)
    alone = "a backbone" if made.backbone == "none" else "random weights"
    for name in ("layers", "dropout") if made.backbone == "none" else ("stem",):
        if direct.get(name, getattr(profile, name)) != getattr(profile, name):
            raise ValueError(f"{name} is of use with {alone} alone; got {direct[name]!r}.")
    return made
