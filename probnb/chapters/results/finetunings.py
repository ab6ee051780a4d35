"""CaPE given its due: every fine-tuning of every run, epoch by epoch, beside its control."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import ttest_1samp

from ...plots.style import COLOURS, grid

__all__ = ["candidates", "due_sentence", "finetuning_figure", "finetunings"]

ROWS = {"cape_bin": "CaPE (bin)", "cape_kernel": "CaPE (kernel)", "ce_finetuned": "control"}
ALIKE = ("images", "size", "width", "stem", "epochs", "batch_size", "learning_rate")
KEY = ["method", "schedule", "rate", "bins", "length"]


def finetunings(evidence, scenario):
    """Gather the epochs of all fine-tunings that start from the networks of the best runs.

    Parameters
    ----------
    evidence : Evidence
        Stored runs; those of another grid of candidates count where data and networks are alike.
    scenario : str
        Which.

    Returns
    -------
    DataFrame
        One line a training and epoch: ``seed``, ``method``, ``schedule``, ``rate``, ``bins`` (0
        where there are none), ``length`` (epochs in all), ``epoch``, ``calibration``, ``val_ce``,
        ``mse_p`` and ``gain`` (MSE_p less that of the start). Empty where no run is stored.
    """
    best, parts = evidence.best(scenario), []
    alike = [
        r
        for group in evidence.kinds(scenario)
        for r in group
        if best and _alike(r.run.record) == _alike(best[0].run.record)
    ]
    for trained in alike:
        settings, epochs = trained.run.record["settings"], trained.results.epochs
        for _, candidate in trained.results.chosen.query("method in @ROWS").iterrows():
            history = epochs[epochs["fit"] == candidate["fit"]].sort_values("epoch")
            if history.empty or history["epoch"].iloc[0] > 0:  # does not say where it started
                continue
            released = candidate["method"] == "ce_finetuned" or settings.get("cape") != "printed"
            bins = candidate.get("bins", np.nan) if candidate["method"] == "cape_bin" else np.nan
            columns = history[["epoch", "calibration", "val_ce", "mse_p"]]
            parts.append(
                columns.assign(
                    seed=trained.run.record["seed"],
                    method=candidate["method"],
                    schedule="released" if released else "printed",
                    rate=candidate.get("finetune_learning_rate", np.nan),
                    bins=int(np.nan_to_num(bins)),
                    length=len(history) - 1,
                    gain=history["mse_p"] - history["mse_p"].iloc[0],
                )
            )
    if not parts:
        return pd.DataFrame()
    return pd.concat(parts).drop_duplicates(["seed", *KEY, "epoch"]).reset_index(drop=True)


def _alike(record):
    settings = record.get("settings") or {}
    return (record["data"], *(str(settings.get(name)) for name in ALIKE))


def candidates(table):
    """Lay out what each candidate did, the control beside CaPE.

    Parameters
    ----------
    table : DataFrame
        From `finetunings`.

    Returns
    -------
    DataFrame
        One line a candidate: seeds; the epochs that validation kept and the calibration epochs up
        to them; MSE_p (times 100) of the kept epoch, of the best epoch by the truth, and of the
        last, each less the start's, mean and Student's interval over seeds.
    """
    if table.empty:
        return pd.DataFrame([{"": "not run yet"}])
    ranked = table.assign(rank=table["method"].map(list(ROWS).index))
    ranked = ranked.sort_values(
        ["rank", "schedule", "length", "rate", "bins"], ascending=[True, False, True, False, True]
    )
    lines = []
    for key, part in ranked.groupby(KEY, sort=False):
        runs = [run.set_index("epoch") for _, run in part.groupby("seed")]
        kept = [run["val_ce"].idxmin() for run in runs]
        behind = [int(run["calibration"].loc[:k].sum()) for run, k in zip(runs, kept)]
        name = dict(zip(KEY, key))
        lines.append(
            {
                "": ROWS[name["method"]],
                "schedule": "" if name["method"] == "ce_finetuned" else name["schedule"],
                "rate": f"{name['rate']:g}",
                "bins": name["bins"] or "",
                "epochs": name["length"],
                "seeds": len(runs),
                "kept": ", ".join(map(str, kept)),
                "calibration": ", ".join(map(str, behind)),
                "kept less start": _spell([r["gain"][k] for r, k in zip(runs, kept)]),
                "best less start": _spell([r["gain"].min() for r in runs]),
                "last less start": _spell([r["gain"].iloc[-1] for r in runs]),
            }
        )
    return pd.DataFrame(lines).set_index("")


def _spell(values):
    values = 100 * np.asarray(values)
    text = f"{values.mean():+.2f}"
    if len(values) == 1:
        return text
    if np.ptp(values) == 0:  # of which scipy knows no interval
        return f"{text} [{values[0]:+.2f}, {values[0]:+.2f}]"
    low, high = ttest_1samp(values, 0).confidence_interval()
    return f"{text} [{low:+.2f}, {high:+.2f}]"


def due_sentence(table):
    """Say whether any setting of CaPE ends below its start, and below the control alike.

    Parameters
    ----------
    table : DataFrame
        From `finetunings`.

    Returns
    -------
    str
        Markdown; empty where there is no table.
    """
    if table.empty:
        return ""
    runs = table.groupby(["seed", *KEY])
    kept = table.loc[runs["val_ce"].idxmin()].assign(last=runs["gain"].last().to_numpy())
    cape = kept[kept["method"].isin(["cape_bin", "cape_kernel"])]
    means = cape.groupby(KEY).agg(gain=("gain", "mean"), seeds=("seed", "nunique"))
    means = means[means["seeds"] == means["seeds"].max()]
    method, schedule, rate, bins, _ = key = means["gain"].idxmin()
    own = cape.set_index(KEY).sort_index().loc[[key]]
    said = (
        f"Of {len(means)} settings of CaPE with {means['seeds'].max()} seeds, what validation "
        f"keeps is lowest for {ROWS[method]}, {schedule}, rate {rate:g}"
        f"{f', {bins} bins' if bins else ''}: MSE_p × 100 less its start "
        f"{_spell(own['gain'])} (picked after the fact, which flatters it)"
    )
    control = kept[(kept["method"] == "ce_finetuned") & (kept["rate"] == rate)]
    both = own.merge(control, on="seed", suffixes=("", "_control"))
    if both.empty:
        return said + "."
    kept_less, last_less = (_spell(both[k] - both[f"{k}_control"]) for k in ("gain", "last"))
    return (
        f"{said}, and less the control at the same rate {kept_less}; in the last epoch "
        f"{_spell(both['last'])} less its start, and {last_less} less the control's last."
    )


def finetuning_figure(table, bins=15):
    """Draw MSE_p less that of the start over the epochs of CaPE and of its control.

    Parameters
    ----------
    table : DataFrame
        From `finetunings`.
    bins : int, default=15
        Of the candidates of CaPE (bin) that are drawn; those with the released schedule.

    Returns
    -------
    list of matplotlib.axes.Axes
        A panel for each rate; thick lines are means over seeds, thin ones seeds, crosses
        calibration epochs. Empty without a run.
    """
    if table.empty:
        return []
    drawn = table[(table["schedule"] == "released") & table["bins"].isin([0, bins])]
    drawn = drawn[drawn["length"] == drawn["length"].min()]
    if "cape_bin" not in set(drawn["method"]):
        return []
    looks = {"ce_finetuned": ("green", "--"), "cape_bin": ("blue", "-")}
    rates = sorted(drawn["rate"].dropna().unique(), reverse=True)
    figure, axes = grid(len(rates), columns=3, size=(2.8, 2.3))
    for ax, rate in zip(axes, rates):
        ax.axhline(0, color=COLOURS["grey"], lw=1)
        for method, (colour, dashes) in looks.items():
            rows = drawn[(drawn["method"] == method) & (drawn["rate"] == rate)]
            look = {"color": COLOURS[colour], "ls": dashes}
            for _, run in rows.groupby("seed"):
                ax.plot(run["epoch"], 100 * run["gain"], lw=0.7, alpha=0.5, **look)
            mean = rows.groupby("epoch")[["gain", "calibration"]].mean()
            label = ROWS[method] if method != "ce_finetuned" else "control (CE fine-tuned)"
            ax.plot(100 * mean["gain"], lw=2, label=label, **look)
            at = 100 * mean.loc[mean["calibration"] == 1, "gain"]
            if len(at):
                look = {"color": COLOURS["vermilion"], "marker": "x", "mew": 2, "ls": "none"}
                ax.plot(at, label="after a calibration epoch", zorder=4, **look)
        ax.set_title(f"Learning rate {rate:g}")
        ax.set_xlabel("Epoch of the fine-tuning")
    for ax in axes[::3]:
        ax.set_ylabel("MSE$_p$ less its start\n(×100)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return axes
