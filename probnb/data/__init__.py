"""Data: the protocol that training expects."""

from .base import ProbabilityData, Splits
from .inputs import Bags

__all__ = ["Bags", "ProbabilityData", "Splits"]
