"""Guards of the sentences of book/cifar10: each recomputes from results/ what a section says."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import entr

from probnb.metrics import holm, mse_p
from probnb_book.authors import derived
from probnb_book.cifar10.study import differences, read_stored
from probnb_book.published import published
from probnb_book.storage import find_runs, read, read_results

from .pages import RESULTS, defined

page = defined("cifar10")
STORED = read_stored(RESULTS)
PIXELS = read_stored(RESULTS, inputs="pixels")
POINTS = ["mean", "spread", "value", "low", "high"]
FACES = ("neutral", "happiness", "negative")


def implied_clip(p, p_hat, ratio):
    """The clipping of p with which KL(p_hat || p) is so many times MSE_p; NaN where none is."""
    p, p_hat = np.asarray(p, float), np.asarray(p_hat, float)
    error = mse_p(p, p_hat)

    def excess(exponent):
        # 1 - clip is 1 for the smallest ones, so that the logarithms are taken by themselves
        log_p = np.log(np.maximum(p, 10**exponent))
        log_q = np.log(np.maximum(1 - p, 10**exponent))
        entropy = entr(p_hat) + entr(1 - p_hat)
        return (-p_hat * log_p - (1 - p_hat) * log_q - entropy).mean() / error - ratio

    if excess(-300) * excess(-1) > 0:
        return float("nan")
    return float(10 ** brentq(excess, -300, -1))


def test_implied_clip_gives_back_the_ratio():
    p = np.repeat(np.arange(10) / 10, 20)
    p_hat = np.clip(p + 0.1 * np.tile([-1, 1], 100), 0.02, 0.98)
    ratios = page.kl_ratios(p, p_hat, clips=(1e-5,))
    printed = ratios[ratios["direction"] == "p_hat||p"]["ratio"].item()
    assert implied_clip(p, p_hat, printed) == pytest.approx(1e-5, rel=0.02)
    assert np.isnan(implied_clip(p + 0.05, p_hat, 1000))  # no p is 0: clipping changes nothing


def less(methods, reference="ce", stored=STORED, **wanted):
    """Differences in points, by question and method."""
    table = differences(stored, methods, reference=reference)
    for name, value in wanted.items():
        table = table[table[name] == value]
    table = table.assign(**{name: 100 * table[name] for name in POINTS})
    return table.set_index(["question", "method"])


def by_seed(stored, data, question):
    """MSE_p of each seed's methods, in points."""
    rows = stored[(stored["metric"] == "models") & (stored["data"] == data)]
    rows = rows[rows["question"] == question]
    return 100 * rows.pivot(index="reference", columns="method", values="mean")


def people(question, number):
    rows = STORED[(STORED["method"] == "people") & (STORED["reference"] == str(number))]
    return 100 * rows.set_index("question")["mean"][question]


def test_opening():
    control = less(["cape_bin"], "ce_finetuned")
    assert len(control) == 14 and (control["seeds"] == 3).all()
    assert ((control["low"] <= 0) & (control["high"] >= 0)).all()
    ensemble = less(["ensemble"])
    assert len(ensemble) == 14 and (ensemble["value"] < 0).all()
    assert (ensemble["high"] < 0).sum() == 8
    assert list(ensemble.index[ensemble["holm"] < 0.05]) == [("deer", "ensemble")]
    tasks = STORED[["data", "question"]].drop_duplicates().itertuples(index=False)
    gaps = [t["ensemble"] < t["ce"] for t in (by_seed(STORED, *task) for task in tasks)]
    gaps = pd.concat(gaps)
    assert len(gaps) == 42 and gaps.sum() == 41


def test_worth_in_people():
    rows = STORED[(STORED["metric"] == "mse_p") & (STORED["method"] != "people")]
    best = 100 * rows[rows["reference"] == "ce"].groupby("question")["mean"].min()
    worth = {q: people(q, 1) / best[q] for q in best.index if q != "rule"}
    assert worth["neutral"] == pytest.approx(1.5, abs=0.06)
    assert worth["negative"] == pytest.approx(1.5, abs=0.06)
    others = [v for q, v in worth.items() if q not in FACES]
    assert len(others) == 10 and max(others) < 0.2 and worth["happiness"] < 1
    ensemble = less(["ensemble"])["mean"].droplevel("method")
    assert [round(ensemble["neutral"] / people("neutral", n), 1) for n in (1, 3)] == [0.7, 2.0]
    assert 1.8 < ensemble["happiness"] / people("happiness", 1) < 2


def paper_ratios():
    """Table 11 by method, with its ratio of KL_p to MSE_p."""
    table = published("cifar10", percent=False)
    table = table.pivot(index="method", columns="metric", values="value")[["mse_p", "kl_p"]]
    table = table.loc[["ce", "cape_bin", "cape_kernel"]]
    return table.assign(ratio=table["kl_p"] / table["mse_p"])


def test_table_11():
    paper = paper_ratios()
    assert paper["mse_p"].round(4).tolist() == [0.0297, 0.0252, 0.0247]
    runs = find_runs([RESULTS], "cifar10", task="rule", data="cifar10", inputs="gradients")
    assert len(runs) == 3
    for run in runs:
        kept = read_results(run).chosen.query("chosen and method in ['cape_bin', 'cape_kernel']")
        assert kept["kept_start"].all()
    rule = less(["ensemble", "resampled", "mmce", "focal"], question="rule").loc["rule"]
    assert (rule.loc[["ensemble", "resampled"], "high"] < 0).all()
    assert (rule.loc[["mmce", "focal"], "low"] > 0).all()
    pixels = less(["cape_bin"], stored=PIXELS, question="rule").loc["rule"].iloc[0]
    assert pixels["low"] < 0 < pixels["high"] and pixels["seeds"] == 3
    ce = [by_seed(t, "cifar10", "rule")["ce"].mean() for t in (STORED, PIXELS)]
    assert min(ce) > 2 * 100 * paper["mse_p"]["ce"]


