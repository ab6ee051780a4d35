"""Stored results: every row belongs to a run, every run has a record, and nothing else moves."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from probnb import store
from probnb_book import storage

from .pages import RESULTS

STUDIES = sorted(path.stem for path in RESULTS.glob("*.parquet"))


def made(seed, n=5):
    """Two tables of a run, with columns and types of their own."""
    first = pd.DataFrame({"id": range(n), "ce": np.float32(seed + np.arange(n) / 3), "s": "a"})
    second = pd.DataFrame({"fit": ["ce", "é, 2"], "bins": [np.nan, 15.0], "kept": [True, False]})
    return {"seed": seed}, {"predictions": first, "chosen": second}


def test_runs_come_back_as_they_were_kept(tmp_path):
    runs = {f"run {k}": made(k) for k in range(3)}
    runs["texts"] = {"seed": 3}, {"predictions": pd.DataFrame({"id": ["p1", "p2"], "kept": 0.5})}
    runs["long"] = made(4, n=3 * storage.ROWS)
    runs["empty"] = {}, {"chosen": made(0)[1]["chosen"].head(0)}
    for name, run in runs.items():  # one after the other: each time all others are written anew
        storage.keep(tmp_path, "s", {name: run})
    assert storage.records(tmp_path, "s") == {name: record for name, (record, _) in runs.items()}
    for name, (_, tables) in runs.items():
        for table, rows in tables.items():
            found = storage.read(tmp_path, "s", table, name)
            pd.testing.assert_frame_equal(found, rows, check_exact=True)
    every = storage.read(tmp_path, "s", "predictions")
    assert every["run"].drop_duplicates().tolist() == [*runs][:-1]
    assert every.query("run == 'run 1'")["id"].tolist() == list("01234")  # beside texts
    assert [path.name for path in tmp_path.iterdir()] == ["s.parquet"]


def test_a_seed_that_is_made_again_replaces_its_rows_alone(tmp_path):
    storage.keep(tmp_path, "s", {f"run {k}": made(k) for k in range(3)})
    storage.keep(tmp_path, "s", {"run 1": ({"seed": 1, "again": True}, made(7, n=2)[1])})
    assert [r.get("again") for r in storage.records(tmp_path, "s").values()] == [None, True, None]
    found = storage.read(tmp_path, "s", "predictions")
    assert found.groupby("run").size().tolist() == [5, 2, 5]
    assert (
        found.query("run == 'run 1'")["ce"].tolist()
        == made(7, n=2)[1]["predictions"]["ce"].tolist()
    )


WRITE = """
for k in range(12):
    storage.keep(folder, "s", {f"{name} {k}": ({"k": k}, {"t": pd.DataFrame({"k": [k]})})})
