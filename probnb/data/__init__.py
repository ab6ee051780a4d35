"""Data: the protocol that training expects, and the data sets of the chapters."""

from .base import Bags, ProbabilityData, Splits

__all__ = ["Bags", "ProbabilityData", "Splits"]