def test_ratio_of_table_11():
    paper = paper_ratios()
    assert paper["ratio"].min() > 9.5 and paper["ratio"].max() < 14
    for run in find_runs([RESULTS], "cifar10", task="rule", data="cifar10", inputs="gradients"):
        seen = read_results(run).predictions
        ratios = page.kl_ratios(seen["p"], seen["ce"])
        ours = ratios.loc[ratios["direction"] == "p||p_hat", "ratio"]
        assert ours.min() > 2.3 and ours.max() < 2.5
        clips = [implied_clip(seen["p"], seen[m], paper.loc[m, "ratio"]) for m in paper.index]
        assert min(clips) > 1e-13 and max(clips) < 1e-7 and max(clips) > 1e3 * min(clips)
        assert (seen["ce"] == seen["cape_bin"]).all() and (seen["ce"] == seen["cape_kernel"]).all()


def test_what_helps():
    faces = less(["ensemble", "temperature", "platt", "dirichlet", "beta", "ce_overfit"])
    assert all(faces.loc[(question, "ensemble"), "high"] < 0 for question in FACES)
    maps = faces.loc["neutral"].loc[["temperature", "platt", "dirichlet", "beta"]]
    assert (maps["high"] < 0).all() and maps["value"].between(-0.15, -0.05).all()
    assert faces.loc[("neutral", "ce_overfit"), "low"] > 0
    for method in ("focal", "mmce"):
        rows = less([method])
        assert len(rows) == 14 and (rows["low"] > 0).sum() == 5 and not (rows["high"] < 0).any()


def test_the_exception_of_cape():
    own = less(["cape_bin"], "ce_finetuned")
    pixels = less(["cape_bin"], "ce_finetuned", PIXELS)
    assert pixels.loc[("neutral", "cape_bin"), "high"] < 0
    p = pd.concat([own["p"], pixels["p"]])
    assert len(p) == 16 and p.idxmin() == ("neutral", "cape_bin") and holm(p.to_numpy()).min() > 0.4
    assert own["value"].idxmax() == ("truck", "cape_bin")
    run = find_runs([RESULTS], "cifar10", task="neutral", data="ferplus", inputs="pixels")[0]
    assert run.record["settings"]["finetune_epochs"] == 2


def test_votes():
    votes = read(RESULTS, "votes", "calibrators", "calibrators")
    votes[["value", "low", "high"]] *= 100
    face, thing = (votes[votes["data"] == name] for name in ("ferplus", "cifar10h"))

    def of(table, less, target):
        rows = table[(table["less"] == less) & (table["target"] == target)]
        return rows.set_index(["images", "calibrator"])

    most, one = (of(face, "all votes", target) for target in ("majority", "one vote"))
    assert len(most) == len(one) == 16 and (most["low"] > 0).all() and (one["value"] > 0).all()
    assert (one.loc[100, "value"] / one.loc[1598, "value"]).min() > 2.5  # "several times"
    known = {t: of(face, "nothing", t) for t in ("all votes", "one vote", "majority")}
    warm = [known[t].loc[(1598, "temperature"), "temperature"] for t in known]
    assert [round(v, 2) for v in warm] == [1.15, 1.14, 1.01]
    assert (known["majority"].loc[1598, "high"] > 0).all()
    maps = ["temperature", "platt", "beta"]
    gains = known["one vote"]["high"] < 0
    assert gains.loc[1000][maps].all() and not gains.loc[[100, 300]].any()
    gains = known["all votes"]["high"] < 0
    assert gains.loc[300][["platt", "beta"]].all() and not gains.loc[300][["temperature"]].any()
    assert not gains.loc[100].any()
    assert thing.loc[thing["less"] == "all votes", "value"].abs().max() < 0.08
    assert (thing.loc[thing["less"] == "nothing", "high"] > 0).all()


def test_epochs():
    for question in ("neutral", "negative"):
        seeds = by_seed(STORED, "ferplus", question)
        assert (seeds["ce_overfit"] > seeds["ce"]).all()
    row = less(["ce_overfit"]).loc["happiness"].iloc[0]
    assert row["low"] < 0 < row["high"]


def test_brier_follows():
    found = []
    tasks = [*(("ferplus", q) for q in FACES), ("cifar10h", "cat"), ("cifar10", "rule")]
    for task in tasks:
        found.append(page.brier_follows(read_stored(RESULTS, *task), RESULTS))
    lowest = pd.concat(found).groupby("kind")["rank"].min()
    assert lowest["epochs"] >= 0.94 and lowest["methods"] >= 0.67
    assert np.isclose(pd.concat(found).groupby("kind").size(), 15).all()


def test_sizes():
    records = [r.record for r in find_runs([RESULTS], "cifar10", inputs="gradients")]
    images = {(r["data"], r["settings"]["images"]) for r in records}
    assert images == {("cifar10", 4000), ("cifar10h", 4000), ("ferplus", 12000)}


def test_features_of_a_pretrained_network():
    table = derived([RESULTS], "pretrained").query("study == 'FER+ neutral'")
    gaps = table.set_index(["row", "less"])[["value", "low", "high"]].round(2)
    assert gaps.loc[("ce", "ce from scratch")].tolist() == [-2.17, -2.51, -1.83]
    assert gaps.loc[("ensemble", "ensemble from scratch")].tolist() == [-2.13, -2.48, -1.77]
    assert gaps.loc[("cape_bin", "ce_finetuned")].tolist() == [0.02, -0.07, 0.12]
    assert (table["seeds"] == 3).all()
