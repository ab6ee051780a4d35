"""The calibrators by name, and fitted ones on disk: JSON that anyone can read, and no pickle."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..store import replace_file
from .nonparametric import HistogramBinning, IsotonicCalibration, IsotonicMixNMatch, MixNMatch
from .parametric import BetaCalibration, DirichletCalibration, PlattScaling, TemperatureScaling

CALIBRATORS = {
    "temperature": TemperatureScaling,
    "platt": PlattScaling,
    "beta": BetaCalibration,
    "dirichlet": DirichletCalibration,
    "mixnmatch": MixNMatch,
    "mixnmatch_isotonic": IsotonicMixNMatch,
    "isotonic": IsotonicCalibration,
    "histogram": HistogramBinning,
}
"""The calibrators by name: those of the paper's tables, and the two classical ones. Each class has
a ``label`` for tables; to add a calibrator, add its class here."""

VERSION = 2


def save(path, calibrator):
    """Write a fitted calibrator to one file, whole or not at all.

    Parameters
    ----------
    path : path-like
        Where to; folders are made.
    calibrator : estimator
        A fitted calibrator of `CALIBRATORS`.

    Raises
    ------
    ValueError
        If it is none of these, or has a parameter or labels that JSON cannot hold.
    sklearn.exceptions.NotFittedError
        If it was not fitted.

    Examples
    --------
    >>> import tempfile
    >>> from probnb.calibrators import PlattScaling, load, save
    >>> platt = PlattScaling().fit([-1.0, -1, 1, 1], [0, 1, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/platt.json", platt)
    ...     again = load(f"{folder}/platt.json")
    >>> bool((again.predict_proba([0.5]) == platt.predict_proba([0.5])).all())
    True
    """
    kind = _known().get(type(calibrator).__name__)
    if kind is not type(calibrator):
        raise ValueError(
            f"calibrator must be one of {', '.join(_known())}; got {type(calibrator).__name__}."
        )
    check_is_fitted(calibrator)
    parameters = calibrator.get_params()
    content = {
        "version": VERSION,
        "class": kind.__name__,
        "parameters": parameters,
        "fitted": {k: v for k, v in vars(calibrator).items() if k not in parameters},
    }
    text = _written(content | {"sha256": _digest(content)}, indent=1)
    replace_file(path, lambda temporary: Path(temporary).write_text(text + "\n", encoding="utf-8"))


def load(path):
    """Read what `save` wrote.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    estimator
        The calibrator, whose predictions equal those of the saved one bit for bit.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is damaged, no calibrator, or of another version.
    """
    text = Path(path).read_bytes()
    try:
        content = json.loads(text)
        if content.pop("sha256") != _digest(content) or content["version"] != VERSION:
            raise ValueError(f"it was changed, or is not of version {VERSION}")
        parameters = {name: _decode(value) for name, value in content["parameters"].items()}
        calibrator = _known()[content["class"]](**parameters)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"path must be a calibrator saved by probnb; {path} is damaged or something else: "
            f"{type(error).__name__}, {error}."
        ) from None
    for name, value in content["fitted"].items():
        setattr(calibrator, name, _decode(value))
    return calibrator


def _known():
    return {kind.__name__: kind for kind in CALIBRATORS.values()}


def _digest(content):
    return hashlib.sha256(_written(content, sort_keys=True).encode()).hexdigest()


def _written(content, **options):
    return json.dumps(content, allow_nan=False, default=_encode, **options)


def _encode(value):
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        name = type(value).__name__
        raise ValueError(f"calibrator must hold numbers or text to be saved; got {name}.")
    dtype = "object" if value.dtype == object else value.dtype.str
    return {"dtype": dtype, "values": value.tolist()}


def _decode(value):
    if isinstance(value, dict):
        return np.array(value["values"], dtype=value["dtype"])
    return tuple(value) if isinstance(value, list) else value
