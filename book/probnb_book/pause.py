"""Fine-tunings epoch by epoch: CaPE and others beside the control, at equal epochs on outcomes."""

import pandas as pd

from probnb.metrics import difference

from . import evidence, storage

CONTROL = "ce_finetuned"
ROWS = ("cape_bin", CONTROL, "cape_kernel")
"""Fine-tunings that runs store: with calibration epochs, and without."""

START = ["scenario", "size", "seed"]
"""What says from which network a fine-tuning starts."""

COLUMNS = [*START, "row", "rate", "bins", "epoch", "calibration", "val_ce", "mse_p"]
"""Of the study ``pause``: one line an epoch, 0 being the start. ``calibration`` is 1 for
an epoch whose targets are not the outcomes; ``row`` may name any method, `CONTROL` among them."""


def fine_tunings(runs, folders=()):
    """Lay out every epoch of stored fine-tunings from early-stopped networks.

    Parameters
    ----------
    runs : DataFrame or None
        From `probnb_book.evidence.find`.
    folders : iterable of path-like, default=()
        Folders of results whose study ``pause`` is added.

    Returns
    -------
    DataFrame
        `COLUMNS`, with ``outcomes``, the epochs on outcomes so far, and ``error``, MSE_p times 100.
    """
    parts = [] if runs is None else [_of_run(line) for line in runs.itertuples()]
    parts += [storage.read(folder, "pause", "pause") for folder in folders]
    table = pd.concat(parts, ignore_index=True)[COLUMNS].sort_values(COLUMNS[:7])
    on_outcomes = (table["epoch"] > 0) & (table["calibration"] == 0)
    fits = [table[name] for name in COLUMNS[:6]]
    outcomes = on_outcomes.groupby(fits, dropna=False).cumsum()
    return table.assign(outcomes=outcomes, error=100 * table["mse_p"])


def _of_run(line):
    results = evidence.tables(line)[0]
    tuned = results.chosen[results.chosen["method"].isin(ROWS)]
    tuned = tuned.rename(columns={"method": "row", "finetune_learning_rate": "rate"})
    tuned = tuned.reindex(columns=["fit", "row", "rate", "bins"])
    facts = {"scenario": line.task, "size": line.size, "seed": line.seed}
    return results.epochs.merge(tuned, on="fit").assign(**facts)


def kept(table, by="val_ce"):
    """Return the best line of every start and row, of all epochs and rates, by validation or not.

    ``by="error"`` is hindsight: no rule that looks at validation data can do better.
    """
    return table.loc[table.groupby([*START, "row"])[by].idxmin()]


def less_control(table, by="epoch"):
    """Compare each epoch with the control of the same start and rate after as many epochs.

    Parameters
    ----------
    table : DataFrame
        From `fine_tunings`.
    by : {"epoch", "outcomes"}, default="epoch"
        What counts as as many: all epochs, or those on outcomes.

    Returns
    -------
    DataFrame
        A line a start, row, rate and epoch: ``less`` is the error, the mean over numbers of bins,
        less the control's, in per cent of that.
    """
    key = [*START, "rate"]
    control = table[table["row"] == CONTROL].set_index([*key, "epoch"])["error"]
    own = table[(table["row"] != CONTROL) & (table["epoch"] > 0)]
    own = own.groupby([*key, "row", "epoch", "outcomes", "calibration"])["error"].mean()
    own = own.reset_index()
    same = control.reindex(pd.MultiIndex.from_frame(own[[*key, by]])).to_numpy()
    return own.assign(less=100 * (own["error"] / same - 1)).dropna(subset="less")


def over_seeds(table, key, column="less"):
    """Return `probnb.metrics.difference` over the seeds of each group, a line a group."""
    gaps = {place: difference(own[column]) for place, own in table.groupby(key, sort=False)}
    index = pd.MultiIndex.from_tuples(gaps, names=key)
    return pd.DataFrame([gap.__dict__ for gap in gaps.values()], index=index).reset_index()
