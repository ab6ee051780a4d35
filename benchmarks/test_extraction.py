"""What the features of a pretrained network cost, an image: the page Results counts it in.

Writes ``results/derived/extraction.csv`` where there is none: delete it to measure anew, with one
thread (``OMP_NUM_THREADS=1``).
"""

import time
from pathlib import Path

import pandas as pd
import torch

from probnb.pretrained.backbone import Backbone
from probnb.pretrained.features import extract
from probnb.store import machine

IMAGES = 1024
DERIVED = Path(__file__).resolve().parents[1] / "results" / "derived"


def test_features_of_an_image(tmp_path):
    noise = torch.randint(256, (IMAGES, 3, 128, 128), dtype=torch.uint8)
    backbone, start = Backbone("lite0"), time.process_time()
    extract({"images": noise}, backbone, tmp_path, progress=False)
    each = (time.process_time() - start) / IMAGES
    line = {"images": IMAGES, "cpu_seconds_each": each, **machine()}
    print(f"\n{1000 * each:.1f} processor ms an image")
    if not (path := DERIVED / "extraction.csv").exists():
        pd.DataFrame([line]).to_csv(path, index=False)
