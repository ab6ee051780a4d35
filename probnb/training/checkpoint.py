"""The state of a training between two epochs, kept in memory and on disk."""

import math
from functools import partial

import torch

from .. import store


class Run:
    """The state of a training between two epochs, and its file."""

    def __init__(self, model, optimizer, scheduler, average=None):
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self.average = average  # of the model's weights, which is kept in their place
        self.history, self.best, self.logits, self.best_epoch = [], {}, {}, 0

    @property
    def epoch(self):
        """Epochs finished so far."""
        return len(self.history) - 1

    def start(self, row, logits, keep):
        """Note what the network does before its first epoch, and keep it if it may win."""
        self.history.append({"epoch": 0, "train_ce": math.nan, "calibration": 0, **row})
        if keep:
            self._keep(logits)

    def record(self, row, logits):
        """Append an epoch, keep its weights if they are the best, and step the schedule."""
        rate = self.optimizer.param_groups[0]["lr"] if self.optimizer else math.nan
        row = {"epoch": len(self.history), "learning_rate": rate, **row}
        self.history.append(row)
        self.logits.update({f"last_{name}": value for name, value in logits.items()})
        if not self.best or row["val_ce"] < self.history[self.best_epoch]["val_ce"]:
            self._keep(logits)
        if isinstance(self.scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            self.scheduler.step(row["val_ce"])
        elif self.scheduler is not None:
            self.scheduler.step()

    def _keep(self, logits):
        self.best_epoch = self.epoch
        self.logits.update({f"best_{name}": value.clone() for name, value in logits.items()})
        kept = self.average.module if self.average else self.model
        self.best = {k: v.detach().cpu().clone() for k, v in kept.state_dict().items()}

    def save(self, path):
        """Write everything that the next epoch needs."""
        state = self.optimizer.state_dict()["state"]
        momentum = {i: one.get("momentum_buffer") for i, one in state.items()}
        parts = {
            "model": self.model.state_dict(),
            "average": self.average.state_dict() if self.average else {},
            "best": self.best,
            "logits": self.logits,
            "momentum": {i: buffer for i, buffer in momentum.items() if buffer is not None},
        }
        meta = {
            "history": self.history,
            "best_epoch": self.best_epoch,
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "scheduler": self.scheduler.state_dict() if self.scheduler else None,
        }
        store.save(path, store.whole(parts), meta)

    def restore(self, path):
        """Continue from the file; False where there is none, or it was damaged and is set aside."""
        found = store.load_or_set_aside(path)
        if found is None:
            return False
        tensors, meta = found
        self.history, self.best_epoch = meta["history"], meta["best_epoch"]
        part = partial(store.part, tensors)
        self.model.load_state_dict(part("model."))
        self.best, self.logits = part("best."), part("logits.")
        if self.average:
            self.average.load_state_dict(part("average."))
        state = self.optimizer.state_dict()
        # Fused SGD walks raw memory: a buffer must be laid out like its parameter.
        parameters = list(self.model.parameters())
        state["state"] = {
            int(i): {"momentum_buffer": torch.empty_like(parameters[int(i)]).copy_(value)}
            for i, value in part("momentum.").items()
        }
        for group in state["param_groups"]:
            group["lr"] = meta["learning_rate"]
        self.optimizer.load_state_dict(state)
        if self.scheduler:
            self.scheduler.load_state_dict(meta["scheduler"])
        return True
