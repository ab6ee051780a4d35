"""Where numbers come from: the code that trained, the machine, the version."""

from __future__ import annotations

import ast
import datetime
import functools
import hashlib
import inspect
import platform
import subprocess
import textwrap
import types
from pathlib import Path

from .. import __version__, empirical
from ..data import base
from ..training import batches, checkpoint, loop, losses, models, targets, teachers

__all__ = ["fingerprint", "machine"]

_GENERATED = ("__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__replace__")
"""Methods that a dataclass writes itself, besides ``__init__``, which has no source either."""


def fingerprint(job):
    """Return a hash of the code that trains a job, comments and docstrings left out.

    A stored result whose code had another hash may differ from what would be trained today. The
    functions are taken as they are in memory, so that one replaced at run time counts as well.

    Parameters
    ----------
    job : Job
        Its loss, targets and network count, and the training loop.

    Returns
    -------
    str
        Sixteen hexadecimal digits.
    """
    loss = losses.LOSSES[job.loss] if isinstance(job.loss, str) else job.loss
    network = job.network.kind
    network = models.NETWORKS[network] if isinstance(network, str) else network
    used = [*_shared(), loss, job.targets, network]
    if isinstance(job.targets, targets.Calibrated):
        used += [empirical.p_emp_bin, empirical.p_emp_kernel]
    if job.teachers:
        used += [teachers.teach, teachers._calibrated]
    if job.teachers or job.fold:
        used += [teachers.left_out, teachers.without]
    parts = [text for value in used for text in _code(value)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _shared():
    """Code that takes part in every training; checks of input and reports of it do not."""
    return (
        loop.fit,
        loop.train_one_epoch,
        loop._assess,
        loop._make_scheduler,
        loop._make_average,
        loop._out_of_patience,
        checkpoint.Run,
        batches.use_fast_layout,
        batches.predict_logits,
        batches.gather,
        batches.cut,
        base.ProbabilityData.batch,
        base.Splits.to,
        base.channel_scale,
        losses.CrossEntropy,
        losses._cross_entropy,
        losses._mean,
    )


def machine():
    """Return what a run's record says of version, commit, date and processor."""
    return {
        "version": __version__,
        "commit": _commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "python": platform.python_version(),
    }


def _code(value):
    """Sources of a function, or of all functions of a class and of the classes it builds on."""
    if isinstance(value, types.FunctionType):
        return [_text(value.__code__)]
    kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
    return [
        text
        for kind in kinds
        if kind.__module__.split(".")[0] not in ("builtins", "torch", "torchvision", "typing")
        for name, member in sorted(vars(kind).items())
        if isinstance(member, (types.FunctionType, property)) and name not in _GENERATED
        for text in (name, *_code(member.fget if isinstance(member, property) else member))
    ]


@functools.cache
def _text(code):
    """The source of some code without comments and docstrings, or its bytes where it has none."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError, TypeError):
        return "" if code.co_name == "__init__" else code.co_code.hex()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and len(body) > 1 and _is_text(body[0]):
            del body[0]
    return ast.unparse(tree)


def _is_text(node):
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


def _commit():
    """The commit of the checkout that this code is in, "+" where it was changed since; or None."""
    here = Path(__file__).resolve().parent

    def git(*words):
        return subprocess.run(["git", *words], cwd=here, capture_output=True, text=True)

    try:
        head = git("rev-parse", "--short=12", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".").stdout.strip()
    except OSError:
        return None
    return head.stdout.strip() + "+" * bool(changed) if head.returncode == 0 else None


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
