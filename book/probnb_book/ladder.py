"""The ladder of sizes, from 32 pixels to the paper's 200: what is found, at its size.

Few trainings, and all of each: the logits of validation and test rows after every epoch are kept,
so that any rule of keeping an epoch can be applied afterwards. An ensemble of any size needs no
training of its own: M networks gain (1 - 1/M) V, with V half the mean squared disagreement of two.

A seed is kept in the study ``ladder`` of the folder of results after each of its trainings. What
ran elsewhere is added to it by ``python -m probnb_book keep``: a seed's table ``NAME.parquet`` in a
folder ``ladder`` with its record ``NAME.json`` beside it, or, from another folder of results, the
whole study ``ladder.parquet``; seeds of the same name are replaced, all others stay.

With a GPU, the paper's size, after a minute that says how fast and how repeatable it is::

    pytest -s benchmarks/test_device.py
    python -m probnb_book.ladder 200 UTKFace.tar.gz --seeds 0 1 2 3 4 --device cuda
"""

import argparse
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.special import expit
from scipy.stats import t as student
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.flop_counter import FlopCounterMode

from probnb import store
from probnb.experiment.plan import plan
from probnb.experiment.profiles import make_profile
from probnb.training.batches import make_fabric, precision_of, predict_logits
from probnb.training.cape import CAPE, Calibrated
from probnb.training.loop import fit
from probnb.training.targets import Observed

from . import pause, storage
from .data.faces import load_faces
from .scenarios import SCENARIOS


@dataclass(frozen=True)
class Rung:
    """A size of images and network; all else is the profile ``cpu``, or the released recipe.

    A precision is named where the chapters' runs have it; otherwise the device decides.
    """

    size: int
    width: int
    stem: str = "large"
    batch_size: int = 128
    precision: str | None = None


RUNGS = {
    "32": Rung(32, 8, "small", precision="32-true"),
    "48": Rung(48, 16, "small"),
    "96": Rung(96, 32),
    "128": Rung(128, 64, batch_size=256),
    "200": Rung(200, 64, batch_size=256),
}
"""By pixels. The first two are those of the chapters' runs, the last is the paper's."""

STARTS = ("ce", "ce 2")
"""The two trainings of cross entropy."""

DECAY = 0.99
"""Of the averaged weights, as in the row ``ce_averaged``."""


def trainings(rung, seed, fresh=False):
    """Say what is trained of one seed, by name and in order: each name with its `Job`.

    Two trainings of cross entropy; from both a control and CaPE at 0.001, from the first at 0.01;
    with `fresh` labels that are drawn anew in every epoch as well.
    """
    settings = make_profile(
        "cpu",
        size=rung.size,
        width=rung.width,
        stem=rung.stem,
        batch_size=rung.batch_size,
        members=2,
        finetune_epochs=3,
    )
    jobs = plan(["resampled", "ensemble", "ce_finetuned"], settings, seed)
    patient = {"patience": settings.patience}
    first, second = (
        replace(job, recipe=replace(job.recipe, **patient)) for job in jobs["ensemble"]
    )
    found = {"ce": first, "ce 2": second}
    tuned = jobs["ce_finetuned"][0]
    cape = Calibrated("bin", **CAPE["released"]["bin"], bins=5)
    for start, rate in (("ce", 0.001), ("ce 2", 0.001), ("ce", 0.01)):
        recipe = replace(tuned.recipe, learning_rate=rate, schedule="constant")
        for name, targets in (("control", Observed()), ("cape", cape)):
            job = replace(tuned, start=found[start], recipe=recipe, targets=targets)
            found[f"{name} from {start} at {rate}"] = job
    if fresh:
        found["fresh"] = jobs["resampled"][0]
    return found


