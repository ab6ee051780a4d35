"""Input checks shared by the library: one clear error at the first line that can know.

Every message names the argument, the value seen and what is allowed.
"""

import difflib
import math
import numbers
import re
from decimal import Decimal

import numpy as np


def third_class(value):
    """What to add where an outcome is one of several classes, a whole number from 2 on; or ""."""
    there = "For more than two outcomes there is probnb.metrics.evaluate_outcomes."
    return f" {there}" if re.fullmatch(r"([2-9]|[1-9]\d\d?)(\.0)?", str(value).strip()) else ""


def check_choice(value, allowed, name):
    """Return `value` if it is one of `allowed`, else raise with the nearest spelling.

    Parameters
    ----------
    value : object
        The value to check.
    allowed : iterable of str
        What is allowed, in the order to show.
    name : str
        The argument's name, for the message.

    Returns
    -------
    object
        `value`, unchanged.

    Raises
    ------
    ValueError
        If `value` is not in `allowed`.
    """
    allowed = list(allowed)
    if value in allowed:
        return value
    near = difflib.get_close_matches(str(value), [str(item) for item in allowed], n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}; got {value!r}.{hint}")


def check_choices(values, allowed, name):
    """Return names, from an iterable or a text of several, in the order of what is allowed."""
    names = values.replace(",", " ").split() if isinstance(values, str) else values
    names = list(names) if np.iterable(names) else [names]
    for value in names:
        check_choice(value, allowed, name)
    return [value for value in allowed if value in names]


