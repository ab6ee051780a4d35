"""``python -m probnb``: what can be done from a shell."""

from __future__ import annotations

import argparse
import csv
import sys
from itertools import chain
from pathlib import Path

from tqdm import tqdm

from .validation import check_choice

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

EXPORT = """\
Write a kept model as one file for programs without probnb, from pixels to the output "probability".
It gets its name once it has given what predict gives, to 1e-5. What it wants and how to prepare it
is printed, and stands in its metadata. ONNX needs: pip install 'probnb[export]'
"""

WATCH = """\
Say whether probabilities can still be believed, by an anytime-valid test: one may look after every
outcome, and the probability that there is ever a false alarm is at most --alpha.

OUTCOMES (CSV, Parquet) has a row for each prediction whose outcome is known, oldest first. Look
again when rows were added at its end: what was seen is kept, and a past that changed is refused.
Rows that one event decides are one bet: keep one of them. There are no weights.

  python -m probnb watch model/ outcomes.csv --figure watch.svg

The exit status is 0 while they can be believed, 4 from the alarm on, 1 if nothing could be done.
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
    predict.add_argument("--quiet", action="store_true", help="no progress bar")
    watch = commands.add_parser(
        "watch",
        help="whether probabilities can still be believed, as outcomes arrive",
        description=WATCH,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    watch.add_argument("model", nargs="?", help="the model's folder, which then must not change")
    watch.add_argument("outcomes", help="a table of predictions with their outcomes")
    watch.add_argument("--prediction", default="probability", help="column of the probabilities")
    watch.add_argument("--outcome", default="y", help="column of the outcomes")
    watch.add_argument("--alpha", type=float, default=0.05, help="probability of a false alarm")
    watch.add_argument("--state", help="keeps what was seen (OUTCOMES.watch.json)")
    watch.add_argument("--figure", help="draw the evidence over time into this file (.svg, .png)")
    _export_command(commands)
    given = parser.parse_args(arguments)
    if given.command == "predict" and given.batch_size < 1:
        predict.error(f"argument --batch-size: must be at least 1; got {given.batch_size}")
    try:
        return {"predict": _predict, "export": _export, "watch": _watch}[given.command](given)
    except (ValueError, OSError, ImportError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1


def _export_command(commands):
    look = {"description": EXPORT, "formatter_class": argparse.RawDescriptionHelpFormatter}
    export = commands.add_parser("export", help="one ONNX file of a model's folder", **look)
    export.add_argument("model", help="the model's folder, with its model.json")
    export.add_argument("output", help="the file to write: NAME.onnx, or NAME.pt2 for torch.export")
    export.add_argument("--images", help="check on these instead of on drawn faces")
    export.add_argument("--key", help="which array of a file that holds several")


def _export(given):
    from .experiment.export import export_model
    from .experiment.model import load_model

    facts = export_model(load_model(given.model), given.output, given.images, given.key)
    print(*(f"{name}: {value}" for name, value in facts.items()), sep="\n")
    return 0


def _predict(given):
    from . import store  # torch: after the arguments
    from .experiment.model import image_entries, load_model, predict_entries

    model = load_model(given.model)
    total, entries = image_entries(given.images, given.key)
    rows = predict_entries(model, entries, given.device, batch_size=given.batch_size)
    first = next(rows)  # nothing is written where nothing can be done
    rows = tqdm(chain([first], rows), total=total, unit="image", disable=given.quiet)
    bad = []

    def write(file):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("path", "probability", "reason"))
        for name, p, reason in rows:
            writer.writerow((name, "" if p is None else repr(p), reason or ""))
            bad.extend([name] * (p is None))

    if given.output:
        store.replace_file(given.output, lambda path: _write(path, write))
    else:
        if hasattr(sys.stdout, "reconfigure"):  # names of files need not be text
            sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
        write(sys.stdout)
    print(f"{total - len(bad):,} of {total:,} images predicted.", file=sys.stderr)
    return 0 if not bad else 1 if len(bad) == total else 3


def _write(path, write):
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        write(file)


def _watch(given):
    from .report.watch import watch_file

    kind = Path(given.figure or "x.svg").suffix[1:]
    check_choice(kind, ("svg", "png", "pdf"), "figure: the ending")
    names = "outcomes prediction outcome alpha model state"
    now, table, text = watch_file(**{name: getattr(given, name) for name in names.split()})
    print(text)
    if given.figure:
        from . import plots, store

        plots.use_style()
        figure = plots.watch_over_time(table, given.alpha)[0].figure
        store.replace_file(given.figure, lambda path: figure.savefig(path, format=kind))
    return 4 if now.alarm else 0


if __name__ == "__main__":
    sys.exit(main())