def train(job, splits, start, fabric, folder, name):
    """Train one job from where it was cut off, and keep the logits of every epoch.

    Parameters
    ----------
    job : Job
        From `trainings`.
    splits : Splits
        The data.
    start : dict of str to torch.Tensor or None
        Weights to start from.
    fabric : lightning_fabric.Fabric
        Device and precision.
    folder, name : path-like, str
        Where finished and unfinished work is kept.

    Returns
    -------
    weights : dict of str to torch.Tensor
        Of the epoch that validation keeps.
    logits : dict of str to torch.Tensor
        ``"own"`` and, for a training from random weights, ``"averaged"``: log-odds of validation
        and then test rows after each epoch, float32 (epochs, n).
    history : list of dict
        As `probnb.training.loop.Fit` has it.
    """
    done, between, beside = (Path(folder, f"{name}.{end}") for end in ("done", "epoch", "seen"))
    if done.exists():
        tensors, meta = store.load(done)
        return store.part(tensors, "weights."), store.part(tensors, "logits."), meta["history"]
    torch.manual_seed(job.init_seed)
    model = job.network.build(splits.train.inputs).to(fabric.device)  # where its average is too
    average, seen = None, {"own": []}
    if start is not None:
        model.load_state_dict(start)
    else:
        decay = torch.optim.swa_utils.get_ema_multi_avg_fn(DECAY)
        average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=decay, use_buffers=True)
        seen["averaged"] = []
    if not _resume(between, beside, average, seen):
        between.unlink(missing_ok=True)
    data = splits.to(fabric.device)

    def look(row):
        last = store.load(between)[0]  # what the loop has just written
        seen["own"].append(torch.cat([last[f"logits.last_{part}"] for part in ("val", "test")]))
        if average is not None:
            both = [predict_logits(fabric, average, part) for part in (data.val, data.test)]
            seen["averaged"].append(torch.cat(both).cpu())
        tensors = {f"logits.{kind}": torch.stack(z) for kind, z in seen.items()}
        kept = {f"average.{k}": v for k, v in average.state_dict().items()} if average else {}
        store.save(beside, tensors | kept, {})
        print(
            name,
            {k: round(row[k], 5) for k in ("epoch", "val_ce", "mse_p", "cpu_seconds")},
            flush=True,
        )

    hook = average and register_optimizer_step_post_hook(
        lambda *_: average.update_parameters(model)
    )
    try:
        result = fit(
            model,
            splits,
            job.recipe,
            targets=job.targets,
            fabric=fabric,
            checkpoint=between,
            on_epoch=look,
            keep_start=start is not None,
        )
    finally:
        if hook:
            hook.remove()
    logits = {kind: torch.stack(z).diff(dim=2)[..., 0] for kind, z in seen.items()}
    tensors = {f"weights.{k}": v for k, v in result.weights.items()}
    tensors |= {f"logits.{k}": v for k, v in logits.items()}
    store.save(done, tensors, {"history": result.history})
    for path in (between, beside):
        path.unlink(missing_ok=True)
    return result.weights, logits, result.history


def _resume(between, beside, average, seen):
    """Take up what stands beside a training's state; False where it is of another epoch."""
    if not (between.exists() and beside.exists()):
        return False
    tensors, _ = store.load(beside)
    logits = store.part(tensors, "logits.")
    if len(logits["own"]) != len(store.header(between)["history"]) - 1:  # killed between the two
        return False
    for kind, z in logits.items():
        seen[kind].extend(z)
    if average is not None:
        average.load_state_dict(store.part(tensors, "average."))
    return True


