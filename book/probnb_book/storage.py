"""Stored results: one Parquet file a study, in which every row belongs to a run that has a record.

``results/STUDY.parquet`` holds the tables of a study one under the other. Column ``run`` names the
run that a row belongs to, ``table`` the table; all others are those of all tables together, empty
where a table lacks them. Records of the runs (settings, data, commit, machine) are JSON in the
file's metadata. To look at one by hand::

    wanted = [("run", "==", "linear-utkface-cpu-seed0"), ("table", "==", "epochs")]
    pd.read_parquet("results/synthetic.parquet", filters=wanted).dropna(axis=1, how="all")

``python -m probnb_book keep PATH ...`` adds finished work of elsewhere: a run's folder, as
`probnb.experiment.results.write_results` leaves it in ``runs/STUDY``; a table
``STUDY/NAME.parquet`` with its record ``STUDY/NAME.json`` beside it; or a whole ``STUDY.parquet``.
A study's only table has the study's name.
"""

import argparse
import json
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from probnb import store
from probnb.experiment import results
from probnb.experiment.profiles import PROFILES
from probnb.paths import find_path
from probnb.tables import naming

ROWS = 2048
"""Of a row group at least; none cuts a run, so that to read a run is to read one group a table."""

_OPENED = {}


def records(folder, study):
    """Return the records of a study's runs by name, empty where nothing is stored."""
    return {run: of["record"] for run, of in _known(Path(folder, f"{study}.parquet")).items()}


def read(folder, study, table, run=None):
    """Read a table of a study.

    Parameters
    ----------
    folder : path-like
        Folder of results.
    study : str
        Its file, without ``.parquet``.
    table : str
        Name of the table.
    run : str, optional
        The run; by default all that have such a table, and a column ``run`` says which.

    Returns
    -------
    DataFrame
        The rows as they were kept, in the columns and types that they had; empty where nothing is
        stored.

    Raises
    ------
    FileNotFoundError
        If a run is asked for that has no such table.
    """
    path = Path(folder, f"{study}.parquet")
    if run is None and not path.exists():
        return pd.DataFrame()
    return _read(path, table, run).to_pandas()


def _read(path, table, run=None):
    """The same of a file that is there, as Arrow's."""
    with open(path, "rb") as file:
        footer, known = _metadata(file)
        known = {name: of["tables"][table] for name, of in known.items() if table in of["tables"]}
        if run is not None and run not in known:
            raise FileNotFoundError(f"run must be one of {path} with {table}; got {run!r}.")
        wanted = known.values() if run is None else [known[run]]
        types = _types(of["columns"] for of in wanted)
        groups = sorted({of["group"] for of in wanted})
        source = pq.ParquetFile(file, metadata=footer)
        found = source.read_row_groups(groups, columns=["run", *types])
    if run is not None:
        found = found.filter(pc.field("run") == run).drop_columns("run")
    return _cast(found, types)


def _stored(path):
    """Records and tables of the runs of a file."""
    return {
        run: (of["record"], {name: _read(path, name, run) for name in of["tables"]})
        for run, of in _known(path).items()
    }


def _known(path):
    """What a file says of its runs; nothing where there is none."""
    if not path.exists():
        return {}
    with open(path, "rb") as file:
        return _metadata(file)[1]


def keep(folder, study, runs):
    """Add runs to a study, in place of those of the same names; all others stay as they are.

    Parameters
    ----------
    folder : path-like
        Folder of results.
    study : str
        Its file, without ``.parquet``.
    runs : dict of str to (dict, dict of str to DataFrame)
        By name of a run its record and its tables.

    Returns
    -------
    pathlib.Path
        The file, written whole or not at all; of several writers one waits for the other.
    """
    path = Path(folder, f"{study}.parquet")
    with store.locked(path):
        every = _stored(path)
        for run, (record, tables) in runs.items():
            every[run] = record, {name: _arrow(table) for name, table in tables.items()}
        store.replace_file(path, lambda temporary: _write(temporary, every))
    return path


def _metadata(file):
    """The footer of an open file, and what it says of the runs; read once."""
    state = os.fstat(file.fileno())
    key = state.st_dev, state.st_ino, state.st_mtime_ns
    if key not in _OPENED:
        footer = pq.read_metadata(file)
        _OPENED[key] = footer, json.loads(footer.metadata[b"runs"])
    return _OPENED[key]


def _types(columns):
    """The type of each column of several tables: of many types text if one is text, or float64."""
    kinds = {}
    for table in columns:
        for name, kind in table.items():
            kinds.setdefault(name, set()).add(kind)
    text = str(pa.large_string())
    mixed = {k: {text if text in of else "double"} for k, of in kinds.items() if len(of) > 1}
    return {name: pa.type_for_alias(*of) for name, of in {**kinds, **mixed}.items()}


def _cast(part, types):
    """A table whose columns have the given types."""
    for place, name in enumerate(part.column_names):
        if name in types:  # of a column without a value, whatever others hold there, none is kept
            empty = types[name] == pa.null()
            column = pa.nulls(len(part)) if empty else part[name].cast(types[name])
            part = part.set_column(place, name, column)
    return part


