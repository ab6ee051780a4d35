"""The paper's claims, one a line, with verdicts that follow from tables and runs."""

from __future__ import annotations

import html
from functools import cache
from pathlib import Path

import pandas as pd

from . import rules_correlation, rules_places, rules_rows, rules_runs
from .sources import Measured, Printed
from .verdicts import RULES, VERDICTS, Verdict, judge

__all__ = ["claims", "count_sentence", "ledger", "ledger_html"]

_RULES = (rules_rows, rules_places, rules_correlation, rules_runs)  # importing them fills `RULES`


@cache
def _read():
    return pd.read_csv(Path(__file__).with_name("claims.csv"), dtype={"number": int}).fillna("")


def claims():
    """Return the paper's 109 claims as they stand in ``claims.csv``, without verdicts.

    Returns
    -------
    DataFrame
        Columns ``number``, ``where`` in the paper, ``claim`` in our words, the paper's own
        ``evidence``, what ``decides`` (``print``, ``runs`` or ``text``), the rules that ask the
        ``printed`` tables and the ``measured`` runs, and for text a ``verdict``, a ``reason`` and
        the test that is its ``check``.
    """
    return _read().copy()


def ledger(evidence):
    """Give every claim its verdict.

    Parameters
    ----------
    evidence : Evidence
        Stored runs, however few.

    Returns
    -------
    DataFrame
        `claims`, with ``verdict`` and ``reason`` for every line, and ``rule``, which says what
        was asked.
    """
    table = claims()
    printed, measured = Printed(), Measured(evidence)
    verdicts = [_judge(claim, printed, measured) for claim in table.to_dict("records")]
    table["verdict"] = [v.verdict for v in verdicts]
    table["reason"] = [v.reason for v in verdicts]
    table["rule"] = [_asked(claim) for claim in table.to_dict("records")]
    return table


def _judge(claim, printed, measured):
    if claim["decides"] == "text":
        return Verdict(claim["verdict"], claim["reason"])
    return judge(
        _ask(claim["printed"], printed), _ask(claim["measured"], measured), claim["decides"]
    )


def _ask(words, source):
    if not words:
        return None
    name, *arguments = words.split()
    return RULES[name](source, *arguments)


def _asked(claim):
    words = claim["measured"] or claim["printed"]
    return RULES[words.split()[0]].__doc__.strip() if words else ""


def count_sentence(table):
    """Say how many claims have which verdict, and on what."""
    counts = table["verdict"].value_counts()
    parts = ", ".join(f"{counts.get(v, 0)} {v}" for v in VERDICTS)
    basis = table["decides"].value_counts()
    return (
        f"Of the paper's {len(table)} claims: **{parts}**. {basis.get('runs', 0)} verdicts follow "
        f"from stored runs together with the printed tables, {basis.get('print', 0)} from the "
        f"printed tables alone, and {basis.get('text', 0)} from reading, most of those with a "
        "test. They change when runs are added."
    )


def ledger_html(table):
    """Return the ledger as HTML: a section a verdict, which opens and closes without a script."""
    parts = []
    for verdict in VERDICTS:
        rows = table[table["verdict"] == verdict]
        lines = "".join(_line(row) for row in rows.to_dict("records"))
        parts.append(
            f'<details class="claims"{" open" if verdict == "contradicted" else ""}>'
            f"<summary><strong>{verdict.capitalize()}</strong>: {len(rows)} claims</summary>"
            f'<div class="claims-box">{lines}</div></details>'
        )
    return _STYLE + "".join(parts)


def _line(row):
    reason, claim = html.escape(row["reason"]), html.escape(row["claim"])
    rule = f" <em>Asked: {html.escape(row['rule'])}</em>" if row["rule"] else ""
    check = f" <code>{html.escape(row['check'])}</code>" if row["check"] else ""
    return (
        f'<div class="claim"><div><strong>{row["number"]}.</strong> {claim} '
        f'<span class="claim-where">({html.escape(row["where"])}; rests on '
        f"{html.escape(row['evidence'])})</span></div>"
        f'<div class="claim-reason">{reason}.{rule}{check}</div></div>'
    )


_STYLE = """<style>
details.claims { margin: 0.6em 0; }
details.claims > summary { cursor: pointer; }
.claim { border-top: 1px solid var(--pst-color-border, #ccc); padding: 0.45em 0;
  overflow-wrap: anywhere; }
.claim-where, .claim-reason { color: var(--pst-color-text-muted, #555); font-size: 0.88em; }
</style>"""
