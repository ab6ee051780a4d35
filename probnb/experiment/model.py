"""A trained network with its calibrator, as something to keep: one folder, no pickle.

The folder holds the weights (safetensors), the calibrator (JSON) and ``model.json``: how to prepare
an image, which network it is, what it was trained on and by which version, and a checksum of every
file.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from scipy.special import softmax

from .. import __version__, calibrators, store
from ..calibrators import logits_from_probabilities
from ..data.base import ProbabilityData
from ..training.batches import make_fabric, predict_logits
from ..training.models import NETWORKS, Network, network

__all__ = ["KeptModel", "check_model_folder", "load_model", "map_input", "save_model"]

FORMAT = 1
RECORD = "model.json"


@dataclass(frozen=True, eq=False)
class KeptModel:
    """A network, or the members of an ensemble, with the map that calibrates it.

    Parameters
    ----------
    network : Network
        Which network it is.
    members : tuple of dict of str to torch.Tensor
        Weights of each member; an ensemble's probabilities are averaged.
    channels : int
        Channels (or features) of its inputs.
    scale : tuple of torch.Tensor, optional
        Mean and standard deviation per channel of uint8 images.
    calibrator : estimator, optional
        A fitted one of `probnb.calibrators`.
    size : int, optional
        Height and width of its images.
    aspect : {"crop", "pad", "stretch"}, default="crop"
        What happens to an image that is not square.
    record : dict
        Provenance: anything that JSON can hold.

    Examples
    --------
    >>> from probnb.training.models import network
    >>> spec = network("mlp", hidden=(4,))
    >>> model = KeptModel(spec, (spec.build(torch.zeros(2, 3)).state_dict(),), channels=3)
    >>> model.predict(torch.zeros(5, 3)).shape
    (5,)
    """

    network: Network
    members: tuple
    channels: int
    scale: tuple | None = None
    calibrator: object = None
    size: int | None = None
    aspect: str = "crop"
    record: dict = field(default_factory=dict)
    _built: dict = field(default_factory=dict, init=False, repr=False)

    def predict(self, inputs, device="auto", precision="32-true", batch_size=256):
        """Return the probability of outcome 1 for each row.

        Parameters
        ----------
        inputs : torch.Tensor, array or probnb.data.ProbabilityData, of n rows
            uint8 images of the model's size, (n, channels, size, size), or what else it was
            trained on.
        device : {"auto", "cpu", "cuda", "mps"}, default="auto"
            Where to compute.
        precision : str, default="32-true"
            As Lightning Fabric names it. Full precision gives the same probabilities to 1e-5
            on any device, whatever precision the network was trained in; bfloat16 is off by
            hundredths where a network is sure of itself.
        batch_size : int, default=256
            Rows at a time.

        Returns
        -------
        ndarray of shape (n,)
            float64.
        """
        return self.probabilities(self.logits(inputs, device, precision, batch_size))

    def probabilities(self, logits):
        """Return the probabilities that follow from `logits`: averaged, then calibrated."""
        p = softmax(logits, axis=2)[:, :, 1].mean(axis=0)
        if self.calibrator is None or not len(p):
            return p
        return self.calibrator.predict_proba(map_input(logits))[:, 1]

    def logits(self, inputs, device="auto", precision="32-true", batch_size=256):
        """Return the logits of each member before calibration, (members, n, 2)."""
        data = inputs
        if not isinstance(data, ProbabilityData):
            data = ProbabilityData(inputs, torch.zeros(len(inputs)))
        if data.inputs.shape[1] != self.channels:
            raise ValueError(
                f"inputs must have {self.channels} channels; got {data.inputs.shape[1]}."
            )
        if not len(data):
            return np.zeros((len(self.members), 0, 2))
        fabric, networks = self._ready(device, precision)
        data = replace(data, scale=self.scale).to(fabric.device)
        with torch.backends.cudnn.flags(allow_tf32=False):  # ten bits, as in half precision
            logits = [predict_logits(fabric, net, data, batch_size) for net in networks]
        return np.array([z.cpu().double().numpy() for z in logits])

    def _ready(self, device, precision):
        """The networks on a device, built once."""
        if (device, precision) not in self._built:
            fabric, networks = make_fabric(device, precision), []
            for weights in self.members:
                with torch.device("meta"):  # no weights are drawn only to be replaced
                    net = self.network.build(torch.empty(1, self.channels))
                full = {k: v.float() if v.is_floating_point() else v for k, v in weights.items()}
                net.load_state_dict(full, assign=True)  # whatever they were kept in
                networks.append(fabric.setup(net))
            self._built[device, precision] = fabric, networks
        return self._built[device, precision]

    def calibrated(self, calibrator, data, logits=None):
        """Return the same model with a calibrator fitted to it on validation data."""
        x = map_input(self.logits(data) if logits is None else logits)
        given = {} if data.weights is None else {"sample_weight": data.weights.cpu().numpy()}
        return replace(self, calibrator=calibrator.fit(x, data.outcomes.cpu().numpy(), **given))


def map_input(logits):
    """What a calibrator is fitted to: logits, or for an average those of its probabilities."""
    if len(logits) == 1:
        return logits[0]
    p = softmax(logits, axis=2)[:, :, 1].mean(axis=0)
    return logits_from_probabilities(p)


def save_model(folder, model):
    """Write a model to a folder of its own, whole or not at all.

    Parameters
    ----------
    folder : path-like
        Where to. A model that lies there is replaced; another folder is refused.
    model : KeptModel
        Its network must be one of `probnb.training.models.NETWORKS`: a folder of numbers cannot
        hold the code of another.

    Returns
    -------
    pathlib.Path
        The folder.
    """
    if not isinstance(model.network.kind, str):
        raise ValueError(
            f"model: network must be one of {', '.join(NETWORKS)} to be kept without code; got "
            f"{model.network.name}."
        )
    folder = check_model_folder(folder)
    temporary = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    old = folder.with_name(f"{folder.name}.{os.getpid()}.old")
    try:
        _write(temporary, model)
        if folder.exists():
            os.replace(folder, old)
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    return folder


def check_model_folder(folder):
    """Return where a model can be kept, before anything is trained for it; else ValueError."""
    folder = Path(folder).expanduser()
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"model_dir must be a folder; {folder} is a file.")
    if folder.exists() and any(folder.iterdir()) and not (folder / RECORD).exists():
        raise ValueError(f"model_dir must be empty or hold a model; {folder} holds something else.")
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not os.access(there, os.W_OK):
        raise ValueError(f"model_dir must be a folder that can be written; {there} cannot.")
    return folder


def _write(folder, model):
    for i, weights in enumerate(model.members):
        store.save(folder / f"member-{i}.safetensors", weights, {"member": i})
    if model.calibrator is not None:
        calibrators.save(folder / "calibrator.json", model.calibrator)
    content = {
        "format": FORMAT,
        "version": __version__,
        "network": {"name": model.network.name, "settings": dict(model.network.settings)},
        "channels": model.channels,
        "scale": model.scale and [part.flatten().tolist() for part in model.scale],
        "size": model.size,
        "aspect": model.aspect,
        "record": model.record,
        "files": {path.name: _sum(path.read_bytes()) for path in sorted(folder.iterdir())},
    }
    blank = {**content, "sha256": "0" * 64}
    text = json.dumps(blank, indent=1, sort_keys=True, default=store.plain) + "\n"
    (folder / RECORD).write_text(text.replace("0" * 64, _sum(text.encode())))


def load_model(folder):
    """Read a model that `save_model` wrote, after checking every byte of it.

    Parameters
    ----------
    folder : path-like
        The model's folder.

    Returns
    -------
    KeptModel
        On the CPU, in the precision of its weights.

    Raises
    ------
    FileNotFoundError
        If the folder or a file of it is missing.
    ValueError
        If a file is damaged (a single flipped bit suffices), or of a later version.
    """
    folder = Path(folder).expanduser()
    record = _read_record(folder)
    for name, expected in record["files"].items():
        path = folder / Path(name).name
        if not path.is_file():
            raise FileNotFoundError(f"model: {path} is missing.")
        if (found := _sum(path.read_bytes())) != expected:
            raise ValueError(
                f"model: {path} is damaged: its SHA-256 starts with {found[:12]}, that of the "
                f"file which was saved with {expected[:12]}. Copy it again from where it came."
            )
    names = sorted(
        (name for name in record["files"] if name.startswith("member-")),
        key=lambda name: int(name.removeprefix("member-").split(".")[0]),
    )
    calibrator = None
    if "calibrator.json" in record["files"]:
        calibrator = calibrators.load(folder / "calibrator.json")
    scale = record["scale"]
    return KeptModel(
        network(record["network"]["name"], **record["network"]["settings"]),
        tuple(store.load(folder / name)[0] for name in names),
        record["channels"],
        scale and tuple(torch.tensor(part).reshape(1, -1, 1, 1) for part in scale),
        calibrator,
        record["size"],
        record["aspect"],
        record["record"],
    )


def _read_record(folder):
    path = folder / RECORD
    if not path.is_file():
        raise FileNotFoundError(f"model must be a folder with a {RECORD}; {path} is not there.")
    text = path.read_bytes()
    try:
        record = json.loads(text)
        expected = record.pop("sha256")
        damaged = _sum(text.replace(expected.encode(), b"0" * 64)) != expected
    except (ValueError, KeyError, TypeError, AttributeError):  # JSON, or its encoding
        damaged = True
    if damaged:
        raise ValueError(f"model: {path} is damaged or was edited: its checksum does not fit.")
    if record["format"] > FORMAT:
        raise ValueError(
            f"model: {path} was written by probnb {record['version']}, a later version than this, "
            f"{__version__}; update to read it."
        )
    return record


def _sum(data):
    return hashlib.sha256(data).hexdigest()
