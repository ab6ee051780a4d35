"""The numbers that the paper prints, as one tidy table, with the known misprints marked.

The file ``published.csv`` beside this module holds every row of the paper's twelve tables in
printed order. The book's chapter on errata says how each mark was found.
"""

from functools import cache
from pathlib import Path

import pandas as pd

from probnb.validation import check_choice

_FULLEST_FIRST = (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2)


@cache
def _read():
    table = pd.read_csv(Path(__file__).with_suffix(".csv"))
    text = ["mark", "note"]
    return table.assign(**{c: table[c].fillna("") for c in text})


def published(scenario=None, *, method=None, metric=None, table=None, percent=True, corrected=True):
    r"""Numbers printed in Liu et al. (2022), one row per value.

    Parameters
    ----------
    scenario : str or iterable of str, optional
        Synthetic scenario (``"linear"``, ``"sigmoid"``, ``"centered"``, ``"skewed"``,
        ``"discrete"``, ``"cifar10"``) or real task (``"cancer"``, ``"weather"``,
        ``"collision"``). All of them by default.
    method : str or iterable of str, optional
        Keys of `probnb.methods.METHODS`, and ``"beginning_bin"`` and ``"beginning_kernel"`` for
        CaPE's targets from random weights (Table 12). All of them by default.
    metric : str or iterable of str, optional
        Of ``"mse_p"``, ``"kl_p"``, ``"ece"``, ``"mce"``, ``"ks"``, ``"brier"``, ``"auc"``,
        ``"nll"``. All of them by default.
    table : int, optional
        Number of one table, from 1 to 12. By default each value comes from the fullest table
        that has it: 3 to 7 (the scenarios), 8 to 10 (the tasks), 11 (CIFAR-10), 12 (calibrating
        from the beginning); tables 1 and 2 repeat what those hold.
    percent : bool, default=True
        Give values times 100, as most of the tables print them; otherwise in the metric's own
        unit (KL and NLL in nats).
    corrected : bool, default=True
        Put the appendix's value where a table prints one that was copied from another row.

    Returns
    -------
    pandas.DataFrame
        Columns ``table``, ``scenario``, ``method``, ``metric``, ``value``, ``std``, ``mark``,
        ``note``, in printed order. ``std`` is the number after :math:`\pm`, one bootstrap standard
        deviation, NaN where the paper gives none. ``mark`` is ``"misprint"`` (another row's
        value), ``"suspect"`` (kept as printed, but implausible), ``"differs"`` (two tables of
        the paper disagree) or empty.

    Raises
    ------
    ValueError
        If a scenario, method, metric or table is not one the paper has.

    Notes
    -----
    The paper's Section 3 defines :math:`\mathrm{KL}(\hat p\,\|\,p)`; the numbers in its tables are
    :math:`\mathrm{KL}(p\,\|\,\hat p)`. A filter that leaves nothing (the AUC of a synthetic
    scenario) gives an empty table.

    Examples
    --------
    >>> rows = published("linear", method=["ce", "cape_bin"], metric="mse_p")
    >>> rows[["method", "value", "std"]].values.tolist()
    [['ce', 4.21, 0.15], ['cape_bin', 1.78, 0.07]]
    """
    rows = _read()
    order = list(_FULLEST_FIRST)
    if table is not None:
        order = [check_choice(table, sorted(order), "table")]
    rows = rows[rows["table"].isin(order)].sort_values(
        "table", key=lambda column: column.map(order.index), kind="stable"
    )
    rows = rows.drop_duplicates(["scenario", "method", "metric"])
    for name, wanted in (("scenario", scenario), ("method", method), ("metric", metric)):
        if wanted is not None:
            wanted = [wanted] if isinstance(wanted, str) else list(wanted)
            allowed = list(dict.fromkeys(_read()[name]))
            rows = rows[rows[name].isin([check_choice(item, allowed, name) for item in wanted])]
    value, std = rows["value"], rows["std"]
    if corrected:
        value, std = rows["corrected"].fillna(value), rows["corrected_std"].fillna(std)
    unit = rows["scale"] * 100 if percent else rows["scale"]
    digits = 4 if percent else 6  # the tables print at most four significant decimals
    rows = rows.assign(value=(value * unit).round(digits), std=(std * unit).round(digits))
    columns = ["table", "scenario", "method", "metric", "value", "std", "mark", "note"]
    return rows[columns].reset_index(drop=True)
