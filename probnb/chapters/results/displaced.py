"""Would a displaced epoch explain the published baseline? Every epoch, and what repairs it.

``python -m probnb.chapters.results.displaced --data-dir UTKFace.tar.gz`` trains plain cross entropy
as the release does (batches of 256, no augmentation, rate 0.1), scores its epochs as they are and
after each of five repairs, and writes ``results/derived/displaced-linear.csv``.
"""

from __future__ import annotations

import argparse
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.special import expit

from ... import store
from ...calibrators import PlattScaling
from ...metrics import auc, ks_error, mse_p, nll
from ...plots.style import COLOURS, grid
from ...training.batches import cut, make_fabric, predict_logits
from ...training.cape import Calibrated
from ...training.loop import Recipe, fit
from ...training.targets import Observed
from .baseline import one_intercept

__all__ = ["REPAIRS", "displaced_epochs", "displaced_figure", "displaced_sentence", "repair_table"]

REPAIRS = {
    "none": "as it is",
    "intercept": "one intercept",
    "platt": "Platt scaling",
    "statistics": "batch-norm statistics estimated again",
    "outcomes": "one epoch at 0.001",
    "cape": "one calibration epoch at 0.001",
}
"""What is done to an epoch's network or predictions."""

DISPLACED = 0.05  # mean prediction less mean outcome from which an epoch counts as displaced


def displaced_epochs(splits, network, recipe, scratch, every=1, seed=0):
    """Train plain cross entropy, and repair each of its epochs in every way.

    Parameters
    ----------
    splits : probnb.data.Splits
        With known probabilities.
    network : probnb.training.models.Network
        Which network.
    recipe : probnb.training.Recipe
        How to train it.
    scratch : path-like
        File for the state after the last epoch; removed at the end.
    every : int, default=1
        Repair every so many epochs.
    seed : int, default=0
        Seed of the weights.

    Returns
    -------
    DataFrame
        One line an epoch and repair: ``epoch``, ``repair``, ``val_ce`` and ``val_shift`` (before
        the repair), and on test data ``shift`` (mean prediction less mean outcome), ``mse_p``,
        ``nll``, ``ks`` and ``auc``.
    """
    fabric, scratch = make_fabric("cpu"), Path(scratch)
    splits = splits.to("cpu")  # images scaled as in training
    torch.manual_seed(seed)
    model, lines = network.build(splits.train.inputs), []

    def look(row):
        if row["epoch"] % every == 0:
            tensors, _ = store.load(scratch)
            weights, logits = (store.part(tensors, k) for k in ("model.", "logits."))
            for name, p_hat in _repaired(model, weights, logits, splits, recipe, fabric).items():
                line = {"epoch": row["epoch"], "repair": name, "val_ce": row["val_ce"]}
                lines.append(line | {"val_shift": row["val_bias"]} | _scores(splits.test, p_hat))

    fit(deepcopy(model), splits, recipe, fabric=fabric, checkpoint=scratch, on_epoch=look)
    scratch.unlink()
    return pd.DataFrame(lines)


def _repaired(model, weights, logits, splits, recipe, fabric):
    """Test predictions of an epoch, as they are and after each repair."""
    val, test = (_log_odds(logits[f"last_{part}"]) for part in ("val", "test"))
    y = splits.val.outcomes.numpy()
    two = np.column_stack([np.zeros_like(val), val])
    platt = PlattScaling().fit(two, y).predict_proba(np.column_stack([0 * test, test]))[:, 1]
    out = {"none": expit(test), "intercept": expit(test + one_intercept(val, y)), "platt": platt}
    network = deepcopy(model)
    network.load_state_dict(weights)
    _estimate_statistics(fabric.setup(network), splits.train, recipe.batch_size)
    out["statistics"] = expit(_log_odds(predict_logits(fabric, network, splits.test)))
    small = replace(recipe, epochs=1, learning_rate=1e-3, schedule="constant")
    for name, targets in (("outcomes", Observed()), ("cape", Calibrated("bin", every=1))):
        network = deepcopy(model)
        network.load_state_dict(weights)
        result = fit(
            network, splits, small, targets=targets, fabric=fabric, on_epoch=lambda row: None
        )
        out[name] = expit(_log_odds(result.logits["last_test"]))
    return out


def _log_odds(logits):
    return (logits[:, 1] - logits[:, 0]).double().numpy()


