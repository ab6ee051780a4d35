"""Guards of the sentences of book/ablations: each recomputes from results/ what a section says."""

import numpy as np
import pytest

from probnb.metrics import difference
from probnb_book import evidence
from probnb_book.ablations.study import compare, read_study
from probnb_book.published import published

from .pages import RESULTS


def found(name, base="ce", scenario="linear", n=None, **wanted):
    """Differences of a stored study in points, by row."""
    table = compare(read_study(RESULTS, name, scenario=scenario, **wanted), base)
    table = table if n is None else table[table["n"] == n]
    table[["mean", "value", "low", "high"]] *= 100
    return table.set_index("row")


def test_from_the_beginning():
    printed = published(table=12).set_index(["scenario", "metric", "method"])["value"]
    cells = [(s, k, m) for s, k, m in printed.index if m.startswith("beginning")]
    worse = [printed[s, k, m] > printed[s, k, m.replace("beginning", "cape")] for s, k, m in cells]
    assert len(worse) == 20 and all(worse)
    for scenario in ("linear", "discrete"):
        table = read_study(RESULTS, "beginning", data="utkface", scenario=scenario)
        wide = table.pivot(index="seed", columns="row", values="mse_p")
        assert len(wide) == 3 and (wide["beginning_bin"] < wide["cape_bin"]).all()
    discrete = found("beginning", "cape_bin", "discrete", data="utkface").loc["beginning_bin"]
    assert discrete["high"] < 0
    wanted = {"task": "discrete", "data": "utkface", "profile": "cpu", "altered": False}
    runs = evidence.find([RESULTS], "synthetic", **wanted).sort_values("seed")
    values = [evidence.values(line, "mse_p") for line in runs[runs["seed"] < 3].itertuples()]
    np.testing.assert_allclose([v["ce"] for v in values], wide["ce"], rtol=1e-4)
    assert all(v["ce"] > v["ce_mean"] for v in values)
    mean = np.array([v["ce_mean"] for v in values])
    assert abs(difference(wide["cape_bin"] - mean).value) < 0.0005


@pytest.mark.parametrize(("data", "seeds"), [("drawn v3", 5), ("utkface", 3)])
def test_from_which_network_it_starts(data, seeds):
    table = read_study(RESULTS, "starts", data=data)
    for part, own in table.groupby("part"):  # the picture's description: every interval holds 0
        gaps = compare(own, f"ce_finetuned, {part}").query("label == 'CaPE (bin)'")
        assert len(gaps) == 2 and (gaps["low"] <= 0).all() and (gaps["high"] >= 0).all()
    table = table.assign(kind=table["row"].str.split(", ").str[0], mse_p=100 * table["mse_p"])
    averaged = table[table["part"] == "averaged weights"]
    kept = averaged[averaged["kind"] == "cape_bin"].set_index("scenario")["epoch"].eq(0)
    assert len(kept) == 2 * seeds and (~kept).sum() == (data != "utkface") and kept["linear"].all()
    table = table[table["part"] != "averaged weights"]
    starts = table.loc[table["kind"] == "cape_bin", "epoch"].eq(0)
    assert data != "utkface" or (starts.sum(), len(starts)) == (12, 18)
    for scenario in ("linear", "discrete"):
        of = table[table["scenario"] == scenario].groupby(["seed", "kind"])["mse_p"]
        mean = of.mean().unstack()
        assert len(mean) == seeds and of.size().eq(3).all()
        own = averaged[averaged["row"].str.startswith("ce_av") & (averaged["scenario"] == scenario)]
        below = difference(mean["cape_bin"] - own.set_index("seed")["mse_p"])
        control = difference(mean["cape_bin"] - mean["ce_finetuned"])
        assert not control.resolved
        gains = [difference(mean["ce"] - mean[k]) for k in ("cape_bin", "ce_finetuned")]
        told = {("drawn v3", "linear"), ("utkface", "discrete")}
        assert below.resolved == ((data, scenario) in told)
        if data == "utkface":
            assert max(-control.low, control.high) < 0.025
            assert not any(gain.resolved for gain in gains)
        else:
            shares = [gain.value / mean["ce"].mean() for gain in gains]
            assert all(gain.low > 0 for gain in gains) and 0.08 < min(shares) < max(shares) < 0.13


