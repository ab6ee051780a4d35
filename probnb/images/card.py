"""The card of a kept model: what it was made from, how good it is, where not to use it."""

import numpy as np
import torch

from .. import __version__
from ..report.judge import LARGEST
from ..report.tell import calibration_cells, group_cells, metric_cells
from ..text import escape, fenced, listed, tabled
from .predict import UNLIKE

FEW = 50
"""A group with fewer test rows is counted, not named: it may be a person."""

FLAGGED = (
    f"`predict` says 1 in the column {UNLIKE} of an image whose features are further from the \
training images than those of 99 % of validation images; what it says 0 of may be unlike them too."
)

_RECORD = ("source", "settings", "seed", "device", "precision", "cpu_seconds", "python", "commit")


def model_card(model, data="", choice=None, report=None, command=None):
    """Say what is known of a model, as Markdown.

    Parameters
    ----------
    model : probnb.images.model.KeptModel
        Its record says what it is called, how it was trained and where.
    data : str, default=""
        What was read and what was left out, as Markdown.
    choice : DataFrame, optional
        From `probnb.images.choose.choose_model`, its index as a reader shall see it.
    report : probnb.report.Report, optional
        On the test rows; one of its columns is called as the model's record says.
    command : str, optional
        What makes the model again.

    Returns
    -------
    str
        Only what is known: a model alone has its network, its input and its versions.
    """
    record, label = model.record, model.record.get("label", model.network.name)
    size = f"{model.size} × {model.size} pixels" if model.size else f"{model.channels} columns"
    network = {
        "network": f"{len(model.members)} × {model.network.name} {dict(model.network.settings)}",
        "input": f"{size}, {model.channels} channels, {model.aspect}",
        "calibrator": getattr(model.calibrator, "label", "none"),
        **{name: record[name] for name in _RECORD if record.get(name) is not None},
    }
    parts = {"Data": data, "Network and training": _list(network)}
    limits = [
        "Images unlike these: another camera, place or season, or chosen in another way. Nothing "
        "here was measured on such. " + (FLAGGED if model.summary else ""),
        f"Images whose point is lost at {size}, the size that all are brought to.",
    ]
    if choice is not None:
        parts["How it was chosen"] = (
            "By the validation rows alone: the lowest negative log-likelihood (NLL), and of the "
            "rows that they do not tell from it (gap within its standard error) the plainest.\n\n"
            + tabled(choice.round(4))
        )
    if report is not None:
        y, tables = report.table.y, report.tables
        metrics = tabled(metric_cells(tables["metrics"].loc[(slice(None), [label]), :]))
        rows = f"On {len(y):,} test rows, which neither trained nor chose it. Intervals: 95 %."
        parts["Scores"] = f"{rows}\n\n{metrics}"
        parts["Calibration"] = tabled(calibration_cells(tables["calibration"].loc[[label]]))
        share = f"in the test rows, {np.average(y, weights=report.table.weight):.1%}"
        off = "the probabilities are off until it is calibrated again on new outcomes"
        limits.append(f"Where outcome 1 is rarer or more frequent than {share}: there {off}.")
        if len(tables["groups"]):
            groups = tables["groups"].xs(label, level="column")
            large, number = groups[groups["rows"] >= FEW], len(set(report.table.group))
            if few := number - len(large):
                small = f"fewer than {FEW} test rows, or not of the {LARGEST} largest"
                limits.append(f"Single groups, {few} of {number}, that are not judged: {small}.")
            if off := large.index[large["off"]].map(str).tolist():
                limits.append(f"Groups where it was off: {', '.join(map(escape, off))}.")
            if len(large):
                parts["Calibration"] += "\n\n" + tabled(group_cells(large))
    parts["Where not to use it"] = "\n".join(f"- {limit}" for limit in limits)
    parts["Versions"] = _list({"probnb": __version__, "torch": torch.__version__})
    parts["To make it again"] = command and fenced(command)
    text = "".join(f"\n## {name}\n\n{text}\n" for name, text in parts.items() if text)
    return f"""# {escape(label)}

The probability of outcome 1 of an image. For new ones: `python -m probnb predict FOLDER \
new_images/`, where FOLDER holds this card. What is added to this card by hand does not make the \
model unreadable.
{text}"""


def _list(facts):
    return listed(f"{name}: {value}" for name, value in facts.items())
