"""probnb: an executable account of *Deep Probability Estimation* (Liu et al., ICML 2022).

The chapters of the book call this library; a researcher points it at their own images or
predictions. `compare` is the whole comparison in one call; modules are imported one by one
(``from probnb import metrics``), so that a light one does not load torch.
"""

import pkgutil

__version__ = "0.2.0"

__all__ = ["compare"]


def __getattr__(name):
    if name == "compare":  # the top of the library, and torch: only where it is asked for
        return pkgutil.resolve_name("probnb.comparison:compare")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
