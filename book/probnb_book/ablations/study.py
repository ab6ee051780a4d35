"""Train the rows of a study and judge them; keep and compare what came out, seed by seed.

``python -m probnb_book train ablations targets weighted --seeds 0 1 2`` trains what is not yet
trained, and keeps each seed with its record in the study ``ablations`` of stored results;
``--data-dir UTKFace.tar.gz --profile cpu`` takes photographs.
"""

from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from probnb.data.base import Brightness, Mirror, Shift
from probnb.experiment.plan import lineage, plan
from probnb.experiment.profiles import PROFILES
from probnb.experiment.results import collect, on_test
from probnb.experiment.run import run_jobs
from probnb.metrics import METRICS, Difference, difference, evaluate, evaluate_outcomes, holm
from probnb.pretrained.features import features_of
from probnb.store import machine
from probnb.training.batches import device_type, precision_of
from probnb.training.models import network
from probnb.validation import check_choice

from .. import storage
from ..data.drawn_faces import VERSION
from ..data.faces import load_faces
from ..scenarios import SCENARIOS
from .cost import cost_of, passes
from .rows import SIZES, STUDIES, settings_of
from .special import ANEW, SEVERAL, platt, run_steps, three_outcomes

COLUMNS = (
    "study", "scenario", "data", "profile", "seed", "n", "row", "label", "part", "x",
    *METRICS, "val_ce", "epoch", "kept_start", "cost", "share", "grouping",
)  # fmt: skip
"""Columns of every study's table; times 1, in nats, and cost in cross-entropy trainings."""

RUN = ["scenario", "data", "profile", "seed", "n", "row"]
"""What tells one line of a study from all others."""


