"""Device, precision, memory layout and the cutting of epochs into batches."""

import contextlib
import logging
import os
from functools import partial

import lightning_fabric
import torch
from torch import nn

from ..validation import check_choice

logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # it announces every AMP set-up


def device_type(device="auto"):
    """Return "cuda" where there is one and "cpu" elsewhere if "auto", else `device` if it is there.

    Apple's "mps" has no float64, in which validation losses are computed: it predicts, on request.
    """
    check_choice(device, ["auto", "cuda", "mps", "cpu"], "device")
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    here = [*(name for name, found in there.items() if found), "cpu"]
    if device == "auto":
        return "cuda" if there["cuda"] else "cpu"
    if device not in here:
        raise ValueError(f"device must be available here ({', '.join(here)}); got {device!r}.")
    return device


def precision_of(device):
    """Return Fabric's name of the precision that trains fastest on a device.

    bf16 needs a matrix unit: emulated it is nine times slower than float32, and with the vector
    instructions of AVX-512 still slower by a tenth to a quarter (widths 8 to 64, 20 to 64 pixels).
    Larger networks gain by those of AVX-512 too where it has bf16 (AMD EPYC, Zen 4: about half the
    time at 96 pixels and width 32, and at 200 and 64), for which one asks by the environment's
    ``PROBNB_PRECISION``; that also computes as another processor does.
    """
    if asked := os.environ.get("PROBNB_PRECISION"):
        return check_choice(asked, ("32-true", "bf16-mixed"), "PROBNB_PRECISION")
    if device == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        features = torch.cpu.get_capabilities() if device == "cpu" else {}
        fast = features.get("amx_bf16") or features.get("bf16")
    return "bf16-mixed" if fast else "32-true"


def make_fabric(device="auto", precision=None, devices=1, environment=None):
    """Return a Lightning Fabric for one device, or for several processes.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where to compute.
    precision : str, optional
        As Fabric names it; by default `precision_of` the device.
    devices : int or list of int, default=1
        Processes, more than one of which Fabric must launch; a list says which GPUs.
    environment : lightning_fabric.plugins.environments.ClusterEnvironment, optional
        Where processes know each other already.

    Returns
    -------
    lightning_fabric.Fabric
        Ready for `fit`.
    """
    device = device_type(device)
    plugins = [environment] if environment else None
    how = {"precision": precision or precision_of(device), "plugins": plugins}
    return lightning_fabric.Fabric(accelerator=device, devices=devices, **how)


def use_fast_layout(model):
    """Keep the weights of a convolutional network with channels last, where that is safe.

    It saves the reordering of every activation. In torch 2.14.1 on processors without bf16 the
    backward pass of a strided 1x1 convolution of fewer than 8 channels then writes out of bounds;
    networks that have one, or a grouped convolution, stay as they are.
    """

    def safe(m):
        strided = m.kernel_size == (1, 1) and m.stride != (1, 1)
        return m.groups == 1 and not (strided and m.in_channels < 8)

    convolutions = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    fast = convolutions and all(map(safe, convolutions))
    return model.to(memory_format=torch.channels_last) if fast else model


@contextlib.contextmanager
def clear_unread_taps(model):
    """Watch a forward pass, and from then on zero the gradients of taps that read only padding.

    A 3x3 kernel on a map of one pixel uses one of its nine taps. torch 2.14.1 leaves the gradients
    of some others as it found the memory (bf16, stride 2, on a CPU): no prediction shows it, but
    the weights end as noise or NaN.

    Parameters
    ----------
    model : torch.nn.Module
        Its inputs keep the height and width of the pass that is watched, until the next is.
    """
    convolutions = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    seen = [m.register_forward_pre_hook(_clear_unread_taps) for m in convolutions]
    try:
        yield
    finally:
        for handle in seen:
            handle.remove()


def _clear_unread_taps(convolution, inputs):
    for handle in convolution.__dict__.pop("unread_taps", ()):  # of another size of image
        handle.remove()
    plain = type(convolution) is nn.Conv2d and convolution.padding_mode == "zeros"
    if not plain or not convolution.weight.requires_grad:  # others put zeros around the map first
        return
    counted = torch.zeros(1, 1, *convolution.kernel_size, dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():  # the gradient of a sum over ones counts what each tap reads
        ones = torch.ones(1, 1, *inputs[0].shape[2:], dtype=torch.float64)
        settings = convolution.stride, convolution.padding, convolution.dilation
        nn.functional.conv2d(ones, counted, None, *settings).sum().backward()
    unread = counted.grad[0, 0].to(convolution.weight.device) == 0
    if unread.any():
        clear = partial(torch.masked_fill, mask=unread, value=0.0)
        convolution.unread_taps = [convolution.weight.register_hook(clear)]


def full_precision():
    """Give convolutions on a GPU the 24 bits of float32, not the eleven of TF32."""
    return torch.backends.cudnn.flags(enabled=True, allow_tf32=False)


@torch.no_grad()
def predict_logits(fabric, model, data, batch_size=512):
    """Return float32 logits (n, K) in evaluation mode, gathered across processes.

    Parameters
    ----------
    fabric : lightning_fabric.Fabric
        Device, precision and processes.
    model : torch.nn.Module
        As set up by Fabric.
    data : probnb.data.ProbabilityData
        On the device; taken as it is, not augmented.
    batch_size : int, default=512
        Examples at a time and process.
    """
    model.eval()
    parts, chunks = [], data.chunks(batch_size * fabric.world_size)
    with fabric.autocast():  # an averaged model is not set up by Fabric
        for rows in chunks:
            mine = rows[fabric.global_rank :: fabric.world_size]
            parts.append(gather(fabric, model(*data.batch(mine)), len(rows)))
    logits = torch.cat(parts)
    return logits[torch.cat(list(chunks)).argsort().to(logits.device)]  # bags go by length


def probabilities(logits):
    """Return the probability of outcome 1, (n,), or of each of more than two outcomes, (n, K)."""
    p = logits.softmax(1)
    return p[:, 1] if p.shape[1] == 2 else p


def gather(fabric, logits, rows):
    """Return the logits of all `rows` of a batch whose every k-th each of k processes has.

    Gradients flow back to the process they belong to, so that a loss of the whole batch (its
    weights, the pairs of MMCE) is the same on every process as on one, however uneven the shares.
    """
    logits = logits.float()
    if fabric.world_size == 1:
        return logits
    share = -(-rows // fabric.world_size)
    padded = nn.functional.pad(logits, (0, 0, 0, share - len(logits)))
    gathered = fabric.all_gather(padded, sync_grads=torch.is_grad_enabled())
    return gathered.transpose(0, 1).reshape(share * fabric.world_size, -1)[:rows]


def cut(order, batch_size, processes=1):
    """Cut an order of rows into batches.

    A last batch too small for batch normalisation (one row a process) joins the one before it.
    """
    batches = list(order.split(batch_size))
    if len(batches) > 1 and len(batches[-1]) < 2 * processes:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches
