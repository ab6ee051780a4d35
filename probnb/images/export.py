"""A kept model as one file for other programs: from pixels to the calibrated probability.

ONNX runs in Python, C++, Java, C#, JavaScript and on phones. What is inside is what
`KeptModel.predict` does; a file gets its name once it has given the same numbers.

Resizing stays outside, in the recipe that the file carries. ONNX's antialiased ``Resize`` is off
Pillow's by up to 6 levels of 255, and even in Pillow's two passes, rounded between, by a level
somewhere in one image of five, which is more than a probability's fifth digit bears.
"""

from importlib.util import find_spec

import numpy as np
import torch
from torch import nn
from torch.nn.functional import interpolate, logsigmoid

from .. import __version__, store
from ..calibrators import CALIBRATORS
from ..calibrators.base import probability
from ..metrics.registry import CLIP
from ..paths import check_output
from .pictures import ASPECTS

TOLERANCE = 1e-5
"""Largest difference from `predict`: in the probability, or before a calibrator that jumps."""

CHECKED = 1000
"""Blurred patches of colour on which a file is held against `predict`."""


class Graph:
    """The functions of `probnb.calibrators.base.Numbers` in torch, as ONNX can hold them."""

    expit, log_expit = staticmethod(torch.sigmoid), staticmethod(logsigmoid)

    @staticmethod
    def number(x):
        """A constant of the graph; one that is a Python number loses half its digits in ONNX."""
        return torch.tensor(np.asarray(x, np.float64))

    @staticmethod
    def dot(z, factors):
        """The sum of the columns times their factors."""
        return z @ Graph.number(factors)

    @staticmethod
    def steps(x, edges, values, side="right"):
        """The value of the step that x is on."""
        above = torch.ge if side == "right" else torch.gt
        return Graph.number(values)[above(x[:, None], Graph.number(edges)).sum(1)]

    @staticmethod
    def lines(x, places, values):
        """Interpolate as `numpy.interp` does."""
        places, values = Graph.number([*places, np.inf]), Graph.number([*values, values[-1]])
        right = (x[:, None] >= places).sum(1).clamp(1, len(places) - 1)
        (start, end), (low, high) = ((each[right - 1], each[right]) for each in (places, values))
        return low + ((x - start) / (end - start)).clamp(0, 1) * (high - low)

    @staticmethod
    def curve(calibrator, x):
        """Cubics between the knots, straight beyond."""
        knots = calibrator.knots_
        x, at = x - Graph.steps(x, knots, [knots[0], *knots]), x
        cubed, squared, rise, start = (Graph.steps(at, knots, c) for c in calibrator.cubics().T)
        return ((cubed * x + squared) * x + rise) * x + start


class Whole(nn.Module):
    """What `KeptModel.predict` computes, as one graph.

    Parameters
    ----------
    model : probnb.images.model.KeptModel
        One of images.

    Raises
    ------
    ValueError
        If its calibrator has no formula.
    """

    def __init__(self, model):
        super().__init__()
        self.calibrator = model.calibrator
        if not (self.calibrator is None or hasattr(self.calibrator, "formula")):
            allowed = f"one of {', '.join(CALIBRATORS)}, or have a formula, for export"
            raise ValueError(f"calibrator must be {allowed}; got {type(self.calibrator).__name__}.")
        self.networks = nn.ModuleList(model.networks())
        for name, part in zip(("mean", "deviation"), model.scale):
            self.register_buffer(name, part.float())

    def forward(self, images):
        """Return probabilities (n,), float64, of uint8 images (n, height, width, channels)."""
        x = (images.permute(0, 3, 1, 2).float() - self.mean) / self.deviation
        logits = torch.stack([net(x) for net in self.networks]).double()
        p, z = logits.softmax(2)[:, :, 1].mean(0), logits[0]
        if self.calibrator is None:
            return p
        if len(self.networks) > 1:
            half = p.clamp(Graph.number(CLIP), Graph.number(1 - CLIP)).logit() / 2
            z = torch.stack([-half, half], 1)
        return probability(self.calibrator, z, z[:, 1] - z[:, 0], Graph)