def run_study(
    name, scenario="linear", profile="quick", seed=0, data_dir=None, fits_dir="runs/fits", **how
):
    """Train and judge the rows of a study.

    Parameters
    ----------
    name : str
        Of `STUDIES`.
    scenario : str, default="linear"
        Of `probnb_book.scenarios.SCENARIOS`.
    profile : str, default="quick"
        Sizes, as `settings_of` has them.
    seed : int, default=0
        Of data, weights and order.
    data_dir : path-like, optional
        UTKFace; faces are drawn without it.
    fits_dir : path-like, default="runs/fits"
        Where finished trainings are kept; features of a pretrained network beside it.
    **how
        ``device``, ``workers``, ``progress`` and ``retrain``, for `probnb.experiment.run.run_jobs`.

    Returns
    -------
    DataFrame
        `COLUMNS`; for the study on scale, rows at every size.
    """
    settings, tables = settings_of(profile), []
    sizes, test = SIZES.get(profile, SIZES["cpu"])
    every = [(n, max(60, n // 4), test) for n in sizes] if name == "scaling" else [settings.images]
    for images in every:
        splits = load_faces(scenario, data_dir, size=settings.size, n=images, seed=seed)
        splits = features_of(splits, settings, Path(fits_dir).parent)
        if name in ANEW:
            table = ANEW[name](splits, settings, seed, how.get("device", "auto"))
        elif name == "steps":
            table = run_steps(splits, settings, seed, fits_dir, **how)
        elif name == "several":
            three, net = three_outcomes(splits, seed), {"num_classes": 3, "stem": settings.stem}
            net = network("resnet18", width=settings.width, **net)
            table = run_rows(SEVERAL, three, settings, seed, fits_dir, net, **how)
        else:
            table = run_rows(STUDIES[name], splits, settings, seed, fits_dir, **how)
        tables.append(table.assign(n=len(splits.train)))
    facts = {"study": name, "scenario": scenario, "profile": profile, "seed": seed}
    facts["data"] = "utkface" if data_dir else f"drawn v{VERSION}"  # another version, other faces
    return pd.concat(tables, ignore_index=True).assign(**facts).reindex(columns=COLUMNS)


def run_rows(rows, splits, settings, seed, fits_dir, net=None, **how):
    """Train rows and judge them on the test data.

    Parameters
    ----------
    rows : dict of str to Row
        What to compare; ``"ce"`` need not be among them.
    splits : probnb.data.Splits
        The data, without augmentation.
    settings : Profile
        From `settings_of`.
    seed : int
        Of the trainings.
    fits_dir : path-like
        Where finished trainings are kept.
    net : Network, optional
        By default that of the settings.
    **how
        For `probnb.experiment.run.run_jobs`.

    Returns
    -------
    DataFrame
        One line a row: ``row``, ``label``, ``part``, ``x``, the metrics, ``val_ce``, ``epoch``,
        ``kept_start`` and ``cost``.
    """

    def trained(jobs, data):
        steps = dict.fromkeys(step for job in jobs for step in lineage(job))
        return run_jobs([*steps], data, fits_dir, **how)

    rows = {name: row for name, row in rows.items() if (row.member or 0) < settings.members}
    (ce,) = plan(["ce"], settings, seed, net)["ce"]  # of which all costs are multiples
    unit = passes(ce, trained([ce], splits)[ce], splits, settings.patience)
    lines = {}
    for augment, data in {False: splits, True: with_augmentation(splits)}.items():
        methods = {name: row.method for name, row in rows.items() if row.augment == augment}
        if not methods:
            continue
        every = plan(methods, settings, seed, net, methods).items()
        jobs = {k: [j for j in own if rows[k].member in (None, j.place[1])] for k, own in every}
        fits = trained([job for row in jobs.values() for job in row], data)
        judged = (_judge if data.train.classes == 2 else _judge_three)(rows, jobs, fits, data)
        for name, found in judged.items():
            facts = {"row": name, "label": methods[name].label, "part": rows[name].part}
            last = methods[name].epoch == "last"
            cost = cost_of(jobs[name], fits, data, settings.patience, unit, last)
            lines[name] = {**facts, "x": rows[name].x, **found, "cost": cost}
    return pd.DataFrame([lines[name] for name in rows])


def with_augmentation(splits):
    """Return the data with what leaves a face's age as it is: mirrored, moved, lit."""
    pixels = max(1, round(splits.train.inputs.shape[-1] * 3 / 32))
    steps = (Mirror(), Shift(pixels), Brightness(0.2))
    return replace(splits, train=replace(splits.train, augment=steps))


def _judge(rows, jobs, fits, data):
    """Metrics of each row on test data, and what validation data kept."""
    results = collect(jobs, fits, data, {name: rows[name].method for name in jobs})
    test, y = on_test(results.predictions), data.val.outcomes.numpy()
    kept = results.chosen.query("chosen").drop_duplicates("method").set_index("method")
    kept = kept[["val_ce", "best_epoch", "kept_start"]].rename(columns={"best_epoch": "epoch"})
    found = {}
    for name, members in jobs.items():
        p_hat = test[name]
        if rows[name].each:  # calibrate the members, then average them
            z = [
                [fits[job].logits[f"best_{k}"].double().numpy() for k in ("val", "test")]
                for job in members
            ]
            p_hat = np.mean([platt(val, y, test) for val, test in z], axis=0)
        found[name] = evaluate(test["y"], p_hat, test["p"]) | kept.loc[name].to_dict()
    return found


def _judge_three(rows, jobs, fits, data):
    """The same for three outcomes, where every row is one training."""
    y, p, found = data.test.outcomes.numpy().argmax(1), data.test.probabilities.numpy(), {}
    for name, (job,) in jobs.items():
        done = fits[job]
        p_hat = done.logits[f"{rows[name].method.epoch}_test"].double().softmax(1).numpy()
        kept = {"val_ce": done.val_ce, "epoch": done.best_epoch}
        kept["kept_start"] = job.start is not None and done.best_epoch == 0
        found[name] = evaluate_outcomes(y, p_hat, p) | kept
    return found


def write_study(table, directory, device="auto"):
    """Keep a study's lines, and for each seed how they came about.

    Parameters
    ----------
    table : DataFrame
        From `run_study`, of any number of seeds.
    directory : path-like
        A folder of results.
    device : str, default="auto"
        Where it was trained.

    Returns
    -------
    pathlib.Path
        The file of all studies, in which these runs stand for older ones of the same name.
    """
    (study,) = table["study"].unique()
    where = {"device": device_type(device), "precision": precision_of(device_type(device))}
    runs = {}
    for (scenario, data, profile, seed), lines in table.groupby(RUN[:4], sort=False):
        name = f"{study}-{scenario}-{data.replace(' ', '-')}-{profile}-seed{seed}"
        settings = {k: v for k, v in asdict(settings_of(profile)).items() if k != "grid"}
        runs[name] = {**machine(), **where, "settings": settings}, {study: lines}
    return storage.keep(directory, "ablations", runs)


def read_study(folder, name, **wanted):
    """Read a stored study.

    Parameters
    ----------
    folder : path-like
        Folder of results.
    name : str
        Of the study.
    **wanted
        What the lines must have, for example ``data="utkface"``.

    Returns
    -------
    DataFrame
        `COLUMNS`, scenarios in the paper's order; empty where nothing is stored.
    """
    table = storage.read(folder, "ablations", name).reindex(columns=COLUMNS)
    for column, value in wanted.items():
        table = table[table[column] == value]
    order = {"key": lambda names: names.map(list(SCENARIOS).index), "kind": "stable"}
    return table.sort_values("scenario", **order, ignore_index=True)


def compare(table, base="ce"):
    """Compare MSE_p of every row with that of one of them, seed by seed.

    Each seed has faces, outcomes, test rows and weights of its own, so that the spread of its
    differences holds all of these.

    Parameters
    ----------
    table : DataFrame
        Of one study and kind of data; scenarios and sizes stay apart.
    base : str, default="ce"
        The row to compare with.

    Returns
    -------
    DataFrame
        One line a scenario, size and other row: ``scenario``, ``n``, ``row``, ``label``, ``part``,
        ``mean`` and ``cost`` (over seeds), the fields of `probnb.metrics.Difference` (no
        interval where one seed has both), and ``holm``, p-values corrected over the rows of the
        same scenario and size.
    """
    same, lines = ["scenario", "n", "seed"], []
    start = table[table["row"] == base].set_index(same)["mse_p"]
    for (scenario, n, row), own in table.groupby(["scenario", "n", "row"], sort=False):
        if row != base:
            gaps = (own.set_index(same)["mse_p"] - start).dropna()
            alone = Difference(gaps.mean(), *[np.nan] * 4, len(gaps))
            gap = difference(gaps) if len(gaps) > 1 else alone
            facts = {"scenario": scenario, "n": n, "row": row, **own[["label", "part"]].iloc[0]}
            facts |= {"mean": own["mse_p"].mean(), "cost": own["cost"].mean()}
            lines.append(facts | gap.__dict__)
    found = pd.DataFrame(lines)
    return found.assign(holm=found.groupby(["scenario", "n"])["p"].transform(holm))


def beside(table, stored):
    """Put a run's rows beside the stored ones of the same kind and seed, times 100."""
    both = table.merge(stored[[*RUN, "mse_p"]], on=RUN, how="left", suffixes=("", "_stored"))
    values = {"MSE_p × 100": both["mse_p"], "stored": both["mse_p_stored"]}
    shown = both[["study", "n", "label", "epoch", "cost"]].round({"cost": 1})
    shown = shown.assign(**{name: (100 * v).round(3) for name, v in values.items()})
    return shown.set_index(["study", "n", "label"])


def arguments(parser):
    """Say what a shell may ask for."""
    parser.add_argument("studies", nargs="+", choices=list(STUDIES))
    parser.add_argument("--scenarios", nargs="+", default=["linear"], choices=list(SCENARIOS))
    parser.set_defaults(profile="quick", seeds=[0, 1, 2])


def train(given):
    """Run studies and keep their tables."""
    check_choice(given.profile, PROFILES, "profile")
    how = {"data_dir": given.data_dir, "fits_dir": given.runs / "fits"}
    how |= {"device": given.device, "workers": given.workers}
    for seed, name, scenario in product(given.seeds, given.studies, given.scenarios):
        table = run_study(name, scenario, given.profile, seed, **how)
        print(write_study(table, given.results, given.device), scenario, seed)
        print(table[["row", "mse_p", "brier", "epoch", "cost"]].to_string(), flush=True)
