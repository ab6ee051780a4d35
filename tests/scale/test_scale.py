"""Numbers of an engine are those of the same rows in memory, and files that are wrong say so."""

import importlib.util
import shutil

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from probnb import metrics
from probnb.calibrators import CALIBRATORS, logits_from_probabilities
from probnb.report import make_report, read_predictions
from probnb.scale import DataSet, open_rows, write_calibrated

N = 4000
ODD = 'a "quoted"; DROP TABLE rows; --'


def draw(n=N, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, n)
    y = (rng.random(n) < p).astype(np.int8)
    p32 = p.astype(np.float32)
    return pd.DataFrame(
        {
            "y": y,
            "single": p32,
            "tied": np.round(p, 1),
            "far": 2 * np.log(p / (1 - p)),
            "tiny": p32 * np.float32(1e-9),
            ODD: np.where(rng.random(n) < 0.5, 0.3, p),
            "truth": p,
            "w": rng.integers(0, 4, n),
            "group": rng.choice(["north", "south"], n),
            "day": rng.integers(0, 40, n),
        }
    )


COLUMNS = ["single", "tied", "far", "tiny", ODD]


def in_memory(frame, name):
    return expit(frame[name]) if name == "far" else frame[name]


@pytest.fixture(scope="module")
def frame():
    return draw()


