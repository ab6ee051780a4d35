"""A model as one file: its size, its difference from `predict`, and its speed beside it."""

import time

import numpy as np
import pytest
import torch

from probnb.calibrators import PlattScaling
from probnb.data import ProbabilityData
from probnb.data.inputs import channel_scale
from probnb.images.export import export_model
from probnb.images.model import KeptModel
from probnb.training.models import network
from probnb_book.data.drawn_faces import drawn_faces

KINDS = {
    "ResNet-18, width 12": (network("resnet18", width=12, stem="small"), 1, 48),
    "three of them": (network("resnet18", width=12, stem="small"), 3, 48),
    "a head on lite0": (network("pretrained"), 1, 96),
}


@pytest.mark.parametrize("kind", KINDS)
def test_onnxruntime_against_predict(benchmark, kind, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    spec, members, size = KINDS[kind]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    faces, ages = drawn_faces(256, size)
    torch.manual_seed(0)
    weights = tuple(spec.build(faces).state_dict() for _ in range(members))
    model = KeptModel(spec, weights, 3, channel_scale(faces), size=size)
    model = model.calibrated(PlattScaling(), ProbabilityData(faces, np.greater(ages, 30)))
    facts = export_model(model, tmp_path / "m.onnx")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(tmp_path / "m.onnx", options)
    images = np.ascontiguousarray(faces.permute(0, 2, 3, 1).numpy())

    def seconds(call):
        spent = []
        for _ in range(5):
            began = time.perf_counter()
            call()
            spent.append(time.perf_counter() - began)
        return min(spent)

    model.predict(faces, "cpu")
    ours = {n: seconds(lambda n=n: model.predict(faces[:n], "cpu")) for n in (1, 256)}
    one = seconds(lambda: session.run(None, {"images": images[:1]}))
    benchmark.pedantic(session.run, (None, {"images": images}), rounds=5, warmup_rounds=1)
    benchmark.extra_info |= {
        "largest difference on 1,000 images": facts["difference"],
        "MB": round((tmp_path / "m.onnx").stat().st_size / 1e6, 2),
        "256 images, ms an image": round(1e3 * benchmark.stats.stats.min / 256, 2),
        "256 images, times predict": round(benchmark.stats.stats.min / ours[256], 2),
        "one image, ms": round(1e3 * one, 2),
        "one image, times predict": round(one / ours[1], 2),
    }
    print(f"\n{kind}: {benchmark.extra_info}")
    torch.set_num_threads(threads)