"""
START = """
import sys, pandas as pd
from probnb_book import storage
folder, name = sys.argv[1:]
print()
"""


def test_two_writers_lose_nothing(tmp_path):
    """This process, and one that has imported what it needs."""
    command = [sys.executable, "-uc", START + WRITE, tmp_path, "a"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        exec(WRITE, {"storage": storage, "pd": pd, "folder": tmp_path, "name": "b"})
        assert other.wait() == 0
    table = storage.read(tmp_path, "s", "t")
    assert len(table) == len(storage.records(tmp_path, "s")) == 24
    assert (table["run"].str[2:].astype(int) == table["k"]).all()


def test_what_is_not_there_is_named(tmp_path):
    assert storage.records(tmp_path, "s") == {} and storage.read(tmp_path, "s", "t").empty
    storage.keep(tmp_path, "s", {"a": made(0)})
    assert storage.read(tmp_path, "s", "t").empty
    for run, table in (("b", "predictions"), ("a", "t")):
        with pytest.raises(FileNotFoundError, match=rf"s\.parquet with {table}; got '{run}'"):
            storage.read(tmp_path, "s", table, run)
    with pytest.raises(ValueError, match="table must have no column run or table; got run"):
        storage.keep(tmp_path, "s", {"a": ({}, {"t": pd.DataFrame({"run": [1]})})})


@pytest.mark.parametrize("study", STUDIES)
def test_every_stored_row_has_a_record(study):
    records = storage.records(RESULTS, study)
    rows = pq.read_table(RESULTS / f"{study}.parquet", columns=["run", "table"])
    assert set(rows["run"].to_pylist()) == set(records)
    for run, record in records.items():
        assert {"version", "commit", "date"} <= set(record.get("again", record)) | {"version"}, run


def test_results_are_studies():
    assert len(STUDIES) < 13 and not [path for path in RESULTS.iterdir() if path.is_dir()]


def test_finished_work_of_elsewhere_is_added(tmp_path, store):
    store(tmp_path / "runs", seed=1)
    run = next((tmp_path / "runs" / "synthetic").iterdir())
    single = tmp_path / "ladder" / "32-linear-seed0.parquet"
    single.parent.mkdir()
    made(0)[1]["predictions"].to_parquet(single)
    with pytest.raises(FileNotFoundError, match=r"a record; .* has none at .*seed0\.json"):
        storage.main([str(single), "--results", str(tmp_path)])
    single.with_suffix(".json").write_text(json.dumps({"rung": 32}))
    storage.main([str(run), str(single), "--results", str(tmp_path / "one")])
    storage.main([str(tmp_path / "one" / "synthetic.parquet"), "--results", str(tmp_path / "two")])
    found = storage.read(tmp_path / "one", "ladder", "ladder", single.stem)
    pd.testing.assert_frame_equal(found, pd.read_parquet(single))
    assert storage.records(tmp_path / "one", "ladder") == {single.stem: {"rung": 32}}
    own, kept, again = (
        storage.find_runs([tmp_path / folder], "synthetic")[0] for folder in ("runs", "one", "two")
    )
    assert own.record == kept.record == again.record and own.directory.name == kept.directory.name
    for name in ("predictions", "chosen", "epochs"):
        tables = [getattr(storage.read_results(of), name) for of in (own, kept, again)]
        for table in tables[1:]:
            pd.testing.assert_frame_equal(table, tables[0], check_exact=True)


def test_a_column_that_is_empty_in_one_run_and_not_in_another(tmp_path):
    """As where the rows of one study have a place in a panel, and those of another have none."""
    for k, x in enumerate((None, 1.5, None)):
        table = pd.DataFrame({"row": ["ce"], "x": [x]})
        storage.keep(tmp_path, "ablations", {f"run {k}": ({"seed": k}, {"ablations": table})})
    assert storage.read(tmp_path, "ablations", "ablations")["x"].tolist()[1] == 1.5
    for run, missing in (("run 0", True), ("run 1", False), ("run 2", True)):
        assert storage.read(tmp_path, "ablations", "ablations", run)["x"].isna().all() == missing


def test_runs_are_found_by_what_they_record_best_first(tmp_path):
    facts = {"task": "linear", "data": "drawn", "profile": "smoke", "seed": 0, "altered": False}
    told = (
        {"seed": 1, "mirror": True},
        {"profile": "cpu"},
        {"profile": "cpu", "data": "utkface", "seed": 3},
        {"task": "skewed"},
        {"altered": True},
    )
    for k, more in enumerate(told[:3]):
        storage.keep(tmp_path, "synthetic", {f"run {k}": (facts | more, {})})
    for k, more in enumerate(told[3:]):
        folder = tmp_path / "own" / "synthetic" / f"own {k}"
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps(facts | more))
    found = storage.find_runs([tmp_path, tmp_path / "own", "nowhere"], "synthetic", task="linear")
    assert [run.directory.name for run in found] == ["run 2", "run 1", "own 1", "run 0"]
    assert [run.record["altered"] for run in found] == [False, False, True, True]
    assert str(found[0]) == "linear (UTKFace, profile cpu, seed 3)"
    assert not storage.records(tmp_path, "synthetic")["run 0"]["altered"]  # read, not changed


@pytest.mark.parametrize("study", ["synthetic", "cifar10", "real_world"])
def test_the_names_of_stored_runs_stand(study):
    """What lies in ``results/`` has the name that its settings give."""
    for run, record in storage.records(RESULTS, study).items():
        if not record.get("mirror"):
            name = "{task}-{data}-{profile}-seed{seed}".format(**record)
            if record["altered"]:
                changed = record.get("changed") or {}
                name += f"-{store.key({**record['settings'], **changed})[:8]}"
            assert run == name