def _arrow(table):
    made = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata()
    if taken := {"run", "table"} & {*made.column_names}:
        raise ValueError(f"table must have no column run or table; got {', '.join(taken)}.")
    return made


def _write(path, every):
    """Write records and tables of all runs, a table's under each other."""
    columns = {
        (name, run): {field.name: str(field.type) for field in part.schema}
        for run, (_, tables) in every.items()
        for name, part in tables.items()
    }
    text = pa.large_string()
    types = {"run": text, "table": text, **_types(columns.values())}
    about = {run: {"record": record, "tables": {}} for run, (record, _) in every.items()}
    numbers = [name for name, kind in types.items() if pa.types.is_floating(kind)]
    how = {"use_dictionary": [name for name in types if name not in numbers]}
    how |= {"use_byte_stream_split": numbers, "compression": "zstd"}
    with pq.ParquetWriter(path, schema := pa.schema(types.items()), **how) as writer:
        group = 0
        for table in dict.fromkeys(name for name, _ in columns):
            waiting, left = [], [run for name, run in columns if name == table]
            while left:
                run = left.pop(0)
                part = _cast(every[run][1][table], types)
                for name, value in {"run": run, "table": table}.items():
                    part = part.append_column(name, pa.repeat(pa.scalar(value, text), len(part)))
                waiting.append(part)
                about[run]["tables"][table] = {"columns": columns[table, run], "group": group}
                if sum(map(len, waiting)) >= ROWS or not left:
                    whole = [schema.empty_table(), *waiting]  # in whose columns the others are put
                    writer.write_table(pa.concat_tables(whole, promote_options="default"))
                    group, waiting = group + 1, []
        writer.add_key_value_metadata({"runs": json.dumps(about, default=store.plain)})


def find_runs(folders, study, **wanted):
    """Find the runs of a chapter, stored ones and those of a reader's own, best evidence first.

    Parameters
    ----------
    folders : iterable of path-like
        Folders of results, with ``{study}.parquet`` or folders ``{study}/*``; need not exist.
    study : str
        Such as ``"synthetic"``.
    **wanted
        What a run's record must say, for example ``task="linear"``.

    Returns
    -------
    list of probnb.experiment.results.StoredRun
        Photographs before drawn faces, larger profiles before smaller ones, not altered before
        altered, by seed, earlier folders before later ones. A run of a study's file has the folder
        ``{study}/{run}`` that it would have alone.
    """
    found = []
    for folder in folders:
        here = Path(folder, study)
        known = {here / run: record for run, record in sorted(records(folder, study).items())}
        for path in sorted(here.glob("*/run.json")):
            known[path.parent] = json.loads(path.read_text())
        for directory, record in known.items():
            record = record | {"altered": bool(record.get("altered") or record.get("mirror"))}
            if all(record.get(key) == value for key, value in wanted.items()):
                found.append(results.StoredRun(directory, record))
    order = {profile: -place for place, profile in enumerate(PROFILES)}

    def rank(run):
        r = run.record
        place = order.get(r["profile"], 1)
        return (r["data"] in ("drawn", "simulated"), place, r["altered"], r["seed"])

    return sorted(found, key=rank)


def read_results(run):
    """Read the `probnb.experiment.results.Results` of a run that `find_runs` has found."""
    directory = Path(getattr(run, "directory", run))
    if directory.is_dir():
        return results.read_results(directory)
    folder, study = directory.parent.parent, directory.parent.name
    tables = {name: read(folder, study, name, directory.name) for name in results.TABLES}
    return results.Results(**tables)


def finished(path):
    """Read finished work of elsewhere.

    Parameters
    ----------
    path : path-like
        A run's folder; a table ``STUDY/NAME.parquet`` with its record ``STUDY/NAME.json``; or a
        study's file from another folder of results.

    Returns
    -------
    study : str
        The study.
    runs : dict of str to (dict, dict of str to DataFrame)
        As `keep` takes them.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or no record.
    ValueError
        If it cannot be read.
    """
    path = find_path(path, "path").resolve()
    study, single = path.parent.name, path.suffix == ".parquet"
    with naming(path):
        whole = single and b"runs" in (pq.read_metadata(path).metadata or {})
    if whole:
        return path.stem, {
            run: (record, {name: part.to_pandas() for name, part in tables.items()})
            for run, (record, tables) in _stored(path).items()
        }
    record = path.with_suffix(".json") if single else path / "run.json"
    if not record.exists():
        raise FileNotFoundError(f"path must have a record; {path} has none at {record}.")
    files = {study: path} if single else {file.stem: file for file in path.glob("*.parquet")}
    tables, name = {}, path.stem if single else path.name
    for part, file in sorted(files.items()):
        with naming(file):
            tables[part] = pd.read_parquet(file)
    with naming(record):
        return study, {name: (json.loads(record.read_text()), tables)}


def main(arguments=None):
    """Add finished work to stored results."""
    parser = argparse.ArgumentParser(prog="python -m probnb_book keep", description=__doc__)
    parser.add_argument("paths", nargs="+", help="folders, tables with a record beside, or studies")
    parser.add_argument("--results", default="results", help="what is kept with the book")
    given = parser.parse_args(arguments)
    for path in given.paths:
        study, runs = finished(path)
        print(keep(given.results, study, runs), *runs)
