"""What boxes alone say of a collision: the physics that a network is compared with."""

from __future__ import annotations

import numpy as np

from ...data.dashcam_layout import FRAME, HISTORY

__all__ = ["box_features", "growth", "references"]

STEP = 0.1
"""Seconds between frames."""


def growth(boxes):
    r"""Rate at which boxes grow: the inverse of the time to collision.

    A vehicle of size S at distance Z has a box of height fS/Z. At constant closing speed
    :math:`-\dot Z/Z = \dot h/h`, so that the growth rate of the logarithm is one over the time to
    collision, whatever the size, the distance and the camera. It is the slope of the line of least
    squares through the boxes that there are.

    Parameters
    ----------
    boxes : ndarray of shape (n, 3, 4)
        x, y, width, height, the latest first, zeros where there is none.

    Returns
    -------
    ndarray of shape (n,)
        Per second; positive if the vehicle comes closer, 0 where there is one box only.

    Examples
    --------
    >>> boxes = [[[0, 0, 110, 110], [0, 0, 105, 105], [0, 0, 100, 100]]]
    >>> growth(np.array(boxes, float)).round(2)
    array([0.48])
    """
    height = boxes[:, :, 3]
    there = (height > 0).astype(float)
    size = np.log(np.where(height > 0, height, 1))
    return _slope(size, there)


def _slope(values, there):
    """Slope per second of the values that are there, 0 for a single one."""
    time = -STEP * np.arange(HISTORY)
    count = np.maximum(there.sum(1), 1)
    late = time - (there * time).sum(1, keepdims=True) / count[:, None]
    spread = (there * late**2).sum(1)
    return (there * late * values).sum(1) / np.where(spread > 0, spread, 1)


def box_features(boxes):
    """Return what boxes say of size, place and motion.

    Parameters
    ----------
    boxes : ndarray of shape (n, 3, 4)
        As for `growth`.

    Returns
    -------
    ndarray of shape (n, 6)
        Growth rate; logarithms of height and of width; offset of the centre from the middle of the
        frame, in widths of the box, without sign; its rate of change, positive outward; lowest row.
    """
    x, y, width, height = np.moveaxis(np.asarray(boxes, float), 2, 0)
    there = (height > 0).astype(float)
    offset = np.abs(x + width / 2 - FRAME[0] / 2) / np.maximum(width, 1)
    return np.stack(
        [
            growth(boxes),
            np.log(height[:, 0]),
            np.log(width[:, 0]),
            offset[:, 0],
            _slope(offset, there),
            (y + height)[:, 0] / FRAME[1],
        ],
        axis=1,
    )


def references(splits, seed=0):
    """Predict the test part from boxes, or from nothing.

    Parameters
    ----------
    splits : probnb.data.base.Splits
        Samples whose inputs are `probnb.data.dashcam.DashcamInputs`.
    seed : int, default=0
        Seed of the boosting.

    Returns
    -------
    dict of str to ndarray of shape (n_test,)
        The share of positive outcomes in the training part; a logistic curve of the inverse time
        to collision (`growth`); and gradient boosting on all of `box_features`. All are fixed in
        advance and fitted to the training part alone.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    x, z = (box_features(part.inputs.boxes) for part in (splits.train, splits.test))
    y = splits.train.outcomes.cpu().numpy()
    curve = LogisticRegression(C=100).fit(x[:, :1], y)
    trees = HistGradientBoostingClassifier(
        max_iter=100, learning_rate=0.05, max_leaf_nodes=8, min_samples_leaf=30, random_state=seed
    ).fit(x, y)
    return {
        "Constant": np.full(len(z), y.mean()),
        "Time to collision": curve.predict_proba(z[:, :1])[:, 1],
        "Boxes, boosted trees": trees.predict_proba(z)[:, 1],
    }
