"""What the notebook asks for: stored tables, and those of the studies that it trains itself."""

from __future__ import annotations

from dataclasses import dataclass

from .start import first_targets
from .stored import read_study, select, write_study
from .studies import STUDIES, settings_of
from .study import load, run_study

__all__ = ["Page", "run_page"]


@dataclass(frozen=True, eq=False)
class Page:
    """Tables of the chapter; made by `run_page`.

    Attributes
    ----------
    stored, live : dict of str to DataFrame
        Tables by study: kept with the book, and trained for this page.
    how : dict
        Scenario, profile, seed, data and where trainings are kept.
    """

    stored: dict
    live: dict
    how: dict

    def study(self, name):
        """Return the table of a study: the stored one where there is one, else this page's."""
        return select(self.stored, self.live, name)

    def on_drawn(self, name):
        """Return a study's table of drawn faces, empty where `study` is of those already."""
        table = select(self.stored, self.live, name, drawn=True)
        return table.iloc[:0] if table.equals(self.study(name)) else table

    def first_targets(self):
        """Return p_emp at epoch 0 and at the early-stopped epoch; see `start.first_targets`."""
        h = self.how
        settings = settings_of(h["profile"])
        splits = load(h["scenario"], settings, h["seed"], h["data_dir"])
        return first_targets(splits, settings, h["seed"], h["fits_dir"], h["device"])

    def about(self):
        """Say what is stored and what this page has trained, with both numbers where both exist."""
        trained = [
            f"{name} ({len(t)} rows, seed {self.how['seed']})" for name, t in self.live.items()
        ]
        missing = [n for n in STUDIES if n not in self.live and not len(self.stored.get(n, ()))]
        text = f"Trained for this page: {', '.join(trained) or 'nothing'}."
        for name, table in self.live.items():
            old = self.stored.get(name)
            if old is None or not len(old):
                continue
            keys = ["scenario", "data", "profile", "seed", "n", "row"]
            both = table.merge(old, on=keys, suffixes=("", "_stored"))
            if len(both):
                gap = (both["mse_p"] - both["mse_p_stored"]).abs().max()
                text += (
                    f" Of {name}, {len(both)} rows are stored as well; MSE_p × 100 differs by at "
                    f"most {100 * gap:.4f}."
                )
        if missing:
            text += f" Not there yet: {', '.join(missing)}."
        return text


def run_page(names, folders, **how):
    """Read what is stored, train what is asked for, and store that.

    Parameters
    ----------
    names : list of str
        Studies to train.
    folders : list of path-like
        Folders of stored results, the one kept with the book first; what is trained here is added
        to the last.
    **how
        For `probnb.chapters.ablations.study.run_study`.

    Returns
    -------
    Page
        All tables.
    """
    stored = {name: read_study(folders, name) for name in STUDIES}
    live = {name: run_study(name, **how) for name in names}
    for table in live.values():
        write_study(table, folders[-1])
    return Page(stored, live, {k: v for k, v in how.items() if k != "retrain"})
