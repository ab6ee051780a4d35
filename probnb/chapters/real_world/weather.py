"""The first task: does it rain more over an area in an hour than it does now."""

from __future__ import annotations

import warnings

import numpy as np

from .task import Task

__all__ = ["TASK", "load", "references"]

QUESTION = """
Three radar maps of an area, ten minutes apart, go in. The outcome is 1 where the mean rain over
that area is higher one hour after the last map than on the last map. Nobody can know: showers are
born and die within the hour. Days are what is independent here; windows of one day are near copies
of each other. (The paper speaks of 30 minutes, which three maps ten minutes apart do not span, and
its released loader takes 15 and 65 minutes: `-p spacing 15 -p lead 65`.)

Windows without rain on the last map are left out, a rule that looks at nothing that comes later.
Training windows are turned and mirrored at random, all three maps alike: the outcome, a comparison
of means, stays the same, and the few days at hand cannot teach which winds are common. The
network's size, its rate and its batches were chosen among five combinations with all days in view,
so that its scores, unlike those of the reference rows, are a little too good.
"""

ATTRIBUTION = """
Radar: Deutscher Wetterdienst (RADOLAN), [CC BY
4.0](https://creativecommons.org/licenses/by/4.0/), as distributed in the Python package pycomlink
0.6.0; cut into areas, averaged over pixels and put on a logarithmic scale here.
"""


def load(data_dir, profile, seed, source="radar", fold=None, **question):
    """Load radar windows, or simulate some.

    Parameters
    ----------
    data_dir : path-like or None
        The wheel or NetCDF file with the example, or RADOLAN files or HDF5 of one's own; None
        takes the example from the cache or fetches it.
    profile : probnb.experiment.profiles.Profile
        ``size`` of the inputs; ``images`` limits the number of windows.
    seed : int
        Which days are tested, unless `fold` says so; of a simulation, its seed.
    source : {"radar", "simulated"}, default="radar"
        Measured rain, or simulated rain with known probabilities.
    fold : int, optional
        Which fifth of few days is tested; see `probnb.data.radar.split_days`.
    **question
        Fields of `probnb.data.radar.Question`.

    Returns
    -------
    probnb.data.base.Splits
        The windows. Where the example can neither be found nor fetched they are simulated, with a
        warning, and ``report["fallback"]`` says why.
    """
    from ...data import radar, radar_series, rain
    from ...data.radar_example import read_example
    from ...validation import check_choice

    check_choice(source, ("radar", "simulated"), "source")
    fallback = {}
    if source == "radar":
        try:
            whole = str(data_dir).endswith((".nc", ".whl")) or data_dir is None
            series = read_example(data_dir) if whole else radar_series.open_series(data_dir)
            return radar.weather_splits(
                series,
                radar.Question(**question),
                size=profile.size,
                fold=seed % 5 if fold is None else fold,
                limit=_count(profile.images),
            )
        except ConnectionError as error:
            warnings.warn(f"Simulated rain in place of radar: {error}", stacklevel=2)
            fallback = {"fallback": str(error)}
    climate = rain.Climate(**{k: question[k] for k in ("spacing", "lead") if k in question})
    n = _count(profile.images) or 3000
    splits = rain.simulated_splits(n, profile.size, seed, climate, per_day=20 if n > 1000 else 10)
    splits.report.update(fallback)
    return splits


def _count(images):
    return sum(images) if isinstance(images, tuple) else images


def network(profile, splits):
    """The paper's ResNet-18 where the profile asks for it, else the small network."""
    from ...training.models import network as spec

    if profile.stem == "large":
        return spec("resnet18", width=profile.width, stem="large")
    return spec("rain", width=profile.width)


def describe(splits):
    """Say what the data are and what was left out."""
    report, parts = splits.report, splits.parts()
    counts = ", ".join(
        f"{len(part):,} to {verb} ({len(set(part.groups))} days, "
        f"{part.outcomes.mean():.1%} positive)"
        for part, verb in zip(parts.values(), ("train on", "choose and calibrate with", "test on"))
    )
    size = splits.train.inputs.shape[-1]
    text = f"Windows of three maps, {size} × {size} pixels each: {counts}. "
    if splits.known:
        text += "The rain is **simulated**, and the probability of every window is known. "
        if "fallback" in report:
            text += f"**There should have been radar here:** {report['fallback']}"
        return text
    asked = report["question"]
    left_out = {
        "times with a missing map": "gap",
        "times whose maps would belong to two days": "midnight",
        f"windows with data on less than {asked['coverage']:.0%} of a map": "no data",
        f"windows with less than {asked['wet']:g} mm/h on the last map": "dry",
        "ties": "tie",
        "unreadable files": "unreadable",
        "maps out of order or twice": "out of order",
    }
    listed = [f"{report[key]:,} {name}" for name, key in left_out.items() if report.get(key)]
    days = sorted({day for part in parts.values() for day in part.groups})
    return (
        f"{text}They show areas of {asked['tile']} × {asked['tile']} km, from {report['maps']:,} "
        f"maps, {days[0]} to {days[-1]}; left out: "
        f"{', '.join(listed) or 'nothing'}. Tested days: "
        f"{', '.join(sorted(set(splits.test.groups)))}."
    )


