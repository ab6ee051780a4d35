"""A trained network with its calibrator, to keep in one folder and to predict new images with.

Nothing in the folder is pickle. It holds the weights (safetensors) and ``model.json``: how to
prepare an image, which network it is, its calibrator, what it was trained on and by which version,
and a checksum of every file. ``MODEL_CARD.md`` beside it is for readers.
"""

import hashlib
import json
import os
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from scipy.special import softmax

from .. import __version__, calibrators, store
from ..calibrators import logits_from_probabilities
from ..data.base import ProbabilityData
from ..experiment.results import difference, identity
from ..pretrained.backbone import portable
from ..report.decide import crossing
from ..training.batches import full_precision, make_fabric, predict_logits
from ..training.models import NETWORKS, Network, network
from .card import model_card
from .predict import UNLIKE, distances, listen, summarize
from .predict import predict_images as predict_images

FORMAT = 3
READ = (2, FORMAT)
"""Formats that are read: 2 has no summary of the training images."""

RECORD, CARD, SUMMARY = "model.json", "MODEL_CARD.md", "training.safetensors"
_AS_IT_IS = ("channels", "size", "aspect", "record")  # fields that JSON holds


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
    summary : dict of str to torch.Tensor, optional
        Of the features of its training images, see `summarized`.

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
    summary: dict | None = None
    _built: dict = field(default_factory=dict, init=False, repr=False)

    def predict(self, inputs, device="auto", batch_size=256):
        """Return the probability of outcome 1 for each row.

        In full precision, which gives the same probabilities to 1e-5 on any device, whatever
        precision the network was trained in; bfloat16 is off by hundredths where a network is sure
        of itself.

        Parameters
        ----------
        inputs : torch.Tensor, array or probnb.data.ProbabilityData, of n rows
            uint8 images of the model's size, (n, channels, size, size), or what else it was
            trained on.
        device : {"auto", "cpu", "cuda", "mps"}, default="auto"
            Where to compute.
        batch_size : int, default=256
            Rows at a time.

        Returns
        -------
        ndarray of shape (n,)
            float64.
        """
        return self.probabilities(self.logits(inputs, device, batch_size))

    def probabilities(self, logits):
        """Return the probabilities that follow from `logits`: averaged, then calibrated."""
        if self.calibrator is None or not logits.shape[1]:
            return softmax(logits, axis=2)[:, :, 1].mean(axis=0)
        return self.calibrator.predict_proba(map_input(logits))[:, 1]

    def describe(self, inputs, device="auto", batch_size=256):
        """Return the probability of each row and what else there is to say of it.

        Parameters
        ----------
        inputs, device, batch_size
            As for `predict`.

        Returns
        -------
        dict of str to ndarray of shape (n,)
            By the names in `columns`: the lowest and the highest member of an ensemble are
            calibrated as their average is; 1 is unlike the training images, further from them
            than 99 % of validation images are.
        """
        logits, features = self._look(inputs, device, batch_size)
        told = [self.probabilities(logits)]
        if len(logits) > 1:
            each = [self.probabilities(np.array([z, z])) for z in logits]
            told += [np.min(each, axis=0), np.max(each, axis=0)]
        if self.summary:
            beyond = distances(self.summary, features) > float(self.summary["limit"])
            told.append(beyond.astype(int))
        return dict(zip(self.columns, told))

    @property
    def columns(self):
        """What `describe` tells, by name: the probability, of ensembles a range, and the flag."""
        ends, flag = ("lowest_member", "highest_member"), (UNLIKE,)
        return "probability", *ends * (len(self.members) > 1), *flag * bool(self.summary)

    def logits(self, inputs, device="auto", batch_size=256):
        """Return the logits of each member before calibration, (members, n, 2)."""
        return self._look(inputs, device, batch_size)[0]

    def _look(self, inputs, device="auto", batch_size=256):
        """Logits, and what the first member's fully connected layers make them of."""
        known = isinstance(inputs, ProbabilityData)
        data = inputs if known else ProbabilityData(inputs, torch.zeros(len(inputs)))
        (channels, *sides), kind = data.inputs.shape[1:], str(data.inputs.dtype)
        if channels != self.channels:
            raise ValueError(f"inputs must have {self.channels} channels; got {channels}.")
        if self.size and sides and (sides != [self.size] * 2 or "uint8" not in kind):
            size = f"{self.size} x {self.size}"
            raise ValueError(f"inputs must be uint8 of {size} pixels; got {kind} of {sides}.")
        if not len(data):
            return np.zeros((len(self.members), 0, 2)), torch.zeros(0, 1)
        if device not in self._built:
            fabric, networks = make_fabric(device, "32-true"), self.networks()
            seen = listen(networks[0])
            self._built[device] = fabric, [fabric.setup(net) for net in networks], seen
        fabric, networks, seen = self._built[device]
        seen.clear()
        data = replace(data, scale=self.scale).to(fabric.device)
        with full_precision():
            logits = [predict_logits(fabric, net, data, batch_size) for net in networks]
        logits = np.array([z.cpu().double().numpy() for z in logits])
        return logits, torch.cat(seen) if seen else torch.zeros(len(data), 0)

    def crossing(self, threshold, mean=None):
        """Return the log-odds (of an ensemble's mean) from which on at least `threshold` is said.

        See `probnb.report.decide.crossing`, which has the rest: without a calibrator, the log-odds
        of the threshold.
        """
        return crossing(self.calibrator, threshold, mean)

    def networks(self):
        """Return the network of each member, in float32 whatever precision it was kept in."""
        inputs = torch.empty(1, self.channels)
        networks = [self.network.build(inputs, bare=True) for _ in self.members]
        for net, weights in zip(networks, self.members):
            net.load_state_dict(weights)
        return networks

    def calibrated(self, calibrator, data, logits=None):
        """Return the same model with a calibrator fitted to it on validation data."""
        x = map_input(self.logits(data) if logits is None else logits)
        y, weights = data.numbers("outcomes"), data.numbers("weights")
        calibrator = calibrator.fit(x, y, sample_weight=weights)
        record = self.record | {"calibrated": data.digest, "rate": base_rate(data)}
        return replace(self, calibrator=calibrator, record=record)

    def summarized(self, splits, device="auto"):
        """Return the same model with a summary of its training data, see `predict.summarize`."""
        train, val = (self._look(part, device)[1] for part in (splits.train, splits.val))
        return replace(self, summary=summarize(train, val))