@pytest.fixture(scope="module")
def opened(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows 'of' [many]")
    frame[:1500].to_parquet(folder / "a.parquet")
    frame[1500:].to_parquet(folder / "b.parquet")
    return open_rows(folder, memory="500MB")


def same(found, expected, tolerance=1e-12):
    assert list(found) == list(expected)
    for name in found:
        assert found[name] == pytest.approx(expected[name], rel=tolerance, abs=tolerance), name


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("batch", [10**6, 300])
def test_every_number_is_that_of_the_rows(opened, frame, weight, batch, monkeypatch):
    monkeypatch.setattr("probnb.scale.engine.BATCH", batch)
    data = DataSet(opened, COLUMNS, p="truth", weight=weight, logits=("far",))
    weights = None if weight is None else frame[weight]
    y, kept = frame["y"], ("tied", "single") if batch == 300 else COLUMNS
    for name in kept:
        p_hat = in_memory(frame, name)
        expected = metrics.evaluate(y, p_hat, frame["truth"], weights)
        same(metrics.evaluate(data, name), expected)
        assert data.column(name).auc_error == 0
        for bins in (15, 4):
            ours, theirs = (
                data.reliability_bins(name, bins),
                metrics.reliability_bins(y, p_hat, bins, weights),
            )
            for part, value in vars(theirs).items():
                np.testing.assert_allclose(getattr(ours, part), value, 1e-12, err_msg=part)
            parts = metrics.brier_decomposition(y, p_hat, bins, weights)
            same(vars(data.brier_decomposition(name, bins)), vars(parts))
    boot = metrics.bootstrap(data, kept, replicates=20)
    assert boot.point.loc[kept[0]].to_dict() == data.evaluate(kept[0])


def test_a_quick_auc_says_how_far_it_may_be_off(opened, frame):
    rough = DataSet(opened, ["single", "tied"], exact_auc=False)
    for name in rough.names:
        exact = metrics.evaluate(frame["y"], frame[name])
        found, error = rough.evaluate(name), rough.column(name).auc_error
        assert abs(found.pop("auc") - exact.pop("auc")) <= error + 1e-12 < 1e-4
        same(found, exact)


def test_intervals_are_as_wide_as_over_rows_and_over_clusters(opened, frame):
    for cluster in (None, "day"):
        data = DataSet(opened, ["single", "tied"], cluster=cluster)
        groups = None if cluster is None else frame[cluster]
        ours = metrics.bootstrap(data, replicates=300)
        theirs = metrics.bootstrap(
            frame["y"], frame[["single", "tied"]], replicates=300, groups=groups, progress=False
        )
        ratio = ours.std() / theirs.std()
        assert (abs(np.log(ratio)) < 0.4).all(axis=None), ratio
        assert ours.units == 128 if cluster is None else ours.units <= 40


def test_the_report_is_that_of_the_rows(frame, tmp_path):
    held = frame.drop(columns=["truth", "w", "tiny", "day"])
    held.to_parquet(tmp_path / "rows.parquet")
    held[:1000].to_csv(tmp_path / "1.csv", index=False)
    held[1000:].to_csv(tmp_path / "2.csv", index=False)
    told = {"columns": ["single", "tied", ODD]}
    small = make_report(read_predictions(tmp_path / "rows.parquet", **told), replicates=100)
    for path in (tmp_path / "rows.parquet", tmp_path / "?.csv"):
        data = read_predictions(path, engine="duckdb", memory="500MB", **told)
        large = make_report(data, replicates=100)
        for part in ("decomposition", "calibration", "groups", "gains", "parts"):
            pd.testing.assert_frame_equal(
                large.tables[part], small.tables[part], rtol=1e-9, check_dtype=False, obj=part
            )
        point = large.tables["metrics"].loc["value"]
        pd.testing.assert_frame_equal(point, small.tables["metrics"].loc["value"], rtol=1e-12)
        assert "blocks of rows" in large.what_was_read()
        assert large.in_short().split("\n")[:2] == small.in_short().split("\n")[:2]


@pytest.mark.parametrize("name", ["platt", "isotonic", "spline"])
def test_calibrated_rows_are_those_of_the_files_in_their_order(opened, frame, tmp_path, name):
    data, out = DataSet(opened, ["single", "far"], logits=("far",)), tmp_path / "out.parquet"
    for column in data.names:
        s = frame[column].to_numpy(float)
        if column != "far":
            s = np.diff(logits_from_probabilities(s), axis=1)[:, 0]
        fitted = CALIBRATORS[name]().fit(s[:1000], frame["y"][:1000])
        new = write_calibrated(data, column, out, fitted)
        written = pd.read_parquet(out)
        keys = ["truth", "w", "day"]
        assert [*written] == [*frame, new] and len(written) == len(frame)
        same = frame.sort_values(keys).index
        np.testing.assert_array_equal(
            written.sort_values(keys)[new].to_numpy(), fitted.predict_proba(s)[:, 1][same]
        )


def test_rows_are_calibrated_once_and_by_a_map_of_log_odds(frame, tmp_path):
    s = np.diff(logits_from_probabilities(frame["single"]), axis=1)[:, 0]
    paths = [tmp_path / f"{k}.parquet" for k in range(2)]
    frame.to_parquet(paths[0])
    data, fitted = (
        DataSet(open_rows(paths[0]), ["single"]),
        CALIBRATORS["platt"]().fit(s, frame["y"]),
    )
    write_calibrated(data, "single", paths[1], fitted)
    pd.testing.assert_frame_equal(pd.read_parquet(paths[1])[[*frame]], pd.read_parquet(paths[0]))
    with pytest.raises(ValueError, match="must not have a column 'single_calibrated'"):
        write_calibrated(DataSet(open_rows(paths[1]), ["single"]), "single", paths[0], fitted)
    both = CALIBRATORS["platt"]().fit(logits_from_probabilities(frame["single"]), frame["y"])
    with pytest.raises(ValueError, match="fitted must be a map of log-odds"):
        write_calibrated(data, "single", paths[1], both)
    with pytest.raises(ValueError, match="column must be one of single; got 'other'"):
        write_calibrated(data, "other", paths[1], fitted)


def test_a_write_that_fails_leaves_what_was_there(opened, frame, tmp_path, monkeypatch):
    out = tmp_path / "out.parquet"
    out.write_text("before")

    def full(writer, batch, *_):
        raise OSError("No space left on device")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_batch", full)
    s = np.diff(logits_from_probabilities(frame["single"]), axis=1)[:, 0]
    fitted = CALIBRATORS["platt"]().fit(s, frame["y"])
    with pytest.raises(ValueError, match="the disk is full"):
        write_calibrated(DataSet(opened, ["single"]), "single", out, fitted)
    assert out.read_text() == "before" and [*tmp_path.iterdir()] == [out]


def test_files_that_are_wrong_say_which(frame, tmp_path):
    for k in range(3):
        frame.to_parquet(tmp_path / f"{k}.parquet")
    whole = (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "1.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"^1\.parquet .* cut short"):
        DataSet(open_rows(tmp_path), ["single"])
    frame.astype({"single": float}).to_parquet(tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"one type in all files; it is double in 1\.parquet"):
        DataSet(open_rows(tmp_path), ["single"])
    with pytest.raises(ValueError, match=r"column must be one of .*; got 'sngle'. Did you mean"):
        DataSet(open_rows(tmp_path), ["sngle"])
    with pytest.raises(FileNotFoundError, match="found none"):
        open_rows(tmp_path / "*.csv")
    with pytest.raises(ValueError, match="memory must be a size"):
        open_rows(tmp_path, memory="much")
    with pytest.raises(ValueError, match="k and n must be None"):
        read_predictions(tmp_path, engine="duckdb", k="k", n="n")


def test_spark_has_the_same_numbers(frame, tmp_path):
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    frame.to_parquet(tmp_path / "rows.parquet")
    found = []
    for engine in ("duckdb", "local[2]"):
        opened = open_rows(tmp_path / "rows.parquet", engine, "1GB")
        data = DataSet(opened, ["single", ODD], p="truth", weight="w", group="group")
        found.append(data.bootstrap(replicates=50))
    for name in found[0].point.index:
        same(*(boot.point.loc[name].to_dict() for boot in found))
    np.testing.assert_allclose(found[0].samples, found[1].samples, 1e-9)


def test_a_metric_that_engines_have_no_formula_for_is_left_out(opened, monkeypatch):
    data = DataSet(opened, ["single", "far"], logits=("far",))
    known = data.bootstrap(replicates=2).point
    monkeypatch.setitem(metrics.METRICS, "gini", metrics.Metric(lambda y, p, w: 0.0, "Gini"))
    pd.testing.assert_frame_equal(data.bootstrap(replicates=2).point, known)
    with pytest.raises(ValueError, match=r"metrics must be one of .*; got 'gini'"):
        data.bootstrap(metrics=["brier", "gini"])
    assert [*data.bootstrap(metrics=["nll"], replicates=2).point] == ["nll"]


def test_bins_of_none_are_refused(opened):
    with pytest.raises(ValueError, match="bins must be an integer"):
        DataSet(opened, ["single"]).reliability_bins("single", 0)