def export_model(model, output):
    """Write a model as a file that needs no probnb, checked before it gets its name.

    Parameters
    ----------
    model : probnb.images.model.KeptModel
        One of images, from `probnb.images.model.load_model`.
    output : path-like
        ``NAME.onnx``, with the output ``probability``. A file that is there is replaced.

    Returns
    -------
    dict of str to str
        What the file says of itself, such as its input ``images`` and the lines of Python that
        ``prepare`` one, and with it ``difference``, the largest from `predict`, and ``checked``, of
        how many images.

    Raises
    ------
    ImportError
        If a package is missing.
    ValueError
        If `output` has another suffix, the model is not one of images, its calibrator cannot be
        exported, or a probability differs from `predict`'s by more than 1e-5. Only where a
        calibrator jumps, isotonic regression or bins, may it be that of log-odds 1e-5 beside.
    """
    path = check_output(output)
    if path.suffix.lower() != ".onnx":
        raise ValueError(f"output must be a file, NAME.onnx; got {str(output)!r}.")
    for name in ("onnx", "onnxscript", "onnxruntime"):
        if find_spec(name) is None:
            raise ImportError(f"export needs the package {name}: pip install 'probnb[export]'.")
    if model.size is None:
        raise ValueError("model must be one of images; this one does not say how to prepare them.")
    whole, facts = Whole(model).eval(), _facts(model)
    coarse = torch.rand(CHECKED, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    pixels = 255 * interpolate(coarse, (model.size, model.size), mode="bilinear")
    pixels = pixels.to(torch.uint8).numpy()
    example = torch.zeros(2, model.size, model.size, model.channels, dtype=torch.uint8)

    def write(file):
        facts.update(_check(model, _onnx(whole, example, file, facts), pixels))

    store.replace_file(path, write)
    return facts


def _facts(model):
    """What the file says of itself."""
    size, how = model.size, ASPECTS[model.aspect]
    resize = f"{how.__module__.removeprefix('PIL.')}.{how.__qualname__}"
    return {
        "made_by": f"probnb {__version__}, torch {torch.__version__}",
        "model": f"{len(model.members)} x {model.network.name} {dict(model.network.settings)}",
        "calibrator": getattr(model.calibrator, "label", "none"),
        "probability": "float64 (n,), of outcome 1",
        "images": f"uint8 (n, {size}, {size}, {model.channels}), RGB",
        "prepare": f"""
# 8 bits a channel, no transparency, no colour profile: `probnb predict` reads others as well
import numpy as np
from PIL import Image, ImageOps
image = Image.open(path)
image.draft("RGB", ({2 * size}, {2 * size}))
image = ImageOps.exif_transpose(image).convert("RGB")
images = np.asarray({resize}(image, ({size}, {size}), Image.Resampling.BICUBIC))[None]""",
    }


def _onnx(whole, example, path, facts):
    """Write the file; return what computes with it."""
    import onnxruntime

    names = {"input_names": ["images"], "output_names": ["probability"]}
    how = {"dynamic_shapes": ({0: "n"},), "dynamo": True, "verbose": False}
    program = torch.onnx.export(whole, (example,), **names, **how)
    program.model.metadata_props.update(facts)
    path.write_bytes(program.model_proto.SerializeToString())
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    return lambda images: session.run(["probability"], {"images": images})[0]


@torch.no_grad()
def _check(model, call, pixels):
    """Hold a file against `predict`."""
    images = np.ascontiguousarray(pixels.transpose(0, 2, 3, 1))
    p = np.concatenate([call(block) for block in np.array_split(images, -(-len(images) // 100))])
    logits = model.logits(pixels, "cpu")
    beside = TOLERANCE * (1 + np.abs(logits).max(axis=(0, 2)))[:, None] * [0, 1]
    low, expected, high = (model.probabilities(logits + step) for step in (-beside, 0, beside))
    off = np.abs(p - expected)
    beyond = np.maximum(np.minimum(low, high) - p, p - np.maximum(low, high))
    jump = (off > TOLERANCE) & (beyond < TOLERANCE)
    difference = off[~jump].max(initial=0)
    if not difference <= TOLERANCE:  # nor NaN
        told = f"one differs from predict by {difference:.1e}, more than {TOLERANCE:.0e}"
        raise ValueError(f"output: of {len(p):,} images {told}; nothing is written.")
    spread = f"probabilities {expected.min():.3f} to {expected.max():.3f}"
    jumps = f"; at {jump.sum()} rounding decides, where the calibrator jumps" * bool(jump.any())
    return {"difference": f"{difference:.1e}", "checked": f"{len(p):,} images, {spread}{jumps}"}