def test_strengths():
    tables = {s: found("losses", scenario=s, data="utkface") for s in ("linear", "discrete")}
    strong = [t.loc[["focal=2", "entropy=1", "mmce=3"]] for t in tables.values()]
    assert all((part["value"] > 0).all() for part in strong)
    assert sum((part["low"] > 0).sum() for part in strong) == 5
    weak = [t.loc[["focal=1", "entropy=0.3", "mmce=1"]] for t in tables.values()]
    assert all(((part["low"] < 0) & (part["high"] > 0)).all() for part in weak)
    for table in tables.values():
        assert table.loc["entropy=0.3", "mean"] < table.loc["mmce=3", "mean"]
    assert tables["linear"].loc["entropy=0.3", "mean"] < tables["linear"].loc["mmce=1", "mean"]


def test_settings_of_cape():
    table = found("cape", "ce_finetuned").drop("ce")
    assert len(table) == 26 and ((table["low"] < 0) & (table["high"] > 0)).all()


def test_weighted_sum():
    table = found("weighted", "cape_bin").filter(like="lambda", axis=0)
    assert len(table) == 4 and ((table["low"] < 0) & (table["high"] > 0)).all()
    assert (table["high"] - table["value"]).min() > 0.45


def test_better_targets():
    table = found("targets")
    assert len(table) == 17 and table["seeds"].max() == 5
    assert (table.loc[["ensemble", "distilled", "ce_averaged"], "high"] < 0).all()
    assert table.loc["ce_averaged", "cost"] == pytest.approx(1.5, abs=0.05)
    own = 100 * read_study(RESULTS, "targets").query("row == 'ce'")["mse_p"].mean()
    assert -table.loc["ce_averaged", "value"] / own == pytest.approx(0.3, abs=0.02)
    assert round(table.loc["distilled", "cost"], 1) == 3.9
    assert ((table["low"] > 0) | (table["high"] < 0)).sum() == 5
    assert table["holm"].min() > 0.05 and table["value"].idxmin() == "resampled"
    averaged = found("targets", "ce_averaged")
    for row in ("distilled", "ensemble"):
        assert averaged.loc[row, "low"] < 0 < averaged.loc[row, "high"]
    single = table.drop(["resampled", "ensemble"])
    cheaper = single[single["cost"] < table.loc["ce_averaged", "cost"] - 0.05]
    assert (cheaper["mean"] > table.loc["ce_averaged", "mean"]).all()
    assert single["mean"].min() > table.loc["ce_averaged", "mean"] - 0.1
    seeds = read_study(RESULTS, "targets").query("row == 'ce'").set_index("seed")["mse_p"]
    assert (seeds[[1, 2]] > seeds.median()).all()


def test_hygiene_with_augmentation_at_eight_thousand():
    table = read_study(RESULTS, "scaling").query("n == 8000")
    wide = table.pivot(index="seed", columns="row", values="mse_p")
    assert (wide["augmented_hygiene"] > wide["ce"]).all()


def test_weight_of_teachers():
    table = read_study(RESULTS, "weight")
    assert {"utkface", "drawn v3"} == set(table["data"])
    wide = table.pivot(index=["data", "scenario", "seed"], columns="row", values="mse_p")
    assert wide.notna().all(axis=None)
    assert wide.groupby(["data", "scenario"]).size().tolist() == [5, 5, 3, 3]
    for part in ("unseen", "seen"):
        half, more, two = (wide[f"{part}={xi}"] for xi in ("0.5", "1.5", "2"))
        assert (half < more).sum() == 15 and (half < two).sum() == len(wide) == 16
    for scenario in ("linear", "discrete"):
        of = wide.loc["utkface", scenario]
        for a, b, worse in (("1.5", "1", True), ("2", "0", True), ("0.5", "0", False)):
            gap = difference(of[f"unseen={a}"] - of[f"unseen={b}"])
            assert gap.low > 0 if worse else gap.low < 0 < gap.high


def test_reversal():
    table = read_study(RESULTS, "reversal")
    table = table[table["part"].str.startswith("kept")]
    table = table.assign(rule=table["row"].str.split(", ").str[1])
    same = ["data", "scenario", "seed"]
    wide = table.pivot(index=[*same, "label", "part"], columns="rule", values=["mse_p", "x"])
    averaged = wide.xs("Averaged weights", level="label")
    assert (averaged["mse_p", "val CE"] < averaged["mse_p", "val CE of one"]).all()
    assert (averaged["x", "val CE"] > averaged["x", "val CE of one"]).all()
    after = wide.xs("kept, platt", level="part")["mse_p"]
    gaps = 100 * (after["val CE after Platt"] - after["val CE"])
    assert gaps.xs("utkface", level="data").abs().max() < 0.05
    drawn = gaps.xs("drawn v3", level="data")
    assert drawn.min() < 0 < drawn.max()


