"""The third task: does the car collide with that vehicle within 1.8 seconds."""

from __future__ import annotations

from .task import Task

__all__ = ["TASK", "describe", "load", "network", "picture", "references", "sizes"]

QUESTION = """
Three frames of a dashboard camera, 0.1 s apart, go in, and in each of them a mask of one vehicle's
box: twelve channels. The outcome is 1 where the car collides with that vehicle within the next
1.8 s. Vehicles of one frame and frames of one scene share their future: scenes are what is
independent.

The frames of YouTubeCrash, on which the paper's numbers rest, could not be had for this project:
**nothing printed for this task was measured again on the real frames.** The loader reads that
layout (`-p data_dir`); by default traffic is simulated, drawn as frames and boxes in the same
layout, and read by the same loader. There the probability of each collision is known, from
continuations of the same past.
"""

ATTRIBUTION = """
Simulated frames are part of the book. YouTubeCrash and GTACrash: [Kim et al.
(2019)](https://sites.google.com/view/crash-to-not-crash).
"""

TESTED = 1 / 3
"""Share of simulated scenes that are tested."""


def load(data_dir, profile, seed, label="label"):
    """Load frames of a dashboard camera, or simulate traffic.

    Parameters
    ----------
    data_dir : path-like or None
        Folder of YouTubeCrash, or of GTACrash sorted in the same way; None simulates.
    profile : probnb.experiment.profiles.Profile
        ``size`` is the height of the inputs (the paper's is 130), ``images`` the number of
        simulated scenes.
    seed : int
        Which training scenes are used for validation. Simulated traffic differs from seed to seed.
    label : str, default="label"
        Key of the labels; see `probnb.data.dashcam.read_dashcam`.

    Returns
    -------
    probnb.data.base.Splits
        The vehicles, grouped by scene.
    """
    from ...data.dashcam import read_dashcam
    from ...data.traffic import traffic

    size = sizes(profile.size)
    if data_dir is not None:
        return read_dashcam(data_dir, size, label, seed=seed)
    scenes = sum(profile.images) if isinstance(profile.images, tuple) else profile.images or 420
    tested = max(round(TESTED * scenes), 1)
    return traffic((scenes - tested, tested), size, seed=seed)


def sizes(height):
    """Height and width of the inputs: the width that rows 100 to 360 of a frame have with it."""
    return height, round(height * 355 / 130)


def network(profile, splits):
    """The paper's VGG-16 where the profile asks for it, else one that looks inside the box."""
    from ...training.models import network as spec

    if profile.stem == "large":
        return spec("vgg16_bn")
    return spec("dashcam", width=profile.width)


def references(splits, seed=0):
    """Predict the test part from the boxes alone; see `collision_boxes.references`."""
    from .collision_boxes import references

    return references(splits, seed)


def describe(splits):
    """Say what the data are, how skewed they are, and what was set aside."""
    report, parts = splits.report, splits.parts()
    counts = ", ".join(
        f"{len(part):,} to {verb} ({len(set(part.groups)):,} scenes, "
        f"{float(part.outcomes.mean()):.1%} collide)"
        for part, verb in zip(parts.values(), ("train on", "choose and calibrate with", "test on"))
    )
    height, width = splits.train.inputs.shape[2:]
    text = f"Vehicles in frames of {width} × {height} pixels: {counts}. "
    if splits.known:
        text += (
            "The traffic is **simulated**. Each probability is a share of continuations; its "
            f"Monte Carlo error adds {100 * report['simulation_error']:.3f} to $MSE_p$ (× 100). "
        )
    return text + _set_aside(report)


def _set_aside(report):
    named = {
        "unreadable images": "unreadable",
        "images of the wrong size": "wrong_size",
        "missing JSON files": "missing_json",
        "broken JSON files": "broken_json",
        "missing frames": "missing_frames",
        "hashcodes given twice in a frame": "duplicate_hashcodes",
        "broken boxes": "broken_boxes",
        "vehicles outside the frame": "outside",
        "tracks that jump": "jumps",
        "vehicles labelled as colliding in a scene without an accident": "accident_in_nonaccident",
        "images converted to RGB": "converted",
        "short scenes": "short_scenes",
        "other files": "other_files",
    }
    found = [f"{len(report[key]):,} {name}" for name, key in named.items() if report.get(key)]
    lost = sum(report["skipped"].values())
    return (
        f"Of {report['frames']:,} frames: {', '.join(found) or 'nothing amiss'}; "
        f"{lost:,} labelled vehicles lost to it. {report['unlabelled']:,} vehicles have no label, "
        f"{report['without_history']:,} of those used were not there two frames before."
    )


def picture(splits):
    """Draw what the network sees of some vehicles; nothing where the frames are real."""
    from .collision_figures import frames_figure

    return frames_figure(splits) if splits.known else None


def page(splits, table):
    """Show what only this task has: the paper's words on skewness, and the known probability."""
    from IPython.display import display

    from .collision_figures import truth_figure
    from .collision_words import skewed_claims
    from .words import sentences

    display(sentences(skewed_claims(splits, table)))
    return truth_figure(table) if "p" in table else None


TASK = Task(
    name="collision",
    title="Collision: will the car hit that vehicle?",
    question=QUESTION,
    load=load,
    network=network,
    cluster="scene",
    scenario="skewed",
    attribution=ATTRIBUTION,
    describe=describe,
    profiles={
        "smoke": dict(images=40, size=13, width=4),
        "quick": dict(images=420, size=26, width=16, epochs=10, learning_rate=0.02),
        "cpu": dict(images=1500, size=65, width=16, epochs=30, learning_rate=0.02),
        "paper": dict(images=1500, size=130, batch_size=64),
    },
    parameters=dict(label="label"),
    references=references,
    picture=picture,
    page=page,
)
