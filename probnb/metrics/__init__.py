"""Everything that judges predictions, in one namespace.

`registry` holds the scores and lists all metrics as data, `binning` has what rests on bins and on
sorted predictions, `sample` the checked and sorted rows that they read, `votes` what outcomes say
that were observed more than once, `resampling` the bootstrap, `differences` the rule for "is a
different from b" and the intervals of means, of shares and of distances from votes.
"""

from . import binning, differences, registry, resampling
from .binning import *
from .differences import *
from .registry import *
from .resampling import *

__all__ = [*binning.__all__, *differences.__all__, *registry.__all__, *resampling.__all__]
