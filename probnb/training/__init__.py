"""Training: one loop for every method, its batches, losses, targets and networks."""

from .loop import Fit, Recipe, fit, train_one_epoch

__all__ = ["Fit", "Recipe", "fit", "train_one_epoch"]