@torch.no_grad()
def _estimate_statistics(model, data, batch_size):
    """Replace every running mean and variance by its average over one pass."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None  # the plain average of all batches
    model.train()
    for rows in cut(torch.arange(len(data)), batch_size):
        model(*data.batch(rows))


def _scores(data, p_hat):
    y, p = data.outcomes.numpy(), data.probabilities.numpy()
    return {
        "shift": float(p_hat.mean() - y.mean()),
        "mse_p": mse_p(p, p_hat),
        "nll": nll(y, p_hat),
        "ks": ks_error(y, p_hat),
        "auc": auc(y, p_hat),
    }


def repair_table(table):
    """Compare the repairs over displaced epochs, and over the others.

    Parameters
    ----------
    table : DataFrame or None
        From `displaced_epochs`.

    Returns
    -------
    DataFrame
        Mean test MSE_p, times 100, one line a repair: of epochs whose validation predictions are
        off by more than 0.05 on average, and of the rest.
    """
    if table is None:
        return pd.DataFrame([{"": "not run yet"}])
    groups = table["val_shift"].abs() > DISPLACED
    columns = {}
    for name, rows in (("displaced", table[groups]), ("other", table[~groups])):
        title = f"{name} epochs ({rows.groupby(['seed', 'epoch']).ngroups})"
        columns[title] = 100 * rows.groupby("repair")["mse_p"].mean().reindex(REPAIRS)
    out = pd.DataFrame(columns).map(lambda v: "–" if np.isnan(v) else f"{v:.2f}")
    return out.set_axis(pd.Index(REPAIRS.values(), name="MSE_p ×100 after"))


def displaced_sentence(table):
    """Say what the epochs of the released recipe look like, and what repairs the displaced ones.

    Parameters
    ----------
    table : DataFrame or None
        From `displaced_epochs`, with a column ``seed``.

    Returns
    -------
    str
        Markdown; empty where there is no table.
    """
    if table is None:
        return ""
    plain = table[table["repair"] == "none"]
    kept = plain.loc[plain.groupby("seed")["val_ce"].idxmin()]
    off = plain[plain["val_shift"].abs() > DISPLACED]
    one = len(kept) == 1
    said = (
        f"{len(plain)} epochs of {len(kept)} training{'' if one else 's'} were looked at. "
        f"Validation keeps epoch {', '.join(map(str, kept['epoch']))} with MSE_p × 100 of "
        f"{', '.join(f'{100 * v:.2f}' for v in kept['mse_p'])} and a shift of the test mean of "
        f"{', '.join(f'{v:+.3f}' for v in kept['shift'])}. "
    )
    if off.empty:
        return said + f"No epoch was off by more than {DISPLACED} on average."
    worst = off.loc[off["val_shift"].abs().idxmax()]
    rows = table[(table["seed"] == worst["seed"]) & (table["epoch"] == worst["epoch"])]
    values = 100 * rows.set_index("repair")["mse_p"]
    return said + (
        f"{len(off)} epochs are off by more than {DISPLACED} on average. The farthest, epoch "
        f"{worst['epoch']} ({worst['val_shift']:+.3f}), has {values['none']:.2f}; repaired: "
        + ", ".join(f"{REPAIRS[name]} {values[name]:.2f}" for name in REPAIRS if name != "none")
        + "."
    )


def displaced_figure(table):
    """Draw the error and the shift of each epoch, as it is and repaired.

    Parameters
    ----------
    table : DataFrame or None
        From `displaced_epochs`, with a column ``seed``; the first seed is drawn.

    Returns
    -------
    list of matplotlib.axes.Axes or None
        MSE_p, and mean prediction less mean outcome; None without a table.
    """
    if table is None:
        return None
    table = table[table["seed"] == table["seed"].min()]
    figure, axes = grid(2, columns=2, size=(4.2, 3.4))
    for (name, words), marker in zip(REPAIRS.items(), "osv^Dx"):
        rows = table[table["repair"] == name]
        style = {"marker": marker, "ms": 4, "label": words, "lw": 2 if name == "none" else 1}
        style |= {"color": COLOURS["black"]} if name == "none" else {}
        axes[0].plot(rows["epoch"], 100 * rows["mse_p"], **style)
        axes[1].plot(rows["epoch"], rows["shift"], **style)
    plain = table[table["repair"] == "none"]
    for ax in axes:
        ax.axvline(plain.loc[plain["val_ce"].idxmin(), "epoch"], color=COLOURS["grey"], ls=":")
        ax.set_xlabel("Epoch (dotted: kept by validation)")
    axes[1].axhline(0, color=COLOURS["grey"], lw=0.8)
    axes[0].set_ylabel("Test MSE$_p$ (×100)")
    axes[1].set_ylabel("Mean prediction less mean outcome")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return axes


def main(arguments=None):
    """Run the command line."""
    from ...data.faces import load_faces
    from ...training.models import network

    parser = argparse.ArgumentParser(prog="probnb.chapters.results.displaced", description=__doc__)
    parser.add_argument("--data-dir", required=True, help="UTKFace")
    parser.add_argument("--scenario", default="linear")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--results", default="results")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    splits = load_faces(given.scenario, given.data_dir, given.size, seed=given.seed)
    recipe = Recipe(epochs=given.epochs, batch_size=given.batch_size, seed=given.seed)
    path = Path(given.results) / "derived" / f"displaced-{given.scenario}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = displaced_epochs(
        splits, network("resnet18", width=given.width, stem="small"), recipe,
        path.with_suffix(f".{given.seed}.safetensors"), given.every, given.seed,
    )  # fmt: skip
    table.insert(0, "seed", given.seed)
    if path.exists():
        old = pd.read_csv(path)
        table = pd.concat([old[old["seed"] != given.seed], table]).sort_values("seed")
    table.round(6).to_csv(path, index=False)


if __name__ == "__main__":
    main()