def test_ensembles():
    table = found("ensembles", "ensemble")
    of_three = table.filter(like="ensemble", axis=0)
    assert of_three["mean"].max() < table.drop(of_three.index)["mean"].min()
    assert len(of_three) == 5 and table.loc["cape_ensemble", "holm"] > 0.05
    assert table.loc["cape_ensemble", "high"] < 0
    out = of_three[(of_three["high"] < 0) | (of_three["low"] > 0)]
    assert list(out.index) == ["cape_ensemble"]


def test_stopping():
    table = found("stopping", "val CE")
    kept = table[table["part"] == "kept"].drop("last")
    assert ((kept["low"] <= 0) & (kept["high"] >= 0)).all()
    own = 100 * read_study(RESULTS, "stopping").query("row == 'val CE'")["mse_p"].mean()
    means = table["mean"]
    assert table.loc["last", "low"] > 0 and means["last"] / own == pytest.approx(3, abs=0.3)
    assert means["last, platt"] < own and means["last, cape"] > 0.85 * means["last"]
    after = found("stopping", "val CE, platt").loc["last, platt"]
    assert after["low"] < 0 < after["high"]


def test_steps():
    table = read_study(RESULTS, "steps", data="drawn v3")
    wide = table.pivot(index=["scenario", "seed"], columns="row", values=["share", "grouping"])
    lower = {"linear": ["averaged weights", "outcomes", "200 bins"]}
    lower |= {"discrete": ["50 bins", "200 bins"]}
    same = {"linear": ["15 bins", "kernel"], "discrete": ["averaged weights"]}
    for scenario in lower:
        share, grouping = wide.loc[scenario]["share"], wide.loc[scenario]["grouping"]
        assert len(share) == 5 and (share["15 bins"] > share["outcomes"]).all()
        assert share["15 bins"].mean() == pytest.approx(0.75, abs=0.03)
        assert share["outcomes"].mean() < 0.46
        change = {row: difference(grouping[row] - grouping["start"]) for row in grouping}
        assert all(change[row].high < 0 for row in lower[scenario])
        assert all(change[row].low < 0 < change[row].high for row in same[scenario])
    assert wide.loc["discrete"]["share"]["200 bins"].mean() < 0.51


def test_steps_on_photographs():
    table = read_study(RESULTS, "steps", data="utkface")
    wide = table.pivot(index=["scenario", "seed"], columns="row", values=["share", "grouping"])
    calibrated = ["15 bins", "50 bins", "200 bins", "kernel"]
    shares = 100 * wide["share"][calibrated]
    assert shares.min().min() > 200 / 3
    means = (100 * wide["share"]).groupby("scenario").mean()
    assert means["outcomes"].max() < 50 and means["averaged weights"].max() < 15
    coarse = difference(wide["share"]["200 bins"] - wide["share"]["15 bins"])
    assert coarse.low < 0 < coarse.high
    for scenario in ("linear", "discrete"):
        share, grouping = wide.loc[scenario]["share"], wide.loc[scenario]["grouping"]
        assert len(share) == 3
        more = difference(share["15 bins"] - share["outcomes"])
        assert more.low > 0
        change = {row: difference(grouping[row] - grouping["start"]) for row in grouping}
        gain = difference(grouping["start"] - grouping["averaged weights"])
        assert gain.value > 0 and (gain.low > 0) == (scenario == "discrete")
        for row in calibrated:
            assert abs(change[row].value) < 0.0003, (scenario, row, change[row])


def test_three_outcomes():
    table = found("several", "ce_finetuned").loc[["cape_rest", "cape_cells"]]
    assert (table["value"] < 0).all() and (table["high"] > 0).all() and (table["seeds"] == 3).all()


def test_scale():
    table = found("scaling", n=8000)
    assert table.loc[["cape_bin", "platt"], "value"].abs().max() < 0.03
    assert round(table.loc["ensemble", "value"], 2) == -0.38
    few = found("scaling", n=500)
    gains = [-t.loc[row, "value"] for row in ("resampled", "ensemble") for t in (few, table)]
    assert [round(gain, 1) for gain in gains] == [4.9, 0.6, 3.8, 0.4]
    assert table.loc["augmented_hygiene", "value"] > 0 and (table["seeds"] == 2).all()
