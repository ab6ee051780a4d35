"""Device, precision and batches: tensors stay on the device and are cut by index."""

from __future__ import annotations

import logging

import lightning_fabric
import torch

from ..validation import check_choice

__all__ = [
    "cut",
    "device_type",
    "input_scale",
    "make_fabric",
    "normalise",
    "precision_of",
    "predict_logits",
]

logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # it announces every AMP set-up


def device_type(device="auto"):
    """Return "cuda", "mps" or "cpu": what is there if "auto", else `device` if it is there."""
    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    check_choice(device, ["auto", *there], "device")
    if device == "auto":
        return next(name for name, available in there.items() if available)
    if not there[device]:
        available = [name for name in there if there[name]]
        raise ValueError(f"device must be available here ({', '.join(available)}); got {device!r}.")
    return device


def precision_of(device):
    """Return Fabric's name of the precision that trains fastest on a device.

    bf16 needs hardware for it: emulated, it is slower than float32.
    """
    if device == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        features = torch.cpu.get_capabilities() if device == "cpu" else {}
        fast = features.get("avx512_bf16") or features.get("amx_bf16") or features.get("bf16")
    return "bf16-mixed" if fast else "32-true"


def make_fabric(device="auto", precision=None, devices=1):
    """Return a Lightning Fabric for one device, or for several processes.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where to compute.
    precision : str, optional
        As Fabric names it; by default `precision_of` the device.
    devices : int, default=1
        Processes; more than one must be launched by Fabric.

    Returns
    -------
    lightning_fabric.Fabric
        Ready for `fit`.
    """
    device = device_type(device)
    return lightning_fabric.Fabric(
        accelerator=device, devices=devices, precision=precision or precision_of(device)
    )


@torch.no_grad()
def predict_logits(fabric, model, scale, inputs, batch_size=512):
    """Return float32 logits (n, 2) in evaluation mode, gathered across processes.

    Parameters
    ----------
    fabric : lightning_fabric.Fabric
        Device, precision and processes.
    model : torch.nn.Module
        As set up by Fabric.
    scale : tuple or None
        Mean and standard deviation of the training inputs, from `fit`.
    inputs : torch.Tensor of shape (n, ...)
        On the device; not augmented.
    batch_size : int, default=512
        Examples at a time.
    """
    model.eval()
    padded = -(-len(inputs) // fabric.world_size) * fabric.world_size  # the same for each process
    mine = torch.arange(padded)[fabric.global_rank :: fabric.world_size] % len(inputs)
    parts = [
        model(normalise(inputs[rows.to(inputs.device)], scale)).float()
        for rows in mine.split(batch_size)
    ]
    gathered = fabric.all_gather(torch.cat(parts))
    if fabric.world_size > 1:  # (processes, rows, 2): interleave
        gathered = gathered.transpose(0, 1).reshape(padded, -1)
    return gathered[: len(inputs)]


def cut(order, batch_size, fabric):
    """Cut an order of rows into batches, and each into this process's share, on the device.

    A last batch too small for batch normalisation (one row a process) joins the one before it.
    """
    batches = list(order.split(batch_size))
    if len(batches) > 1 and len(batches[-1]) < 2 * fabric.world_size:
        batches[-2:] = [torch.cat(batches[-2:])]
    for batch in batches:
        yield batch[fabric.global_rank :: fabric.world_size].to(fabric.device)


def input_scale(inputs):
    """Mean and standard deviation per channel of uint8 images; None for other inputs."""
    if inputs.dtype != torch.uint8:
        return None
    channels = inputs.transpose(0, 1).flatten(1)
    counts = torch.stack([torch.bincount(c.int(), minlength=256) for c in channels]).double()
    levels = torch.arange(256, device=inputs.device, dtype=torch.float64)
    mean = (counts @ levels) / counts.sum(1)
    variance = (counts @ levels**2) / counts.sum(1) - mean**2
    shape = (1, -1, *[1] * (inputs.ndim - 2))
    return tuple(v.float().reshape(shape) for v in (mean, variance.clamp(min=1).sqrt()))


def normalise(x, scale):
    """Turn a batch of uint8 images into normalised floats; other inputs pass as they are."""
    if scale is None:
        return x
    if x.ndim == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    return (x.float() - scale[0]) / scale[1]