def climb(rung, scenario, seed, data_dir, runs, results, fresh=False, mirror=False, device="cpu"):
    """Train what one seed of a rung needs, and write what is finished after each training."""
    setting = RUNGS[rung]
    name = "-".join([rung, scenario, *(["mirrored"] if mirror else []), f"seed{seed}"])
    splits = load_faces(scenario, data_dir, setting.size, seed=seed, mirror=mirror)
    precision = setting.precision or precision_of(device)
    fabric = make_fabric(device, precision)
    table = pd.concat(
        pd.DataFrame(
            {"split": part, "id": data.ids, "y": data.outcomes.int(), "p": data.probabilities}
        )
        for part, data in splits.parts().items()
        if part != "train"
    )
    columns, fits, weights = {}, {}, {None: None}
    jobs = trainings(setting, seed, fresh)
    if mirror:
        jobs = {"ce": jobs["ce"]}
    for label, job in jobs.items():
        start = label.split(" from ")[1].rsplit(" at ", 1)[0] if " from " in label else None
        weights[label], logits, history = train(
            job, splits, weights[start], fabric, Path(runs, name), label
        )
        for kind, z in logits.items():
            of = label if kind == "own" else f"{label}, averaged"
            columns |= {f"{of} | {t}": row.numpy() for t, row in enumerate(z, 1)}
        kept = {"recipe": asdict(job.recipe), "targets": repr(job.targets), "history": history}
        fits[label] = kept
        seconds = sum(row.get("cpu_seconds", 0) for one in fits.values() for row in one["history"])
        record = {
            "rung": asdict(setting), "task": scenario, "seed": seed, "mirror": mirror,
            "source": splits.source, "digest": splits.digest, "precision": precision,
            **store.machine(), "cpu_seconds": seconds, "fits": fits,
        }  # fmt: skip
        kept = {name: (record, {"ladder": table.assign(**columns)})}
        storage.keep(results, "ladder", kept)


def read(name, folder):
    """Return a seed's record and its table of predictions, a column for each training's epoch."""
    return storage.records(folder, "ladder")[name], storage.read(folder, "ladder", "ladder", name)


def kept(record, name):
    """Return the epoch that validation keeps; of a fine-tuning the start, 0, is a candidate."""
    losses = [row["val_ce"] for row in record["fits"][name]["history"]]
    first = 0 if " from " in name else 1
    return first + losses[first:].index(min(losses[first:]))


@cache
def arithmetic(rung):
    """Multiplications and additions of one image on its way through the network, in millions."""
    job = trainings(rung, 0)["ce"]
    image = torch.zeros(1, 3, rung.size, rung.size)
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        job.network.build(image)(image)
    return counted.get_total_flops() / 2e6


def epochs(folder):
    """Return every epoch of every stored training, 0 being the start, one line each.

    Columns ``size``, ``scenario``, ``seed``, ``mirror``, ``training`` (its name in `trainings`),
    ``start`` (that of the training it starts from, or empty), ``row`` (``"cape_bin"``,
    `probnb_book.pause.CONTROL` or the training), ``rate``, and those of the history.
    """
    parts = []
    for record in storage.records(folder, "ladder").values():
        facts = {k: record[k] for k in ("seed", "mirror")}
        facts |= {"size": record["rung"]["size"], "scenario": record["task"]}
        for name, one in record["fits"].items():
            kind, _, start = name.partition(" from ")
            facts["row"] = {"control": pause.CONTROL, "cape": "cape_bin"}.get(kind, kind)
            facts |= {"training": name, "start": start.rpartition(" at ")[0], "bins": None}
            facts["rate"] = one["recipe"]["learning_rate"]
            parts.append(pd.DataFrame(one["history"]).assign(**facts))
    none = pd.DataFrame(
        columns=["size", "scenario", "seed", "mirror", "training", "start", "epoch"]
    )
    return pd.concat(parts or [none.assign(val_ce=[], mse_p=[])], ignore_index=True)


def noise(folder):
    """Return V of both trainings of cross entropy, where they are stored, a line a seed."""
    lines = []
    for name, record in storage.records(folder, "ladder").items():
        if {*STARTS} <= set(record["fits"]) and not record["mirror"]:
            table = read(name, folder)[1]
            test = table[table["split"] == "test"]
            pair = (test[f"{one} | {kept(record, one)}"] for one in STARTS)
            apart = np.subtract(*(expit(z.to_numpy(float)) for z in pair))
            size, scenario = record["rung"]["size"], record["task"]
            lines.append((size, scenario, record["seed"], np.mean(apart**2) / 2))
    return pd.DataFrame(lines, columns=["size", "scenario", "seed", "V"])


