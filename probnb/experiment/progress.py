"""A bar in epochs that trainings in any process advance."""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tqdm
import tqdm.auto

__all__ = ["Advance", "Epochs", "epoch_bar"]


@contextmanager
def epoch_bar(total, show):
    """Show a bar of `total` epochs while the block runs; yields what advances it.

    Trainings append lines to a file, which this process reads.
    """
    stop = threading.Event()
    text = os.environ.get("PROBNB_PROGRESS") == "text"
    make = tqdm.tqdm if text else tqdm.auto.tqdm
    bar = make(total=total, unit="epoch", disable=not show, mininterval=5 if text else 0.1)
    with bar, tempfile.TemporaryDirectory(prefix="probnb-") as folder:
        path = Path(folder, "epochs")
        path.touch()

        def update():
            lines = path.read_text().splitlines()
            if len(lines) > bar.n:
                bar.set_description_str(lines[-1], refresh=False)
            bar.update(len(lines) - bar.n)
            if text:  # time goes on where no epoch ends
                bar.refresh()

        def watch():
            while not stop.wait(5 if text else 0.5):
                update()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield Advance(folder)
        finally:
            stop.set()
            watcher.join()
            update()


@dataclass(frozen=True)
class Advance:
    """Tells the bar's process, from any other, which training has finished how many epochs."""

    folder: str

    def __call__(self, epochs, label):
        """Advance the bar, which then shows `label`."""
        with open(os.path.join(self.folder, "epochs"), "a") as file:
            file.write(f"{label}\n" * epochs)


@dataclass
class Epochs:
    """Counts a training's epochs for the bar."""

    advance: object
    label: str
    expected: int
    seen: int = 0

    def count(self, record):
        """Count one more; the bar counts on `expected` of them at most."""
        self.seen += 1
        self.advance(int(self.seen <= self.expected), self.label)

    def finish(self):
        """Count what was spared: resumed, stopped early, or another's work."""
        self.advance(max(0, self.expected - self.seen), self.label)