def pooled(inputs):
    """Statistics of each map and their changes: what a meteorologist would write down first.

    Parameters
    ----------
    inputs : tensor or array of uint8 of shape (n, 3, size, size)
        Encoded maps.

    Returns
    -------
    ndarray of shape (n, 24)
        Of the last map and of its two changes: mean, spread, share with rain, maximum, and the
        means of the four quarters, on the logarithmic scale.
    """
    half = inputs.shape[-1] // 2
    blocks = []
    for first in range(0, len(inputs), 256):  # inputs may lie on disk
        x = np.asarray(inputs[first : first + 256]).astype(np.float32) / 255
        quarters = [x[..., a, b] for a in _halves(half) for b in _halves(half)]
        blocks.append(
            np.stack(
                [
                    x.mean((2, 3)),
                    x.std((2, 3)),
                    (x > 0).mean((2, 3)),
                    x.max((2, 3)),
                    *(quarter.mean((2, 3)) for quarter in quarters),
                ],
                axis=2,
            )
        )
    x = np.concatenate(blocks)
    return np.concatenate([x[:, 2], x[:, 2] - x[:, 1], x[:, 2] - x[:, 0]], axis=1)


def _halves(half):
    return slice(None, half), slice(half, None)


def references(splits, seed=0):
    """Predict the test part with what needs no network.

    Parameters
    ----------
    splits : probnb.data.base.Splits
        The windows.
    seed : int, default=0
        Seed of the forest.

    Returns
    -------
    dict of str to ndarray of shape (n_test,)
        Climatology: the share of positive outcomes in the training part. Persistence of the trend:
        that share among training windows whose mean has risen, or has fallen, over the three
        maps. Logistic regression and a random forest on `pooled`, both fixed in advance.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, z = pooled(splits.train.inputs), pooled(splits.test.inputs)
    y = splits.train.outcomes.cpu().numpy()
    change = x.shape[1] * 2 // 3  # mean of the last map less that of the first
    rose, rising = x[:, change] > 0, z[:, change] > 0
    shares = [y[rose == side].mean() if (rose == side).any() else y.mean() for side in (0, 1)]
    models = {
        "Logistic regression": make_pipeline(
            StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)
        ),
        "Random forest": RandomForestClassifier(
            200, min_samples_leaf=20, max_features=0.3, random_state=seed
        ),
    }
    return {
        "Climatology": np.full(len(z), y.mean()),
        "Persistence of trend": np.where(rising, shares[1], shares[0]),
        **{name: model.fit(x, y).predict_proba(z)[:, 1] for name, model in models.items()},
    }


def picture(splits):
    """Draw some windows of the test part."""
    from .figures import rain_figure

    return rain_figure(splits)


def across(table):
    """Draw the Brier score of every day."""
    from .figures import group_figure

    names = [n for n in ("ce", "cape_bin", "Climatology", "Random forest") if n in table]
    return group_figure(table, names, TASK)


TASK = Task(
    name="weather",
    title="Weather: more rain in an hour?",
    question=QUESTION,
    load=load,
    network=network,
    cluster="day",
    scenario="linear",
    attribution=ATTRIBUTION,
    describe=describe,
    profiles={
        "smoke": dict(images=400, size=16, width=4),
        "quick": dict(images=None, size=16, width=16, epochs=12, learning_rate=0.1, batch_size=128),
        "cpu": dict(images=None, size=32, width=16, epochs=30),
        "paper": dict(size=300, images=29_000),
    },
    parameters=dict(
        source="radar", fold=None, tile=95, spacing=10, lead=60, stride=10, wet=0.02, coverage=0.9
    ),
    smoke=dict(source="simulated"),
    references=references,
    picture=picture,
    across=across,
)
