"""One training loop for every method: a schedule of soft targets and a loss.

`fit` is the whole recipe in sight: minibatch SGD on tensors that stay on the device, validation
cross entropy after every epoch, the best weights kept, and a checkpoint from which a killed
training goes on to the same numbers.
"""

import time
from dataclasses import dataclass

import numpy as np
import torch
from tqdm.auto import tqdm

from .. import metrics
from ..methods import Recipe
from . import batches
from .batches import predict_logits, probabilities
from .checkpoint import Run
from .losses import LOSSES, CrossEntropy, check_targets
from .targets import Observed

__all__ = ["Fit", "Recipe", "fit", "train_one_epoch"]


@dataclass(frozen=True)
class Fit:
    """What a finished training leaves.

    Attributes
    ----------
    weights : dict of str to torch.Tensor
        State of the model after the epoch with the lowest validation cross entropy.
    logits : dict of str to torch.Tensor
        ``"best_val"``, ``"best_test"``, ``"last_val"``, ``"last_test"``: float32 logits of shape
        (n, K) after the best epoch and after the last.
    history : list of dict
        One record an epoch: ``epoch`` (0 is before training), ``train_ce``, ``val_ce``,
        ``learning_rate``, ``calibration`` (1 if the targets were not the outcomes), ``seconds``
        (wall) and ``cpu_seconds``,
        ``val_bias`` and ``bias`` (mean prediction less mean outcome on validation and test data)
        and the test metrics of `probnb.metrics.evaluate` (of `evaluate_outcomes` there for more
        than two outcomes).
    best_epoch : int
        The epoch whose weights were kept; 0 where that is the start.
    stale : bool
        Whether other code than today's has trained it, or something that it rests on.
    """

    weights: dict
    logits: dict
    history: list
    best_epoch: int
    stale: bool = False

    @property
    def val_ce(self):
        """Validation cross entropy of the kept weights, in nats."""
        return self.history[self.best_epoch]["val_ce"]

    @property
    def calibration_epochs(self):
        """Epochs up to the kept one whose targets were not the outcomes."""
        return sum(row["calibration"] for row in self.history[: self.best_epoch + 1])


def fit(
    model,
    splits,
    recipe,
    loss=None,
    targets=None,
    fabric=None,
    checkpoint=None,
    on_epoch=None,
    keep_start=False,
):
    """Train a model and keep the weights with the lowest validation cross entropy.

    Parameters
    ----------
    model : torch.nn.Module
        Called with what ``splits.train.batch`` returns, gives a logit for each outcome; its
        present weights are the start.
    splits : probnb.data.Splits
        Training, validation and test data.
    recipe : Recipe
        Optimiser, schedule, epochs and seed.
    loss : callable, optional
        ``loss(logits, targets, weights)``, by default `probnb.training.losses.CrossEntropy`.
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
    keep_start : bool, default=False
        Whether the start is a candidate itself: a fine-tuning that never improves on it returns it.

    Returns
    -------
    Fit
        Best weights, logits and history.

    Raises
    ------
    ValueError
        If the model does not turn a batch of these data into logits, or the solver is another.
    FloatingPointError
        If the loss stops being finite.

    Notes
    -----
    On several processes every loss is that of the whole batch, whatever the shares. Batch
    normalisation is synchronised on CUDA; torch has no such layer for CPUs, where each process
    normalises its own share.
    """
    loss, targets = loss or CrossEntropy(), targets or Observed()
    fabric = fabric or batches.make_fabric()
    if recipe.solver != "sgd":
        raise ValueError(f"recipe must have solver 'sgd' for this trainer; got {recipe.solver!r}.")
    splits = splits.to(fabric.device)
    train = splits.train
    model = batches.use_fast_layout(model)
    if fabric.world_size > 1 and fabric.device.type == "cuda":
        model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    rest = {"momentum": recipe.momentum, "weight_decay": recipe.weight_decay, "fused": True}
    optimizer = torch.optim.SGD(model.parameters(), recipe.learning_rate, **rest)
    wrapped, optimizer = fabric.setup(model, optimizer)
    _check_model(wrapped, train)
    scheduler = _make_scheduler(optimizer, recipe)
    average = _make_average(model, recipe)
    judged = average or wrapped  # whose predictions count
    run = Run(model, optimizer, scheduler, average)

    if checkpoint is None or not run.restore(checkpoint):
        run.start(*assess(fabric, judged, splits), keep_start)
    patience = recipe.epochs if recipe.patience is None else recipe.patience
    bar = tqdm(total=recipe.epochs, initial=run.epoch, disable=on_epoch is not None, unit="epoch")
    with bar:
        while run.epoch < min(recipe.epochs, run.best_epoch + patience):
            epoch, began, worked = run.epoch + 1, time.perf_counter(), time.process_time()
            predict = lambda: probabilities(predict_logits(fabric, judged, train))  # noqa: E731
            soft = targets(epoch, train, predict, recipe.seed)
            row = {"calibration": int(soft is not train.outcomes)}
            row["train_ce"] = train_one_epoch(
                fabric, wrapped, optimizer, train, soft, loss, recipe, epoch, average
            )
            assessed, logits = assess(fabric, judged, splits)
            row["seconds"] = time.perf_counter() - began
            row["cpu_seconds"] = time.process_time() - worked
            run.record(row | assessed, logits)
            if checkpoint is not None and fabric.is_global_zero:
                run.save(checkpoint)
            bar.update()
            bar.set_postfix(val_ce=f"{run.history[-1]['val_ce']:.4f}")
            if on_epoch is not None:
                on_epoch(run.history[-1])
    return Fit(run.best, run.logits, run.history, run.best_epoch)


