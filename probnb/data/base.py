"""What every data module returns: inputs, outcomes and, where they are known, probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

__all__ = ["ProbabilityData", "Splits"]


@dataclass(frozen=True)
class ProbabilityData:
    """One set of examples.

    Parameters
    ----------
    inputs : torch.Tensor of shape (n, ...)
        Images as uint8 of shape (n, channels, height, width), or any float tensor.
    outcomes : torch.Tensor of shape (n,)
        float32 zeros and ones.
    probabilities : torch.Tensor of shape (n,) or None
        float32 ground-truth probabilities of outcome 1, where they are known.
    groups : torch.Tensor of shape (n,) or None
        Whatever rows share: an age, a patient, a day. Used for splits, bootstraps and figures.
    """

    inputs: torch.Tensor
    outcomes: torch.Tensor
    probabilities: torch.Tensor | None = None
    groups: torch.Tensor | None = None

    def __post_init__(self):
        n = len(self.inputs)
        for name in ("outcomes", "probabilities", "groups"):
            value = getattr(self, name)
            if value is not None and len(value) != n:
                raise ValueError(f"{name} must have the {n} rows of inputs; got {len(value)}.")

    def __len__(self):
        return len(self.inputs)

    def to(self, device):
        """Return the same data with every tensor on `device`."""
        fields = ("inputs", "outcomes", "probabilities", "groups")
        moved = {f: getattr(self, f).to(device) for f in fields if getattr(self, f) is not None}
        return replace(self, **moved)


@dataclass(frozen=True)
class Splits:
    """Training, validation and test data, with a name that identifies their source.

    Parameters
    ----------
    train, val, test : ProbabilityData
        The three sets.
    source : str
        What identifies the data: generator, parameters and seed, or file and checksum. It is
        part of the key under which finished work is stored.
    report : dict, default={}
        Counts worth telling a person: images read, malformed names, corrupt files skipped.
    """

    train: ProbabilityData
    val: ProbabilityData
    test: ProbabilityData
    source: str
    report: dict | None = None