def check_integer(value, name, minimum=1):
    """Return `value` as an int of at least `minimum` (a bool or a fraction is an error)."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}; got {value!r}.")
    if value >= 1 << 63:
        raise ValueError(f"{name} must be below 2^63, beyond which nothing counts; got {value}.")
    return int(value)


def check_number(value, name, minimum=-np.inf, maximum=np.inf, exclusive=False):
    """Return `value` as a finite float in [minimum, maximum], or inside it if `exclusive`."""
    try:
        number = float(value) if isinstance(value, numbers.Real) else math.nan
    except OverflowError:  # an integer
        number = math.nan
    inside = minimum < number < maximum if exclusive else minimum <= number <= maximum
    if not inside or not math.isfinite(number) or isinstance(value, bool):
        allowed = f"({minimum}, {maximum})" if exclusive else f"[{minimum}, {maximum}]"
        raise ValueError(f"{name} must be a finite number in {allowed}; got {value!r}.")
    return number


def check_outcomes(y, name="y_true", empty=False):
    """Return outcomes as a float64 vector of zeros and ones.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcomes: integers, booleans or floats, each 0 or 1; n at least 1.
    name : str, default="y_true"
        The argument's name, for the message.
    empty : bool, default=False
        Whether there may be no rows.

    Returns
    -------
    ndarray of shape (n,)
        The outcomes as float64.

    Raises
    ------
    ValueError
        If `y` is empty, not one-dimensional, or holds anything but 0 and 1.
    """
    y, given = _numbers(y, name, empty)
    rule = f"{name} must hold only 0 and 1"
    refuse_where((y != 0) & (y != 1), given, rule, third_class)  # NaN as well
    return y


def check_probabilities(p, name="y_prob", empty=False):
    """Return probabilities as a float64 vector in [0, 1].

    Parameters
    ----------
    p : array-like of shape (n,)
        Probabilities of outcome 1; n at least 1.
    name : str, default="y_prob"
        The argument's name, for the message.
    empty : bool, default=False
        Whether there may be no rows.

    Returns
    -------
    ndarray of shape (n,)
        The probabilities as float64.

    Raises
    ------
    ValueError
        If `p` is empty, not one-dimensional, or has a value that is NaN or outside [0, 1].
    """
    p, given = _numbers(p, name, empty)
    refuse_where(~((p >= 0) & (p <= 1)), given, f"{name} must hold probabilities in [0, 1]")
    return p


def check_pair(y, p, names=("y_true", "y_prob")):
    """Check outcomes and probabilities of the same length; return both as float64 vectors."""
    y, p = check_outcomes(y, names[0]), check_probabilities(p, names[1])
    check_same_length(y, p, names)
    return y, p


def check_weights(w, name="weights", empty=False):
    """Return weights as a float64 vector: finite, at least 0, not all 0."""
    w, given = _numbers(w, name, empty)
    refuse_where(~((w >= 0) & np.isfinite(w)), given, f"{name} must be finite and at least 0")
    if len(w) and not w.any():
        raise ValueError(f"{name} must have a value above 0; all {len(w)} are zero.")
    return w


def check_whole(x, name):
    """Return whole numbers as a float64 vector."""
    x, given = _numbers(x, name)
    refuse_where(~(np.isfinite(x) & (x == np.rint(x))), given, f"{name} must be whole numbers")
    return x


def check_vector(x, name):
    """Return labels of any kind (names, days, numbers) as a vector without missing values."""
    from pandas import isna  # here, since it takes a while

    given, x = x, plain_array(x, name)
    if x.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional; got shape {x.shape}.")
    missing = isna(x if hasattr(given, "dtype") else np.asarray(given, dtype=object))  # no "nan"
    if missing.any():
        raise ValueError(f"{name} must not be missing; it is in row {int(np.argmax(missing))}.")
    return x


def check_same_length(a, b, names):
    """Raise unless two vectors have as many rows."""
    if len(a) != len(b):
        raise ValueError(
            f"{' and '.join(names)} must have the same length; got {len(a)} and {len(b)}."
        )


def refuse_masked(x, name):
    """Raise if `x` is a masked array that hides a value (an empty mask hides none)."""
    hidden = np.ma.getmaskarray(x) if np.ma.isMaskedArray(x) else np.zeros(0, bool)
    if hidden.any():
        row = int(np.argwhere(hidden)[0][0]) if hidden.ndim else 0
        raise ValueError(f"{name} must have every value; row {row} is masked.")


def plain_array(x, name):
    """Return an array, a tensor or whatever becomes one as NumPy has it, all of it given."""
    refuse_masked(x, name)
    if hasattr(x, "detach"):  # a tensor, on any device, of any precision
        x = x.detach().cpu()
        x = (x.float() if "bfloat16" in str(x.dtype) else x).numpy()
    try:
        x = np.asarray(x)
    except (TypeError, ValueError) as error:  # rows of different lengths
        raise ValueError(f"{name} must be numeric; {error}.") from None
    return x.astype(x.dtype.newbyteorder("="), copy=False)  # pandas takes no other order


def _numbers(x, name, empty=False):
    """Return `x` as float64, and as it came, whose digits the messages show."""
    given = plain_array(x, name)
    if given.ndim != 1:
        seen = f"shape {given.shape}" if given.ndim else type(x).__name__
        hint = third_class(given.shape[1] - 1) if given.ndim == 2 else ""
        raise ValueError(f"{name} must be one-dimensional; got {seen}.{hint}")
    if given.size == 0 and not empty:
        raise ValueError(f"{name} must have at least one row; got none.")
    return as_float(given, name), given


def as_float(given, name):
    """Return an array as float64, or raise where it holds anything but numbers."""
    if given.dtype.kind == "O":
        _check_objects(given, name)
    elif given.dtype.kind not in "biuf" and given.size:
        raise ValueError(
            f"{name} must be numeric; got {given.dtype} values, {given[0]!s} in row 0."
        )
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numeric; {error}.") from None


def _check_objects(values, name):
    """Raise at the first of some Python objects that is no real number."""
    from pandas import isna  # here, since few callers pass objects and pandas takes a while

    for (row, *_), value in np.ndenumerate(values):
        if np.ndim(value) == 0 and isna(value) and not isinstance(value, numbers.Real):
            raise ValueError(f"{name} must have every value; row {row} is missing ({value}).")
        if not isinstance(value, numbers.Real | Decimal | np.bool_):
            raise ValueError(
                f"{name} must be numeric; got {type(value).__name__} {value!r} in row {row}."
            )


def refuse_where(wrong, given, rule, hint=lambda value: ""):
    """Raise at the first row that is wrong, with the value in its own digits."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{rule}; got {given[row]!s} in row {row}.{hint(given[row])}")
