"""What the features of a pretrained network cost, an image: the page Results counts it in.

``PROBNB_KEEP=1 OMP_NUM_THREADS=1 python -m pytest benchmarks/test_extraction.py`` keeps it as the
derived table ``extraction``.
"""

import os
import time
from pathlib import Path

import pandas as pd
import torch

from probnb.pretrained.backbone import Backbone
from probnb.pretrained.features import extract
from probnb_book.authors import keep

IMAGES = 1024
RESULTS = Path(__file__).resolve().parents[1] / "results"


def test_features_of_an_image(tmp_path):
    noise = torch.randint(256, (IMAGES, 3, 128, 128), dtype=torch.uint8)
    backbone, start = Backbone("lite0"), time.process_time()
    extract({"images": noise}, backbone, tmp_path, progress=False)
    each = (time.process_time() - start) / IMAGES
    print(f"\n{1000 * each:.1f} processor ms an image")
    if os.environ.get("PROBNB_KEEP"):
        table = pd.DataFrame([{"images": IMAGES, "cpu_seconds_each": each}])
        keep(table, RESULTS, "extraction", "python -m pytest benchmarks/test_extraction.py")
