"""``python -m probnb``: what can be done from a shell."""

from __future__ import annotations

import argparse
import sys

from tqdm import tqdm

DESCRIPTION = """\
Predict the probability of outcome 1 for new images with a model that was kept by the chapter on
your own images (book/images.ipynb) or by probnb.experiment.model.save_model.

Writes CSV to standard output, one image a line: path, probability, and a reason in place of the
probability where an image cannot be read. Progress and a summary go to standard error.
"""
EPILOG = """\
examples:
  python -m probnb predict model/ new_images/ > predictions.csv
  python -m probnb predict model/ new.zip --output predictions.csv --device cpu

Images are JPEG, PNG, TIFF, WebP, BMP or GIF in a folder (subfolders included), a tar or zip, or an
array (.npy, .npz, .h5, .zarr); each is prepared as in training: size, aspect, scale.

The exit status is 0 if every image was read, 3 if some could not be, 1 if nothing could be done.
"""


def main(arguments=None):
    """Run a command; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m probnb", description="Probability estimation.")
    commands = parser.add_subparsers(dest="command", required=True)
    predict = commands.add_parser(
        "predict",
        help="probabilities for new images, from a model's folder",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    predict.add_argument("model", help="the model's folder, with its model.json")
    predict.add_argument("images", help="a folder, an archive, an array, or one image")
    predict.add_argument("--output", "-o", help="write here instead of to standard output")
    predict.add_argument(
        "--device", default="auto", choices=("auto", "cpu", "cuda", "mps"), help="where to compute"
    )
    predict.add_argument("--batch-size", type=int, default=256, help="images at a time")
    predict.add_argument("--key", help="which array of a file that holds several")
    given = parser.parse_args(arguments)
    if given.batch_size < 1:
        predict.error(f"argument --batch-size: must be at least 1; got {given.batch_size}")
    try:
        return _predict(given)
    except (ValueError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1


def _predict(given):
    import pandas as pd  # and torch: after the arguments

    from . import store
    from .experiment.model import load_model, predict_images

    rows = predict_images(
        load_model(given.model), given.images, given.device, given.batch_size, given.key
    )
    table = pd.DataFrame(tqdm(rows, unit="image"), columns=["path", "probability", "reason"])
    bad, text = int(table["probability"].isna().sum()), {"index": False, "lineterminator": "\n"}
    text |= {"encoding": "utf-8", "errors": "surrogateescape"}  # names of files need not be text
    if given.output:
        store.replace_file(given.output, lambda path: table.to_csv(path, **text))
    else:
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
        table.to_csv(sys.stdout, **text)
    print(f"{len(table) - bad:,} of {len(table):,} images predicted.", file=sys.stderr)
    return 0 if not bad else 1 if bad == len(table) else 3


if __name__ == "__main__":
    sys.exit(main())
