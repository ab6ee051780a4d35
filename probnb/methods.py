"""The rows of the paper's tables: what each method trains, from where, on what, with what loss.

A method is data. `probnb.experiment.plan` turns the rows that are asked for into fits, each done
once however many rows read it. No torch here, so that a notebook can check names in its
first second.
"""

from __future__ import annotations

from dataclasses import dataclass

from .validation import check_choice

__all__ = ["METHODS", "REFERENCE", "Method", "check_methods"]


@dataclass(frozen=True)
class Method:
    """One row of a table.

    Parameters
    ----------
    label : str
        Name in tables and figures, as the paper spells it.
    kind : str
        The paper's grouping: ``"reference"``, ``"cross entropy"``, ``"post-processing"``,
        ``"ensemble"``, ``"modified training"`` or ``"CaPE"``.
    loss : {"ce", "focal", "entropy", "mmce"}, default="ce"
        Training loss; the strengths of the last three are tuned on validation data.
    targets : {"observed", "resampled", "bin", "kernel"}, default="observed"
        Schedule of soft targets; ``"bin"`` and ``"kernel"`` are CaPE's.
    finetune : bool, default=False
        Whether it starts from the early-stopped cross-entropy weights, with a learning rate tuned
        on validation data, rather than from random ones.
    epoch : {"best", "last"}, default="best"
        Which epoch's predictions: lowest validation cross entropy, or the last.
    members : int, default=1
        Networks whose probabilities are averaged.
    calibrator : str or None, default=None
        Name in `probnb.calibrators.CALIBRATORS`, fitted to validation logits.
    """

    label: str
    kind: str
    loss: str = "ce"
    targets: str = "observed"
    finetune: bool = False
    epoch: str = "best"
    members: int = 1
    calibrator: str | None = None


_POST, _MODIFIED = "post-processing", "modified training"

METHODS = {
    # Nothing to memorise, so nothing to stop early: its last epoch, at the end of the schedule.
    "resampled": Method("CE + resampled labels", "reference", targets="resampled", epoch="last"),
    "ce_overfit": Method("CE overfit", "cross entropy", epoch="last"),
    "ce": Method("CE early-stop", "cross entropy"),
    "temperature": Method("Temperature", _POST, calibrator="temperature"),
    "platt": Method("Platt scaling", _POST, calibrator="platt"),
    "dirichlet": Method("Dirichlet cal.", _POST, calibrator="dirichlet"),
    "beta": Method("Beta cal.", _POST, calibrator="beta"),
    "focal": Method("Focal loss", _MODIFIED, loss="focal"),
    "mixnmatch": Method("Mix-n-match", "ensemble", calibrator="mix-n-match"),
    "entropy": Method("Entropy reg.", _MODIFIED, loss="entropy"),
    "mmce": Method("MMCE reg.", _MODIFIED, loss="mmce"),
    "ensemble": Method("Deep ensemble", "ensemble", members=5),
    "ce_finetuned": Method("CE fine-tuned", "cross entropy", finetune=True),
    "cape_bin": Method("CaPE (bin)", "CaPE", targets="bin", finetune=True),
    "cape_kernel": Method("CaPE (kernel)", "CaPE", targets="kernel", finetune=True),
}
"""All rows in the paper's order, with the three that it lacks where they belong: the overfitted
network of its figures, beta calibration, and the control for CaPE, which is fine-tuned in the same
way without calibration epochs."""

REFERENCE = "ce"
"""The row that every other is compared with."""


def check_methods(methods=None):
    """Return method names in table order.

    Parameters
    ----------
    methods : None, str or iterable of str, optional
        None for all; a string may hold several names separated by commas or spaces.

    Returns
    -------
    list of str
        The names, without repetition, in the order of `METHODS`; ``"ce"``, with which every row
        is compared, is always among them.

    Raises
    ------
    ValueError
        If a name is unknown.

    Examples
    --------
    >>> check_methods("platt, resampled")
    ['resampled', 'ce', 'platt']
    """
    if methods is None:
        return list(METHODS)
    names = methods.replace(",", " ").split() if isinstance(methods, str) else list(methods)
    for name in names:
        check_choice(name, METHODS, "methods")
    return [name for name in METHODS if name in names or name == REFERENCE]
