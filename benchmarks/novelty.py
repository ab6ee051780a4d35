"""Which rule flags what is unlike the training images: rates on faces and on what is none.

``python benchmarks/novelty.py UTKFACE FERPLUS CIFAR10 FOLDER`` holds the rule of
`probnb.images.predict` against others on the features of ``lite0`` at 128 pixels, which
``benchmarks/features.py`` has left in FOLDER; ``FOLDER/flags.json`` has what was flagged beyond the
same rank of the validation faces.
"""

import io
import json
import sys
from pathlib import Path

import numpy as np
import torch
from features import BATCH, FACES, PAPER_SIZES, faces, session
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from probnb.images.files import list_files, read_files
from probnb.images.predict import distances, summarize

EACH, SIDE = 128, 200
LAYERS = {"stages": slice(1568), "last": slice(1568, None)}


def strange(held, ferplus, cifar):
    """Return pictures by what they are: faces that were changed, other faces, and no faces."""
    rng = np.random.default_rng(1)
    base = [np.asarray(image) for image in held]
    votes = np.load(ferplus)["images"]
    others = [
        Image.fromarray(votes[k]) for k in sorted(rng.choice(len(votes), EACH, replace=False))
    ]
    listing = list_files(cifar)
    places = [
        v for k, v in sorted(listing.files.items()) if "/test/" in k and int(Path(k).stem) < 13
    ]
    animals = [Image.open(io.BytesIO(content)) for _, content in read_files(cifar, places)]

    def shuffled(a):
        parts = [b for row in np.split(a, 4) for b in np.split(row, 4, axis=1)]
        order = rng.permutation(16).reshape(4, 4)
        return np.concatenate([np.concatenate([parts[k] for k in row], axis=1) for row in order])

    def covered(a):
        top, left = rng.integers(0, SIDE // 2, 2)
        a = a.copy()
        a[top : top + SIDE // 2, left : left + SIDE // 2] = 0
        return a

    shape = (EACH, SIDE, SIDE, 3)
    found = {
        "uniform": rng.integers(0, 256, shape, dtype=np.uint8),
        "gaussian": (20 * rng.standard_normal(shape) + 127).clip(0, 255).astype(np.uint8),
        "one grey": [np.full(shape[1:], v, np.uint8) for v in range(0, 256, 16)],
        "shuffled": map(shuffled, base),
        "covered": map(covered, base),
        "lower half": (a[SIDE // 2 :] for a in base),
        "eyes": (a[50:100, 40:160] for a in base),
        "on its side": map(np.rot90, base),
        "upside down": (a[::-1] for a in base),
        "inverted": (255 - a for a in base),
        "held out": base,
    }
    pictures = {k: [Image.fromarray(np.ascontiguousarray(a)) for a in v] for k, v in found.items()}
    whole = pictures["held out"]
    pictures["without colour"] = [image.convert("L") for image in whole]
    pictures["blurred"] = [image.resize((12, 12)).resize((SIDE, SIDE)) for image in whole]
    return pictures | {"FER+": others, "CIFAR-10": animals}


def see(net, pictures):
    """Return the features of pictures at 128 pixels."""
    sized = [p.convert("RGB").resize((128, 128), Image.Resampling.BICUBIC) for p in pictures]
    x = (
        np.stack([np.asarray(p) for p in sized]).transpose(0, 3, 1, 2).astype("f4") - 127.5
    ) / 127.5
    parts = [net.run(None, {"x": x[k : k + BATCH]})[0] for k in range(0, len(x), BATCH)]
    return np.concatenate(parts).astype(np.float16).astype(np.float32)


def rules(train, val):
    """Return functions that say how far features of variance 1 are, by name."""
    summary = summarize(torch.from_numpy(train), torch.from_numpy(val))
    components = PCA(64, whiten=True, svd_solver="randomized", random_state=0).fit(train)
    neighbours = NearestNeighbors(n_neighbors=10).fit(train)
    return {
        "Mahalanobis": lambda x: distances(summary, torch.from_numpy(x)),
        "64 components": lambda x: (components.transform(x) ** 2).sum(1),
        "10 neighbours": lambda x: neighbours.kneighbors(x)[0][:, -1],
        "variances alone": lambda x: (x**2).sum(1),
    }


def main(data, ferplus, cifar, folder):
    """Measure."""
    folder, contents, rows = Path(folder), faces(data)[1], []
    seen = [np.load(path) for path in sorted(folder.glob("lite0-128-own-*.npz"))]
    seen = np.concatenate([held["features"] for held in seen])[:FACES].astype(np.float32)
    cuts = np.round(len(seen) * np.cumsum(PAPER_SIZES[:2]) / sum(PAPER_SIZES)).astype(int)
    train, val, test = np.split(seen[np.random.default_rng(0).permutation(len(seen))], cuts)
    held = [Image.open(io.BytesIO(content)).convert("RGB") for content in contents[-EACH:]]
    net = session(folder, "lite0")
    sets = {k: see(net, v) for k, v in strange(held, ferplus, cifar).items()} | {"test": test}
    for layers, columns in LAYERS.items():
        mean, scale = train[:, columns].mean(0), train[:, columns].std(0).clip(1e-4)
        own = {k: (x[:, columns] - mean) / scale for k, x in sets.items()}
        fitted, known = ((part[:, columns] - mean) / scale for part in (train, val))
        for rule, far in rules(fitted, known).items():
            limit = np.sort(far(known))[int(np.ceil(0.99 * (len(known) + 1))) - 1]
            for name, x in own.items():
                facts = {"layers": layers, "rule": rule, "pictures": name, "rows": len(x)}
                rows.append(facts | {"flagged": float((far(x) > limit).mean())})
    (folder / "flags.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
