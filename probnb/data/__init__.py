"""Data: the protocol that training expects, and the data sets of the chapters."""

from .base import ProbabilityData, Splits
from .ragged import Bags

__all__ = ["Bags", "ProbabilityData", "Splits"]
