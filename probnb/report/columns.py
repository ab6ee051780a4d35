"""The columns of one table as numbers and labels, with errors that say where to look."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit

from .numbers import decimal_mark, read_numbers
from .roles import aside

__all__ = ["Columns"]

ROUNDING = 1e-6
"""A probability so little outside [0, 1] is a rounding error of 32 bits."""


class Columns:
    """The columns of one table as numbers and labels, with errors that say where to look.

    Parameters
    ----------
    frame : DataFrame
        The table; its columns' names are text and stand once.
    source : probnb.report.files.Source
        How its rows are counted.
    numeric : iterable of str
        Columns that may hold numbers; one with unmistakable decimal commas settles the others.

    Attributes
    ----------
    notes : list of str
        How numbers were written, where not plainly.
    """

    def __init__(self, frame, source, numeric):
        self.frame, self.source, self.notes, self._read = frame, source, [], {}
        text = (frame[name] for name in numeric if not pd.api.types.is_numeric_dtype(frame[name]))
        self.decimal = decimal_mark(text)

    def numbers(self, name, booleans=False):
        """The numbers of a column, all of them given."""
        if name in self._read:
            return self._read[name]
        read = self._numbers(name, booleans)
        if read.wrong.any():
            self._refuse_text(name, read)
        self.refuse(np.isnan(read.values), name, "is missing")
        self.refuse(np.isinf(read.values), name, "is infinite")
        if read.note:
            self.notes.append(f"Column {name} is written in {read.note}.")
        self._read[name] = read.values
        return read.values

    def outcomes(self, name):
        """Outcomes, 0 and 1."""
        values = self.numbers(name, booleans=True)
        wrong = (values != 0) & (values != 1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"column {name!r} must hold only 0 and 1; got {values[row].item()!r} in "
                f"{self.source.cell(row)}."
            )
        if not len(values):
            raise ValueError(f"column {name!r} must have at least one row; got none.")
        return values

    def weights(self, name):
        """Weights, at least 0."""
        values = self.numbers(name)
        self.refuse(values < 0, name, "is below 0, which a weight must not be,")
        if not values.any():
            raise ValueError(f"column {name!r} must have a weight above 0; all are 0.")
        return values

    def votes(self, k, n):
        """Repeated outcomes: ones and all of each row."""
        ones, counts = self.numbers(k), self.numbers(n)
        for name, values in ((k, ones), (n, counts)):
            self.refuse(values != np.round(values), name, "is no whole number")
        self.refuse(counts < 2, n, "is below 2, which says nothing about its own noise,")
        self.refuse((ones < 0) | (ones > counts), k, f"is not in [0, {n}]")
        return ones, counts

    def labels(self, name):
        """Names of groups or rows: numbers as they are, the rest as text."""
        column = self.frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = pd.Series(np.asarray(column), dtype=column.cat.categories.dtype)
        missing = np.array(column.isna(), dtype=bool)
        if not pd.api.types.is_numeric_dtype(column):
            column = column.astype("str").str.strip()
            missing |= np.array((column == "").fillna(False), dtype=bool)
        self.refuse(missing, name, "is missing")
        return column

    def candidates(self, present, roles, scale, notes):
        """The columns of numbers that may be predictions; `notes` say what the others are."""
        taken, out, text, why = set(roles.values()), [], [], []
        for name in (c for c in present if c not in taken):
            read = self._numbers(name)
            reason = aside(name, read.values, taken)
            if reason:
                why.append(f"Column {name} {reason}: it is left out.")
            elif read.wrong.any() and read.meant:
                self._refuse_text(name, read)
            elif read.wrong.any() or (np.isnan(read.values).all() and self._is_text(name)):
                text.append(name)
            elif scale == "logit" and _whole(read.values):
                raise ValueError(
                    f"column {name!r} holds whole numbers and none below 0, which logits hardly "
                    "are. Name the prediction columns in columns."
                )
            else:
                out.append(name)
        if text:
            why.insert(0, f"Not numeric, and left out: {', '.join(text)}.")
        if not out:
            hint = " If 'p' holds predictions, set p to None." if roles.get("p") == "p" else ""
            raise ValueError(
                f"no numeric prediction column beside {', '.join(roles.values())}.{hint}"
                + "".join(f" {reason}" for reason in why)
            )
        notes += why
        return out

    def probabilities(self, name, notes):
        """Probabilities; what rounding put outside [0, 1] is put back and noted."""
        values = self.numbers(name)
        wrong = (values < -ROUNDING) | (values > 1 + ROUNDING)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"column {name!r} must hold probabilities in [0, 1]; got {values[row].item()!r} "
                f"in {self.source.cell(row)}." + _if_percent(values)
            )
        outside = (values < 0) | (values > 1)
        if outside.any():
            worst = values[np.argmax(np.abs(values - 0.5))].item()
            notes.append(
                f"Column {name} is outside [0, 1] by rounding in {outside.sum():,} rows (such as "
                f"{worst!r}); these count as 0 or 1."
            )
        return np.clip(values, 0, 1)

    def predictions(self, names, scale, notes):
        """Bring all prediction columns to probabilities; say how they were understood."""
        kinds = {name: self._kind(name, scale) for name in names}
        logits = [name for name in names if kinds[name] == "logit"]
        others = [name for name in names if kinds[name] == "probability"]
        if scale == "auto" and logits and others:
            raise ValueError(
                f"scale: {', '.join(others)} look like probabilities and {', '.join(logits)} like "
                "logits. If that is right, set scale='each'; if not, 'probability' or 'logit'."
            )
        how = "as told" if scale in ("probability", "logit") else "found by their range"
        notes += [
            f"Column{'s' * (len(held) > 1)} {', '.join(held)} hold{'s' * (len(held) == 1)} {kind} "
            f"({how})."
            for held, kind in ((others, "probabilities"), (logits, "logits"))
            if held
        ]
        out = {}
        for name in names:
            logit = name in logits
            out[name] = expit(self.numbers(name)) if logit else self.probabilities(name, notes)
            if certain := int(np.sum((out[name] == 0) | (out[name] == 1))):
                notes.append(
                    f"Column {name} is certain (0 or 1) in {certain:,} rows; in logarithms these "
                    "count as 2.2e-16 and 1 - 2.2e-16."
                )
        return pd.DataFrame(out)

    def refuse(self, wrong, name, what):
        """Raise with the numbers of the first wrong rows."""
        rows = np.flatnonzero(wrong)
        if len(rows):
            shown = ", ".join(str(self.source.number(row)) for row in rows[:5])
            shown += ", ..." if len(rows) > 5 else ""
            raise ValueError(
                f"column {name!r} {what} in {len(rows)} {self.source.unit}{'s' * (len(rows) > 1)}: "
                f"{shown} ({self.source.how}). No row is dropped in silence: mend or remove them "
                "first, or leave the column out by naming others in columns."
            )

    def _refuse_text(self, name, read):
        row = int(np.argmax(read.wrong))
        more = np.count_nonzero(read.wrong) - 1
        raise ValueError(
            f"column {name!r} must be numeric; {self.source.cell(row)} holds "
            f"{self.frame[name].iloc[row]!r}{f', and {more:,} more cells are none' * bool(more)}."
            f"{f' {read.problem.capitalize()}.' if read.problem else ''} Mend the file, or name "
            "the prediction columns in columns."
        )

    def _numbers(self, name, booleans=False):
        read = read_numbers(self.frame[name], self.decimal, booleans)
        if read.problem and self.decimal is None and self.source.decimal:
            read = read_numbers(self.frame[name], self.source.decimal, booleans)
        return read

    def _is_text(self, name):
        return not pd.api.types.is_numeric_dtype(self.frame[name])

    def _kind(self, name, scale):
        values = self.numbers(name)
        outside = (values < -ROUNDING) | (values > 1 + ROUNDING)
        if scale == "logit" and np.abs(values).min() > 36.1:
            raise ValueError(
                f"column {name!r} starts with {values[0].item()!r}; as logits, all of its values "
                "would be certainties. Name the prediction columns in columns."
            )
        if scale in ("probability", "logit"):
            return scale
        if not outside.any():
            return "probability"
        if values.min() < 0 and outside.mean() >= 0.2:
            return "logit"
        row = int(np.argmax(outside))
        raise ValueError(
            f"column {name!r} has {int(outside.sum())} of {len(values)} values outside [0, 1], the "
            f"first {values[row].item()!r} in {self.source.cell(row)}: too many for probabilities, "
            "and unlike logits. Set scale to 'probability' or 'logit', or name the prediction "
            f"columns in columns.{_if_percent(values)}"
        )


def _if_percent(values):
    percent = values.min() >= 0 and 1 < values.max() <= 100
    return " If these are percentages, divide them by 100." if percent else ""


def _whole(values):
    return values.max() > 1 and values.min() >= 0 and np.array_equal(values, np.round(values))
