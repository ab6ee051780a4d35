"""``python -m probnb``: what can be done from a shell."""

import csv
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from inspect import getdoc
from itertools import chain
from pathlib import Path

from tqdm import tqdm

from .paths import check_output
from .text import plain
from .validation import check_choice


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
    for stream in sys.stdout, sys.stderr:  # which may have no letter for a name
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        return given.run(given)
    except BrokenPipeError:  # whoever reads the output has enough of it, as head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, ImportError) as error:
        _say(f"{parser.prog}: {error}", file=sys.stderr)
        return 1


def _say(*lines, file=None):
    """Print lines, in which a file may have a word."""
    print(*("\n".join(map(plain, line.split("\n"))) for line in lines), sep="\n", file=file)


def _predict(given):
    """Predict the probability of outcome 1 for new images, from a model's folder.

    The model was kept by the chapter on your own images (book/images.ipynb) or by
    probnb.images.model.save_model.

    Writes CSV to standard output, one image a line: path, probability, and a reason in place of the
    probability where an image cannot be read; of an ensemble what its lowest_member and its
    highest_member say; and unlike_training, 1 for an image that is further from the training images
    than 99 % of validation images are. Progress and a summary go to standard error.

    Two examples:
      python -m probnb predict model/ new_images/ > predictions.csv
      python -m probnb predict model/ new.zip --output predictions.csv --device cpu

    Images are JPEG, PNG, TIFF, WebP, BMP or GIF in a folder (subfolders included), a tar or zip, or
    an array (.npy, .npz, .h5, .zarr); each is prepared as in training: size, aspect, scale.

    The exit status is 0 if every image was read, 3 if some could not be or no rate could be
    estimated, so that the probabilities are for the old one, 1 if nothing could be done.
    """
    from .images.model import load_model
    from .images.predict import UNLIKE, at_base_rate, image_entries, predict_entries
    from .report.keep import FEWEST, as_rate

    if given.batch_size < 1:
        given.error(f"argument --batch-size: must be at least 1; got {given.batch_size}")
    rate = given.rate
    rate = rate if rate in (None, "estimate") else as_rate(rate, "the word estimate")
    output = _output(given.output, given.images, *Path(given.model).glob("*"))
    model = load_model(given.model)
    total, entries = image_entries(given.images, given.key)
    if rate == "estimate" and total < FEWEST:
        raise ValueError(f"rate must be estimated from {FEWEST} images at least; got {total}.")
    rows = predict_entries(model, entries, given.device, batch_size=given.batch_size)
    first = next(rows)  # nothing is written where nothing can be done
    rows = tqdm(chain([first], rows), total=total, unit="image", disable=given.quiet)
    bad, unlike, moved = [], [], True
    if rate is not None:
        rows, text, moved = at_base_rate(model, rows, rate)
        print(text, file=sys.stderr)

    def write(file):
        writer = csv.DictWriter(file, [*first], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            bad.extend([row["path"]] * (row["probability"] is None))
            unlike.append(row.get(UNLIKE) or 0)

    _write(output, write)
    print(f"{total - len(bad):,} of {total:,} images predicted.", file=sys.stderr)
    told = "None is flagged as unlike the training images, of which the model has no summary."
    if UNLIKE in first:
        told = f"{sum(unlike):,} are unlike the training images ({UNLIKE}); by chance 1 in 100 is."
    print(told, file=sys.stderr)
    return 1 if len(bad) == total else 0 if moved and not bad else 3


def _output(output, *read, name="output", engine=None):
    """Return where to write, None for standard output (also -); refuse a file that is read."""
    if output in (None, "-"):
        return None
    path = check_output(output, name)
    if engine:  # of several files
        from .scale.files import find_files

        read = [*find_files(read[0])[0], *read[1:]]
    if path.resolve() in (Path(one).expanduser().resolve() for one in read if one):
        raise ValueError(f"{name} must be another file than those read; got {output!r}.")
    if name == "output":
        check_choice(path.suffix.lower(), (".csv", ".txt", ""), "output: the ending")
    return path


def _write(output, write):
    """Call ``write(file)`` with a file that is there once whole, or with standard output."""
    from . import store

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
        sys.stdout.flush()  # here, where a pipe that was closed is told


def _calibrate(given):
    """Fit a map to predictions whose outcomes are known, and keep it as JSON.

    VALIDATION (CSV, Parquet) has predictions of rows that the model has not seen, with their
    outcomes; columns called weight, cluster, id, group and split are understood as in the report.
    By default the map is the one that gains on rows that it was not fitted to, if one is told to;
    below 500 rows none is chosen. --rate is for another share of outcome 1 than here: after
    under-sampling or class weights, in another place or season; it is known, or estimated from a
    file of new predictions without outcomes, and right if nothing else has changed.

    Two examples:
      python -m probnb calibrate validation.csv map.json --outcome died
      python -m probnb calibrate validation.csv map.json --map platt --rate 0.03

    The exit status is 0 if a map was written, 3 if none is told to gain, 1 if nothing could be
    done.
    """
    from .calibrators import CALIBRATORS
    from .report import read_predictions
    from .report.judge import DOUBT
    from .report.keep import fit_map, read_rate, refuse_other_map, save_map
    from .report.tell import gain_cells

    if given.map is not None:
        check_choice(given.map, CALIBRATORS, "map")
    check_choice(Path(given.file).suffix, (".json",), "map: the ending")
    path = _output(given.file, given.validation, given.rate, name="map", engine=given.engine)
    refuse_other_map(path)
    rate, new = read_rate(given.rate)
    names = "columns engine memory y scale part"
    table = read_predictions(given.validation, **{n: getattr(given, n) for n in names.split()})
    kept, gains, why = fit_map(table, given.map, rate, new)
    _say(*table.notes, *(() if new is None else new.notes))
    _say(gain_cells(gains).replace("\n", " ", regex=True).to_string())
    if kept is None:
        print(f"No map is written ({why}); --map NAME writes one all the same.")
        return 3
    save_map(path, kept)
    what = getattr(kept.calibrator, "label", f"no map ({why}), another rate alone,")
    _say(f"{path}: {what} for column {kept.column}.")
    if kept.rates:
        old, rate = (f"{rate:.4g}" for rate in kept.rates)
        ends = kept.fitted.get("estimate")
        ends = f" [{ends['low']:.4g}, {ends['high']:.4g}]" if ends else ""
        print(f"Base rate: {rate}{ends} in place of {old}.")
        if kept.fitted.get("alike", 1) < DOUBT:
            print("More has changed than the rate: such rows would be predicted otherwise.")
    return 0


def _apply(given):
    """Calibrate new predictions by a map that calibrate wrote.

    Writes CSV to standard output: the rows as they are, in their order, with a column
    NAME_calibrated, the probability of outcome 1. A map is refused on another scale or another
    column than it was fitted to. Files beyond memory, folders and globs go through an engine. What
    was read, and what was left out, goes to standard error.

    Two examples:
      python -m probnb apply map.json new.csv > calibrated.csv
      python -m probnb apply map.json "new/*.parquet" --engine duckdb -o calibrated.csv
    """
    from .report.keep import apply_map, load_map

    output = _output(given.output, given.new, given.map, engine=given.engine)
    blocks = apply_map(load_map(given.map), given.new, given.engine, given.memory)
    first = next(blocks)  # nothing is written where nothing can be done
    how = {"index": False, "lineterminator": "\n", "decimal": first.attrs["decimal"]}
    _say(*first.attrs["notes"], file=sys.stderr)

    def write(file):
        for k, block in enumerate(chain([first], blocks)):
            block.to_csv(file, header=not k, **how)

    _write(output, write)
    return 0


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
    figure = _output(given.figure, given.outcomes, given.state, name="figure")
    names = "outcomes prediction outcome alpha model state id"
    now, table, text = watch_file(**{name: getattr(given, name) for name in names.split()})
    _say(text)
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

    facts = export_model(load_model(given.model), given.output)
    print(*(f"{name}: {value}" for name, value in facts.items()), sep="\n")
    return 0


MODEL = ("model", "the model's folder, with its model.json", {})
ENGINE = (
    ("--engine", "for files beyond memory: duckdb, or a Spark's master", {}),
    ("--memory", "what an engine may take", {"default": "2GB"}),
)
DEVICES = {"default": "auto", "choices": ("auto", "cpu", "cuda", "mps")}
COMMANDS = {
    _predict: (
        MODEL,
        ("--key", "which array of a file that holds several", {}),
        ("images", "a folder, an archive, an array, or one image", {}),
        ("--output -o", "write here instead of to standard output", {}),
        ("--device", "where to compute", DEVICES),
        ("--batch-size", "images at a time", {"type": int, "default": 256}),
        ("--rate", "another share of outcome 1: a number, or estimate (from these images)", {}),
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
    _calibrate: (
        ("validation", "a table of predictions with their outcomes", {}),
        ("file", "where to keep the map: NAME.json", {"metavar": "map.json"}),
        ("--map", "this map, whatever it gains: platt, beta, isotonic, ...", {}),
        ("--rate", "another share of outcome 1: a number, or a file of new predictions", {}),
        ("--prediction --columns", "column of the predictions", {"dest": "columns"}),
        ("--outcome --y", "column of the outcomes", {"dest": "y", "default": "y"}),
        ("--scale", "probability or logit, if the range misleads", {"default": "auto"}),
        ("--part", "rows of this part, if a column split tells them", {"default": "val"}),
        *ENGINE,
    ),
    _apply: (
        ("map", "the map's file, NAME.json", {}),
        ("new", "a table with the column that the map was fitted to", {}),
        ("--output -o", "write here instead of to standard output", {}),
        *ENGINE,
    ),
    _export: (MODEL, ("output", "the file to write: NAME.onnx", {})),
}
"""What each command takes; its name and its help are its function's."""

if __name__ == "__main__":
    sys.exit(main())
