"""probnb: an executable account of *Deep Probability Estimation* (Liu et al., ICML 2022).

The chapters of the book call this library; a researcher points it at their own images or
predictions. Modules are imported one by one (``from probnb import metrics``), so that a light
one does not load torch.
"""

__version__ = "0.2.0"