def sizes(folder, scenario="linear"):
    """Return what the ladder asks of each seed at the epochs that validation keeps.

    Columns ``error`` (MSE_p times 100 of stopping early, the mean of two trainings), ``fresh`` (on
    labels drawn afresh), and in per cent of the first ``noise`` (V) and ``cape`` (less its control
    at 0.001, the mean over both starts).
    """
    table = epochs(folder)
    trained = (table["epoch"] > 0) | (table["start"] != "")  # random weights are no candidate
    table = table[trained & table["scenario"].eq(scenario) & table["mirror"].eq(False)]
    key = ["size", "seed"]
    best = table.loc[table.groupby([*key, "training"])["val_ce"].idxmin()]
    error = 100 * best.pivot(index=key, columns="training", values="mse_p")
    error = error.reindex(columns=list(trainings(RUNGS["32"], 0, fresh=True)))
    early = error[[*STARTS]].mean(axis=1, skipna=False).dropna().rename("error")
    pairs = [[f"{row} from {start} at 0.001" for row in ("cape", "control")] for start in STARTS]
    less = [error[cape] - error[control] for cape, control in pairs]
    apart = noise(folder)
    told = {
        "noise": 100 * apart[apart["scenario"] == scenario].set_index(key)["V"],
        "cape": pd.concat(less, axis=1).mean(axis=1, skipna=False),
    }
    return (
        pd.DataFrame(told)
        .reindex(early.index)
        .div(early / 100, axis=0)
        .assign(error=early, fresh=error["fresh"])
    )


def forecast(values, size=200, level=0.95):
    """Continue a quantity of `sizes` in a straight line in the logarithm of the arithmetic.

    Seeds of all sizes are taken to differ alike, since the few of one size do not tell. Returns
    the value at `size` and the ends of the interval in which a single seed there is expected; NaN
    with fewer than three seeds or two sizes.
    """
    values = values.dropna()
    sizes = values.index.get_level_values("size")
    if len(values) < 3 or sizes.nunique() < 2:
        return (np.nan,) * 3
    work = {rung.size: np.log10(arithmetic(rung)) for rung in RUNGS.values()}
    x, at = sizes.map(work).to_numpy(), np.array([work[size], 1])
    line, covariance = np.polyfit(x, values, 1, cov=True)
    free = len(values) - 2
    spread = np.sum((values - np.polyval(line, x)) ** 2) / free
    half = student.ppf((1 + level) / 2, free) * np.sqrt(at @ covariance @ at + spread)
    return at @ line, at @ line - half, at @ line + half


def main(arguments=None):
    """Climb: one process for each seed of a rung, one thread each."""
    parser = argparse.ArgumentParser(prog="python -m probnb_book ladder", description=__doc__)
    parser.add_argument("rung", choices=list(RUNGS))
    parser.add_argument("data_dir", help="UTKFace, the archive or its folder")
    parser.add_argument("--scenarios", nargs="+", default=["linear"], choices=list(SCENARIOS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--fresh", action="store_true", help="labels drawn afresh as well")
    parser.add_argument("--mirror", action="store_true", help="only cross entropy, faces mirrored")
    parser.add_argument("--device", default="cpu", choices=["auto", "cpu", "cuda", "mps"])
    parser.add_argument("--runs", default="runs/ladder", help="finished and unfinished trainings")
    parser.add_argument("--results", default="results", help="what is kept with the book")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    for seed, scenario in product(given.seeds, given.scenarios):
        climb(
            given.rung,
            scenario,
            seed,
            given.data_dir,
            given.runs,
            given.results,
            given.fresh,
            given.mirror,
            given.device,
        )


if __name__ == "__main__":
    main()