def train_one_epoch(fabric, model, optimizer, data, soft, loss, recipe, epoch, average=None):
    """Take one pass of SGD over `data` towards the targets `soft`.

    Order and augmentation depend on the seed and the epoch alone. A last batch of one joins the
    batch before it, since batch normalisation cannot use it; a batch without weight takes no step.

    Parameters
    ----------
    fabric : lightning_fabric.Fabric
        Device, precision and processes.
    model : torch.nn.Module
        The network, as set up by Fabric.
    optimizer : torch.optim.Optimizer
        The optimiser, as set up by Fabric.
    data : probnb.data.ProbabilityData
        Training data on the device.
    soft : torch.Tensor of shape (n,) or (n, K)
        Targets, probabilities of outcome 1 or of each outcome.
    loss : callable
        Called as ``loss(logits, targets, weights)``.
    recipe : Recipe
        Batch size, seed and adversarial step.
    epoch : int
        Number of the epoch, from 1.
    average : torch.optim.swa_utils.AveragedModel, optional
        Takes part of the weights after every step.

    Returns
    -------
    float
        Mean cross entropy of the outcomes, in nats, as seen during the epoch.
    """
    if type(loss) in LOSSES.values():  # one's own may take other targets
        check_targets(soft, loss)
    model.train()
    seed = np.random.SeedSequence([recipe.seed, epoch, 1]).generate_state(1)[0]
    generator = torch.Generator().manual_seed(int(seed))
    order = data.order(recipe.batch_size, generator)
    draws = torch.rand(len(data), data.draws, generator=generator).to(fabric.device)
    there = order.to(fabric.device)  # once: no step waits for rows to be copied
    near = torch.is_tensor(data.inputs)
    total, weight = torch.zeros(2, device=fabric.device)
    heard = None if data.weights is None else (data.weights > 0).cpu()
    cuts = (batches.cut(each, recipe.batch_size, fabric.world_size) for each in (order, there))
    for batch, rows in zip(*cuts):
        if heard is not None and not heard[batch].any():
            continue
        share = slice(fabric.global_rank, None, fabric.world_size)  # this process's
        outcomes, target = data.outcomes[rows], soft[rows]
        weights = None if data.weights is None else data.weights[rows]
        x, *rest = data.batch((rows if near else batch)[share], draws[rows[share]])
        x.requires_grad_(recipe.adversarial > 0)
        logits = batches.gather(fabric, model(x, *rest), len(rows))
        optimizer.zero_grad(set_to_none=True)
        fabric.backward(loss(logits, target, weights))
        if recipe.adversarial:  # the gradients of the two losses add up
            shifted = (x + recipe.adversarial * x.grad.sign()).detach()
            worse = batches.gather(fabric, model(shifted, *rest), len(rows))
            fabric.backward(loss(worse, target, weights))
        optimizer.step()
        if average is not None:
            average.update_parameters(model.module)
        with torch.no_grad():
            seen = len(rows) if weights is None else weights.sum()
            total += seen * CrossEntropy()(logits, outcomes, weights)
            weight += seen
    if not torch.isfinite(total):
        raise FloatingPointError(
            f"the loss is not finite in epoch {epoch}; lower learning_rate={recipe.learning_rate}."
        )
    return float(total / weight)


def assess(fabric, model, splits):
    """Return validation cross entropy with the test metrics, and the logits of both."""
    logits = {k: predict_logits(fabric, model, getattr(splits, k)) for k in ("val", "test")}
    val = [v if v is None else v.double() for v in (splits.val.outcomes, splits.val.weights)]
    row = {"val_ce": float(CrossEntropy()(logits["val"].double(), *val))}
    p_hat = {k: probabilities(z.double()) for k, z in logits.items()}
    y, p, weights = map(splits.test.numbers, ("outcomes", "probabilities", "weights"))
    p_test = p_hat["test"].cpu().numpy()
    if splits.test.classes == 2:
        row["val_bias"], row["bias"] = (_bias(p_hat[k], getattr(splits, k)) for k in p_hat)
        row |= metrics.evaluate(y, p_test, p, weights=weights)
    else:
        row |= metrics.evaluate_outcomes(y.argmax(1), p_test, p, weights)
    return row, {name: value.cpu() for name, value in logits.items()}


def _bias(p_hat, data):
    """Mean prediction less mean outcome."""
    gap = p_hat - data.outcomes.double()
    weights = torch.ones_like(gap) if data.weights is None else data.weights.double()
    return float(weights @ gap / weights.sum())


@torch.no_grad()
def _check_model(model, data):
    """Refuse data that the model cannot take, in the data's own words."""
    batch = data.batch(torch.arange(2))
    if batch[0].device.type == "mps":
        raise ValueError("device must be cpu or cuda to train on; got mps, which has no float64.")
    model.eval()
    try:
        with batches.clear_unread_taps(model):
            logits = model(*batch)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        reason = str(error).splitlines()[0]
    else:
        if logits.shape == (2, data.classes):
            return
        reason = f"it returns shape {tuple(logits.shape)}"
    shapes = " and ".join(str(tuple(part.shape)) for part in batch)
    raise ValueError(f"model must turn inputs {shapes} into logits (2, {data.classes}); {reason}.")


def _make_scheduler(optimizer, recipe):
    if recipe.schedule == "plateau":
        how = {"factor": 0.5, "patience": recipe.plateau_patience, "min_lr": 1e-6}
        return torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **how)
    if recipe.schedule == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, recipe.epochs)
    return None


def _make_average(model, recipe):
    if not recipe.averaging:
        return None
    decay = torch.optim.swa_utils.get_ema_multi_avg_fn(recipe.averaging)
    return torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=decay, use_buffers=True)
