"""Input checks shared by the library: one clear error at the first line that can know.

Every message names the argument, the value seen and what is allowed.
"""

from __future__ import annotations

import difflib
import numbers

import numpy as np

__all__ = [
    "check_choice",
    "check_integer",
    "check_number",
    "check_outcomes",
    "check_pair",
    "check_probabilities",
    "check_vector",
    "check_weights",
]


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


def check_integer(value, name, minimum=1):
    """Return `value` as an int of at least `minimum` (a bool or a fraction is an error)."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}; got {value!r}.")
    return int(value)


def check_number(value, name, minimum=-np.inf, maximum=np.inf, exclusive=False):
    """Return `value` as a finite float in [minimum, maximum], or inside it if `exclusive`."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, bool) and np.isfinite(value)
    inside = ok and (minimum < value < maximum if exclusive else minimum <= value <= maximum)
    if not inside:
        low, high = ("(", ")") if exclusive else ("[", "]")
        raise ValueError(
            f"{name} must be a finite number in {low}{minimum}, {maximum}{high}; got {value!r}."
        )
    return float(value)


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
    y = _numbers(y, name, empty)
    wrong = (y != 0) & (y != 1)  # True for NaN as well
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name} must hold only 0 and 1; got {y[row].item()!r} in row {row}.")
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
    p = _numbers(p, name, empty)
    wrong = ~((p >= 0) & (p <= 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        value = p[row].item()
        raise ValueError(f"{name} must hold probabilities in [0, 1]; got {value!r} in row {row}.")
    return p


def check_pair(y, p, names=("y_true", "y_prob")):
    """Check outcomes and probabilities of the same length; return both as float64 vectors."""
    y, p = check_outcomes(y, names[0]), check_probabilities(p, names[1])
    if len(y) != len(p):
        raise ValueError(
            f"{names[0]} and {names[1]} must have the same length; got {len(y)} and {len(p)}."
        )
    return y, p


def check_weights(w, name="weights", empty=False):
    """Return weights as a float64 vector: finite, at least 0, not all 0."""
    w = _numbers(w, name, empty)
    wrong = ~((w >= 0) & np.isfinite(w))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{name} must be finite and at least 0; got {w[row].item()!r} in row {row}."
        )
    if len(w) and not w.any():
        raise ValueError(f"{name} must have a value above 0; all {len(w)} are 0.")
    return w


def check_vector(x, name):
    """Return labels of any kind (names, days, numbers) as a vector without missing values."""
    if hasattr(x, "detach"):  # a tensor, on any device
        x = x.detach().cpu()
    x = np.asarray(x)
    if x.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional; got shape {x.shape}.")
    missing = x != x if x.dtype.kind != "O" else np.array([v is None or v != v for v in x], bool)
    if missing.any():
        raise ValueError(f"{name} must not be missing; it is in row {int(np.argmax(missing))}.")
    return x


def _numbers(x, name, empty=False):
    if np.ma.isMaskedArray(x) and np.ma.getmaskarray(x).any():
        row = int(np.argmax(np.ma.getmaskarray(x).ravel()))
        raise ValueError(f"{name} must have every value; row {row} is masked.")
    try:
        x = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numeric; {error}.") from None
    if x.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional; got shape {x.shape}.")
    if x.size == 0 and not empty:
        raise ValueError(f"{name} must have at least one row; got none.")
    return x
