"""Data: the protocol that training expects, and the data sets of the chapters."""

from .base import ProbabilityData, Splits
from .inputs import Bags

__all__ = ["Bags", "ProbabilityData", "Splits"]
