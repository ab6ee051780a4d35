"""One training loop for every method: a schedule of soft targets and a loss.

`fit` is the whole recipe in sight: minibatch SGD on tensors that stay on the device, validation
cross entropy after every epoch, the best weights kept, and a checkpoint from which a killed
training goes on to the same numbers.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass

import torch
from tqdm.auto import tqdm

from .. import metrics
from ..validation import check_choice, check_integer, check_number
from .batches import cut, input_scale, make_fabric, normalise, predict_logits
from .checkpoint import Run
from .losses import CrossEntropy
from .targets import Observed

__all__ = ["Fit", "Recipe", "fit", "train_one_epoch"]


@dataclass(frozen=True)
class Recipe:
    """How to train: every number that `fit` uses.

    Parameters
    ----------
    epochs : int, default=60
        Passes over the training data at most.
    batch_size : int, default=128
        Examples in a step.
    learning_rate : float, default=0.1
        Initial learning rate of SGD.
    momentum : float, default=0.9
        Momentum of SGD.
    weight_decay : float, default=5e-4
        L2 penalty of SGD.
    schedule : {"plateau", "cosine", "constant"}, default="plateau"
        ``"plateau"`` halves the learning rate where validation cross entropy has not improved for
        `plateau_patience` epochs, down to 1e-6; ``"cosine"`` lowers it to 0 over `epochs`.
    plateau_patience : int, default=5
        Epochs without improvement that ``"plateau"`` waits for.
    patience : int or None, default=None
        Stop after so many epochs without improvement; None trains all epochs.
    flip : bool, default=True
        Mirror every training image left to right with probability one half.
    adversarial : float, default=0
        Size of a fast-gradient-sign step, in normalised input units, on which the loss is taken
        as well; 0 for none. Deep ensembles (Lakshminarayanan et al. 2017) use it.
    seed : int, default=0
        Seed of the order of examples, of the augmentation and of resampled labels.
    """

    epochs: int = 60
    batch_size: int = 128
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: str = "plateau"
    plateau_patience: int = 5
    patience: int | None = None
    flip: bool = True
    adversarial: float = 0.0
    seed: int = 0

    def __post_init__(self):
        check_integer(self.batch_size, "batch_size", minimum=2)  # batch normalisation needs two
        for name in ("epochs", "plateau_patience"):
            check_integer(getattr(self, name), name)
        if self.patience is not None:
            check_integer(self.patience, "patience")
        check_number(self.learning_rate, "learning_rate", 0, exclusive=True)
        for name in ("momentum", "weight_decay", "adversarial"):
            check_number(getattr(self, name), name, 0)
        check_choice(self.schedule, ("plateau", "cosine", "constant"), "schedule")


@dataclass(frozen=True)
class Fit:
    """What a finished training leaves.

    Attributes
    ----------
    weights : dict of str to torch.Tensor
        State of the model after the epoch with the lowest validation cross entropy.
    logits : dict of str to torch.Tensor
        ``"best_val"``, ``"best_test"``, ``"last_val"``, ``"last_test"``: float32 logits of shape
        (n, 2) after the best epoch and after the last.
    history : list of dict
        One record an epoch: ``epoch`` (0 is before training), ``train_ce``, ``val_ce``,
        ``learning_rate``, ``calibration`` (1 if the targets were not the outcomes), ``seconds``
        and the test metrics of `probnb.metrics.evaluate`.
    best_epoch : int
        The epoch whose weights were kept.
    """

    weights: dict
    logits: dict
    history: list
    best_epoch: int

    @property
    def val_ce(self):
        """Validation cross entropy of the kept weights, in nats."""
        return self.history[self.best_epoch]["val_ce"]


def fit(
    model,
    splits,
    recipe,
    loss=None,
    targets=None,
    fabric=None,
    checkpoint=None,
    on_epoch=None,
):
    """Train a model and keep the weights with the lowest validation cross entropy.

    Parameters
    ----------
    model : torch.nn.Module
        Maps a batch of inputs to two logits; its present weights are the start.
    splits : probnb.data.Splits
        Training, validation and test data.
    recipe : Recipe
        Optimiser, schedule, epochs and seed.
    loss : callable, optional
        ``loss(logits, targets)``, by default `probnb.training.losses.CrossEntropy`.
    targets : callable, optional
        Schedule of soft targets, by default `probnb.training.targets.Observed`.
    fabric : lightning_fabric.Fabric, optional
        Device and precision; by default `make_fabric()`.
    checkpoint : path-like, optional
        File that is written after every epoch and read at the start where it exists, so that a
        training killed at any moment goes on from its last finished epoch. Removing it is the
        caller's business.
    on_epoch : callable, optional
        Called with the record of each finished epoch; replaces the progress bar.

    Returns
    -------
    Fit
        Best weights, logits and history.

    Raises
    ------
    ValueError
        If there are fewer than two training examples (batch normalisation needs two).
    FloatingPointError
        If the loss stops being finite.
    """
    if len(splits.train) < 2:
        raise ValueError(f"splits.train must have at least 2 rows; got {len(splits.train)}.")
    loss, targets = loss or CrossEntropy(), targets or Observed()
    fabric = fabric or make_fabric()
    train, val, test = (part.to(fabric.device) for part in (splits.train, splits.val, splits.test))
    scale = input_scale(train.inputs)
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(
        model.parameters(),
        recipe.learning_rate,
        recipe.momentum,
        weight_decay=recipe.weight_decay,
        fused=True,
    )
    wrapped, optimizer = fabric.setup(model, optimizer)
    scheduler = _make_scheduler(optimizer, recipe)
    run = Run(model, optimizer, scheduler)

    if checkpoint is not None and os.path.exists(checkpoint):
        run.restore(checkpoint)
    else:
        row, _ = _assess(fabric, wrapped, scale, val, test)
        run.history.append({"epoch": 0, "train_ce": math.nan, "calibration": 0, **row})
    bar = tqdm(total=recipe.epochs, initial=run.epoch, disable=on_epoch is not None, unit="epoch")
    with bar:
        while run.epoch < recipe.epochs and not _out_of_patience(run, recipe):
            epoch, began = run.epoch + 1, time.perf_counter()
            soft = targets(
                epoch,
                train,
                lambda: predict_logits(fabric, wrapped, scale, train.inputs).softmax(1)[:, 1],
                recipe.seed,
            )
            row = {"calibration": int(soft is not train.outcomes)}
            row["train_ce"] = train_one_epoch(
                fabric, wrapped, optimizer, scale, train, soft, loss, recipe, epoch
            )
            assessed, logits = _assess(fabric, wrapped, scale, val, test)
            run.record(row | assessed | {"seconds": time.perf_counter() - began}, logits)
            if checkpoint is not None and fabric.is_global_zero:
                run.save(checkpoint)
            bar.update()
            bar.set_postfix(val_ce=f"{run.history[-1]['val_ce']:.4f}")
            if on_epoch is not None:
                on_epoch(run.history[-1])
    return Fit(run.best, run.logits, run.history, run.best_epoch)


def train_one_epoch(fabric, model, optimizer, scale, data, soft, loss, recipe, epoch):
    """Take one pass of SGD over `data` towards the targets `soft`.

    Order and augmentation depend on the seed and the epoch alone. A last batch of one joins the
    batch before it, since batch normalisation cannot use it.

    Parameters
    ----------
    fabric : lightning_fabric.Fabric
        Device, precision and processes.
    model : torch.nn.Module
        The network, as set up by Fabric.
    optimizer : torch.optim.Optimizer
        The optimiser, as set up by Fabric.
    scale : tuple or None
        From `probnb.training.batches.input_scale`.
    data : probnb.data.ProbabilityData
        Training data on the device.
    soft : torch.Tensor of shape (n,)
        Targets, probabilities of outcome 1.
    loss : callable
        Called as ``loss(logits, targets)``.
    recipe : Recipe
        Batch size, seed, augmentation and adversarial step.
    epoch : int
        Number of the epoch, from 1.

    Returns
    -------
    float
        Mean cross entropy of the outcomes, in nats, as seen during the epoch.
    """
    model.train()
    generator = torch.Generator().manual_seed(recipe.seed * 100_003 + epoch)
    order = torch.randperm(len(data), generator=generator)
    flips = (torch.rand(len(data), generator=generator) < 0.5).to(fabric.device)
    total = torch.zeros((), device=fabric.device)
    for rows in cut(order, recipe.batch_size, fabric):
        x = data.inputs[rows]
        if recipe.flip and x.ndim == 4:
            x = torch.where(flips[rows, None, None, None], x.flip(-1), x)
        x = normalise(x, scale)
        x.requires_grad_(recipe.adversarial > 0)
        logits = model(x).float()
        optimizer.zero_grad(set_to_none=True)
        fabric.backward(loss(logits, soft[rows]))
        if recipe.adversarial:  # the gradients of the two losses add up
            shifted = (x + recipe.adversarial * x.grad.sign()).detach()
            fabric.backward(loss(model(shifted).float(), soft[rows]))
        optimizer.step()
        with torch.no_grad():
            total += len(rows) * CrossEntropy()(logits, data.outcomes[rows])
    total = fabric.all_reduce(total, reduce_op="sum")
    if not torch.isfinite(total):
        raise FloatingPointError(
            f"the loss is not finite in epoch {epoch}; lower learning_rate={recipe.learning_rate}."
        )
    return float(total) / len(data)


def _assess(fabric, model, scale, val, test):
    """Validation cross entropy, test metrics, and the logits of both."""
    logits = {
        "val": predict_logits(fabric, model, scale, val.inputs),
        "test": predict_logits(fabric, model, scale, test.inputs),
    }
    row = {"val_ce": float(CrossEntropy()(logits["val"].double(), val.outcomes.double()))}
    p_hat = logits["test"].double().softmax(1)[:, 1].cpu().numpy()
    p = None if test.probabilities is None else test.probabilities.cpu().numpy()
    row |= metrics.evaluate(test.outcomes.cpu().numpy(), p_hat, p)
    return row, {name: value.cpu() for name, value in logits.items()}


def _make_scheduler(optimizer, recipe):
    if recipe.schedule == "plateau":
        return torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=0.5, patience=recipe.plateau_patience, min_lr=1e-6
        )
    if recipe.schedule == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, recipe.epochs)
    return None


def _out_of_patience(run, recipe):
    return recipe.patience is not None and run.epoch - run.best_epoch >= recipe.patience