def base_rate(data):
    """Return the share of outcome 1 in weighted rows."""
    return float(np.average(data.numbers("outcomes"), weights=data.numbers("weights")))


def map_input(logits):
    """What a calibrator is fitted to: logits, or for an average those of its probabilities."""
    if len(logits) == 1:
        return logits[0]
    p = softmax(logits, axis=2)[:, :, 1].mean(axis=0)
    return logits_from_probabilities(p)


def save_model(folder, model, card=None, beside=False):
    """Write a model to a folder of its own, with a card, whole or not at all.

    Parameters
    ----------
    folder : path-like
        Where to. A model that lies there is replaced by one of the same identity: of the same
        data, settings, seed and method (a model without a record: the same weights).
    model : KeptModel
        Its network must be one of `probnb.training.models.NETWORKS`: a folder of numbers cannot
        hold the code of another.
    card : str, optional
        The text of ``MODEL_CARD.md``; by default what `probnb.images.card.model_card` says
        of the model alone. It has no checksum: whoever uses a model may add to it.
    beside : bool, default=False
        What happens where the folder holds a model of another identity: it stays, and this one
        gets a name of its own beside it, which a warning tells; or else this one is refused.

    Returns
    -------
    pathlib.Path
        The folder.

    Raises
    ------
    ValueError
        If the folder holds something else, or the network cannot be kept without code.
    """
    if not isinstance(model.network.kind, str):
        raise ValueError(
            f"model: network must be one of {', '.join(NETWORKS)} to be kept without code; got "
            f"{model.network.name}."
        )
    folder = first = Path(folder).expanduser()
    folder.parent.mkdir(parents=True, exist_ok=True)
    own = {"prefix": f"{folder.name}.", "dir": folder.parent, "ignore_cleanup_errors": True}
    with tempfile.TemporaryDirectory(**own) as aside:  # other machines may write here
        temporary, old = Path(aside, "new"), Path(aside, "old")
        own = _identity(_write(temporary, model))
        (temporary / CARD).write_text(model_card(model) if card is None else card, "utf-8")
        with store.locked(first):
            if beside and (reason := _held(first, own)):
                folder = first.with_name(f"{first.name}-{store.key(own)[:8]}")
                what = f"{first.name} {reason}: it stays; this one is {folder.name}."
                warnings.warn(what, stacklevel=2)
            _refuse_held(check_model_folder(folder), own)
            try:
                if folder.exists():
                    os.replace(folder, old)
                os.replace(temporary, folder)
            finally:
                if old.exists() and not folder.exists():
                    os.replace(old, folder)
    return folder


