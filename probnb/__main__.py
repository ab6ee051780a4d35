"""``python -m probnb``: what can be done from a shell."""

from __future__ import annotations

import csv
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from inspect import getdoc
from itertools import chain
from pathlib import Path

from tqdm import tqdm

from .validation import check_choice, check_output


def main(arguments=None):
    """Run a command; return the exit status."""
    parser = ArgumentParser(prog="python -m probnb", description="Probability estimation.")
    commands = parser.add_subparsers(dest="command", required=True)
    look = {"formatter_class": RawDescriptionHelpFormatter}
    for run, options in COMMANDS.items():  # examples and what follows stand after the options
        text, examples, rest = getdoc(run).partition("Two examples:")
        look |= {"help": text.splitlines()[0], "description": text, "epilog": examples + rest}
        command = commands.add_parser(run.__name__[1:], **look)
        command.set_defaults(run=run, error=command.error)
        for names, about, settings in options:
            command.add_argument(*names.split(), help=about, **settings)
    given = parser.parse_args(arguments)
    try:
        return given.run(given)
    except (ValueError, OSError, ImportError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1


def _predict(given):
    """Predict the probability of outcome 1 for new images, from a model's folder.

    The model was kept by the chapter on your own images (book/images.ipynb) or by
    probnb.images.model.save_model.

    Writes CSV to standard output, one image a line: path, probability, and a reason in place of the
    probability where an image cannot be read. Progress and a summary go to standard error.

    Two examples:
      python -m probnb predict model/ new_images/ > predictions.csv
      python -m probnb predict model/ new.zip --output predictions.csv --device cpu

    Images are JPEG, PNG, TIFF, WebP, BMP or GIF in a folder (subfolders included), a tar or zip, or
    an array (.npy, .npz, .h5, .zarr); each is prepared as in training: size, aspect, scale.

    The exit status is 0 if every image was read, 3 if some could not be, 1 if nothing could be
    done.
    """
    from . import store  # torch: after the arguments
    from .images.model import load_model
    from .images.predict import image_entries, predict_entries

    if given.batch_size < 1:
        given.error(f"argument --batch-size: must be at least 1; got {given.batch_size}")
    output = given.output and check_output(given.output)
    if output and output.resolve() == Path(given.images).resolve():
        raise ValueError(f"output must be another file than the images; got {given.output!r}.")
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

    names = {"encoding": "utf-8", "errors": "surrogateescape"}  # of files need not be text

    def write_path(path):
        with path.open("w", newline="", **names) as file:
            write(file)

    if output:
        store.replace_file(output, write_path)
    else:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(**names)
        write(sys.stdout)
    print(f"{total - len(bad):,} of {total:,} images predicted.", file=sys.stderr)
    return 0 if not bad else 1 if len(bad) == total else 3


def _watch(given):
    """Say whether probabilities can still be believed, as outcomes arrive.

    It is an anytime-valid test: one may look after every outcome, and the probability that there
    is ever a false alarm is at most --alpha.

    OUTCOMES (CSV, Parquet) has a row for each prediction whose outcome is known, oldest first.
    Look again when rows were added at its end: what was seen is kept, and a past that changed is
    refused. A row whose id (or path) stood above is left out; of other rows that one event decides
    keep one. There are no weights.

      python -m probnb watch model/ outcomes.csv --figure watch.svg

    The exit status is 0 while they can be believed, 4 from the alarm on, 1 if nothing could be
    done.
    """
    from .watch.outcomes import watch_file

    kind = Path(given.figure or "x.svg").suffix[1:]
    check_choice(kind, ("svg", "png", "pdf"), "figure: the ending")
    figure = given.figure and check_output(given.figure, "figure")
    names = "outcomes prediction outcome alpha model state id"
    now, table, text = watch_file(**{name: getattr(given, name) for name in names.split()})
    print(text)
    if figure:
        from . import plots, store

        plots.use_style()
        drawn = plots.watch_over_time(table, given.alpha)[0].figure
        store.replace_file(figure, lambda path: drawn.savefig(path, format=kind))
    return 4 if now.alarm else 0


def _export(given):
    """Write a model's folder as one ONNX file for programs without probnb.

    It leads from pixels to the output "probability", and gets its name once it has given what
    predict gives, to 1e-5. What it wants and how to prepare it is printed, and stands in its
    metadata. It needs: pip install 'probnb[export]'
    """
    from .images.export import export_model
    from .images.model import load_model

    facts = export_model(load_model(given.model), given.output, given.images, given.key)
    print(*(f"{name}: {value}" for name, value in facts.items()), sep="\n")
    return 0


MODEL = ("model", "the model's folder, with its model.json", {})
KEY = ("--key", "which array of a file that holds several", {})
DEVICES = {"default": "auto", "choices": ("auto", "cpu", "cuda", "mps")}
COMMANDS = {
    _predict: (
        MODEL,
        KEY,
        ("images", "a folder, an archive, an array, or one image", {}),
        ("--output -o", "write here instead of to standard output", {}),
        ("--device", "where to compute", DEVICES),
        ("--batch-size", "images at a time", {"type": int, "default": 256}),
        ("--quiet", "no progress bar", {"action": "store_true"}),
    ),
    _watch: (
        ("model", "the model's folder, which then must not change", {"nargs": "?"}),
        ("outcomes", "a table of predictions with their outcomes", {}),
        ("--prediction", "column of the probabilities", {"default": "probability"}),
        ("--outcome", "column of the outcomes", {"default": "y"}),
        ("--alpha", "probability of a false alarm", {"type": float, "default": 0.05}),
        ("--id", "column of the rows' names (id, or path)", {}),
        ("--state", "keeps what was seen (OUTCOMES.watch.json)", {}),
        ("--figure", "draw the evidence over time into this file (.svg, .png)", {}),
    ),
    _export: (
        MODEL,
        KEY,
        ("output", "the file to write: NAME.onnx", {}),
        ("--images", "check on these instead of on patches of colour", {}),
    ),
}
"""What each command takes; its name and its help are its function's."""

if __name__ == "__main__":
    sys.exit(main())
