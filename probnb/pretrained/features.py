"""Images as a pretrained network sees them: extracted once, kept, and data like any other."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from tqdm.auto import tqdm

from .. import store
from ..data.base import Splits
from ..data.inputs import take_rows
from ..training.batches import full_precision
from .backbone import Backbone, check_backbone, portable

BATCH = 32
"""Images at a time, always: with other numbers a processor adds in another order."""

CHUNK = 32 * BATCH
"""Images whose features are kept in one file: what a killed extraction loses at most."""


def features_of(splits, profile, directory, device="cpu", mirror=False):
    """Return the data that a profile trains on: features, or where nothing is frozen the images.

    Parameters
    ----------
    splits : Splits
        Images.
    profile : probnb.experiment.profiles.Profile
        Says which backbone, and which of its layers.
    directory, device
        As for `load_features`.
    mirror : bool, default=False
        Whether a mirrored image has the same outcome.
    """
    if profile.backbone == "none":
        return splits
    check_backbone(profile.backbone, splits.train.inputs.shape[2:])
    backbone = Backbone(profile.backbone, profile.layers, mirror=mirror)
    if profile.tune:  # which is to see images as it always has
        return replace(splits, train=replace(splits.train, scale=backbone.scale))
    return load_features(splits, backbone, directory, portable(profile.backbone), device=device)


def load_features(splits, backbone, directory, name, device="cpu", progress=True):
    """Return the same data with features in place of images.

    Parameters
    ----------
    splits : Splits
        Its inputs are uint8 images of three channels.
    backbone : probnb.pretrained.backbone.Backbone
        Turns images into features.
    directory : path-like
        Where features are kept: by image, network, size, layers and kind of device, in half
        precision. They are the same whatever images are beside it, and in whatever part and order.
    name : str
        What the backbone is called.
    device : str, default="cpu"
        Where to compute.
    progress : bool, default=True
        Whether to show a bar.

    Returns
    -------
    Splits
        Features of shape (n, F), float16, scaled by mean and standard deviation over the training
        rows; outcomes, groups and ids as before.
    """
    facts = [store.checksum(backbone.state_dict()), backbone.layers, backbone.size, backbone.mirror]
    facts += [torch.device(device).type, BATCH]
    folder = Path(directory) / "features" / store.key({"backbone": facts})
    inputs = {k: part.inputs for k, part in splits.parts().items()}
    found = extract(inputs, backbone, folder, device, progress)
    scale = found["train"].float()
    scale = scale.mean(0, keepdim=True), scale.std(0, keepdim=True).clamp(min=1e-4)
    parts = {
        k: replace(part, inputs=found[k], scale=scale, augment=())
        for k, part in splits.parts().items()
    }
    return Splits(**parts, source=f"{splits.source} backbone={name}", report=splits.report)


@torch.no_grad()
def extract(inputs, backbone, folder, device="cpu", progress=True):
    """Return the features of each set of images, reading those that are in `folder`.

    Parameters
    ----------
    inputs : dict of str to images
        uint8, of shape (n, 3, height, width), in memory or on disk.
    backbone, device, progress
        As for `load_features`.
    folder : path-like
        Files of features, `CHUNK` images each, with the digests of the images.

    Returns
    -------
    dict of str to torch.Tensor of shape (n, F)
        float16.

    Raises
    ------
    ValueError
        If a feature is not finite in half precision.
    """
    backbone = backbone.eval().to(device, memory_format=torch.channels_last)
    mean, deviation = (part.to(device) for part in backbone.scale)

    def seen(images):
        x = (images.to(device).float() - mean) / deviation
        x = x.contiguous(memory_format=torch.channels_last)
        with full_precision():
            return backbone(x)

    known = _read(folder)
    names = {k: [_digest(row) for row in _rows(images)] for k, images in inputs.items()}
    places = ((k, row, digest) for k in names for row, digest in enumerate(names[k]))
    missing = {digest: (k, row) for k, row, digest in places if digest not in known}  # each once
    todo, bar = list(missing), {"unit": "image", "desc": "Features"}
    with tqdm(total=len(todo), disable=not (progress and todo), **bar) as bar:
        for start in range(0, len(todo), CHUNK):
            chunk, features = todo[start : start + CHUNK], []
            for at in range(0, len(chunk), BATCH):
                places = [missing[digest] for digest in chunk[at : at + BATCH]]
                images = torch.cat([take_rows(inputs[part], [row]) for part, row in places])
                full = images[torch.arange(BATCH) % len(images)]
                features.append(seen(full)[: len(images)].half().cpu())
                bar.update(len(images))
            features = torch.cat(features)
            if not torch.isfinite(features).all():
                raise ValueError("backbone must give finite features below 65,504; got others.")
            digests = torch.tensor(np.frombuffer(b"".join(chunk), np.uint8).reshape(len(chunk), -1))
            path = Path(folder) / f"{hashlib.sha256(b''.join(chunk)).hexdigest()[:16]}.safetensors"
            store.save(path, {"digests": digests, "features": features}, {})
            known |= dict(zip(chunk, features))
    return {k: torch.stack([known[digest] for digest in digests]) for k, digests in names.items()}


def _rows(images):
    for rows in torch.arange(images.shape[0]).split(CHUNK):
        yield from take_rows(images, rows).numpy()


def _digest(image):
    return hashlib.blake2b(f"{image.shape}".encode() + image.tobytes(), digest_size=16).digest()


def _read(folder):
    """The features that are kept, by the digest of the image; a damaged file is set aside."""
    known = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        tensors, _ = store.load_or_set_aside(path) or ({"digests": [], "features": []}, None)
        known |= {bytes(d.tolist()): f for d, f in zip(tensors["digests"], tensors["features"])}
    return known