def check_model_folder(folder, record=None):
    """Return where a model can be kept, before anything is trained for it; else ValueError.

    With a `record`, that of the model, as far as it is known: whether it is the one that is there.
    """
    folder = Path(folder).expanduser()
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"model_dir must be a folder; {folder} is a file.")
    if folder.exists() and any(folder.iterdir()) and not (folder / RECORD).exists():
        raise ValueError(f"model_dir must be empty or hold a model; {folder} holds something else.")
    if record is not None:
        own = identity(record)
        _refuse_held(folder, own, own)
    return folder


def _identity(content):
    """That of the run that a model comes from; of a model alone what it consists of."""
    alone = {k: v for k, v in content.items() if k not in ("version", "record", "files")}
    return {"source": f"weights={store.key(alone)}"} | identity(content["record"])


def _held(folder, own, names=()):
    """What model of another identity than `own` lies in a folder; empty: this one may."""
    if not (folder / RECORD).exists():
        return ""
    try:
        held = _identity(_read_record(folder / RECORD))
    except ValueError as error:
        return f"holds a model that cannot be read ({error})"
    reason = difference(held, own, names or held | own)
    return reason and f"holds a model with other {reason}"


def _refuse_held(folder, own, names=()):
    if reason := _held(folder, own, names):
        raise ValueError(
            f"model_dir must be empty or hold the same model as this; {folder} {reason}. Remove it "
            "if it is no longer wanted, or name another folder."
        )


def _write(folder, model):
    for i, weights in enumerate(model.members):
        store.save(folder / f"member-{i}.safetensors", weights, {"member": i})
    if model.summary:
        store.save(folder / SUMMARY, model.summary, {})
    # The weights of a backbone are here; the folders of their file are of this system.
    settings = {k: portable(v) if k == "backbone" else v for k, v in model.network.settings}
    content = {
        "format": FORMAT,
        "version": __version__,
        "network": {"name": model.network.name, "settings": settings},
        **{name: getattr(model, name) for name in _AS_IT_IS},
        "scale": model.scale and [part.flatten().tolist() for part in model.scale],
        "calibrator": model.calibrator and calibrators.to_dict(model.calibrator),
        "weights": [store.checksum(weights) for weights in model.members],
        "files": {path.name: _sum(path.read_bytes()) for path in sorted(folder.iterdir())},
    }
    content = json.loads(json.dumps(content, default=store.plain))  # what a reader of it will see
    text = json.dumps(content | {"sum": store.key(content)}, indent=1)
    (folder / RECORD).write_text(text + "\n")
    return content


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
        If a file is damaged (a single flipped bit suffices), or of a version with another format.
    """
    folder = Path(folder).expanduser()
    record = _read_record(folder / RECORD)
    for name, expected in record["files"].items():
        path = folder / Path(name).name
        if _sum(path.read_bytes()) != expected:
            raise ValueError(f"model: {path} is damaged; copy it again from where it came.")
    calibrator, scale = record["calibrator"], record["scale"]
    shape = (1, -1) if record["size"] is None else (1, -1, 1, 1)
    members = [f"member-{i}.safetensors" for i in range(len(record["weights"]))]
    return KeptModel(
        network(record["network"]["name"], **record["network"]["settings"]),
        tuple(store.load(folder / name)[0] for name in members),
        scale=scale and tuple(torch.tensor(part).reshape(shape) for part in scale),
        calibrator=calibrator and calibrators.from_dict(calibrator),
        summary=store.load(folder / SUMMARY)[0] if SUMMARY in record["files"] else None,
        **{name: record[name] for name in _AS_IT_IS},
    )


def _read_record(path):
    if not path.is_file():
        raise FileNotFoundError(f"model must be a folder with a {RECORD}; {path} is not there.")
    try:
        record = json.loads(path.read_bytes())
        damaged = record.pop("sum") != store.key(record)
    except (ValueError, KeyError, TypeError, AttributeError):  # JSON, or its encoding
        damaged = True
    if damaged:
        raise ValueError(f"model: {path} is damaged or was edited: its checksum does not fit.")
    if record["format"] not in READ:
        raise ValueError(
            f"model: {path} was written by probnb {record['version']}, which has another format "
            f"than this, {__version__}: read it with that version."
        )
    return record


def _sum(data):
    return hashlib.sha256(data).hexdigest()
