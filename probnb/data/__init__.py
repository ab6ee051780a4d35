"""Data modules: each returns `Splits` of `ProbabilityData`."""

from .base import ProbabilityData, Splits

__all__ = ["ProbabilityData", "Splits"]
