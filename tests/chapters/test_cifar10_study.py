import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

from probnb.chapters.cifar10 import figures, tables, words
from probnb.chapters.cifar10.study import (
    across_seeds,
    brier_follows,
    coverage,
    implied_clip,
    kl_ratios,
    needed_at_zero,
    paper_ratios,
    trained_models,
    unbias_epochs,
)
from probnb.experiment.results import Results
from probnb.metrics import kl_p, mse_p

N = 400


def table(seed=0, n=9, size=N, shift=0.0):
    """Test rows with votes, p, and three methods of which each is nearer to p than the last."""
    rng = np.random.default_rng([1, seed])
    p = rng.beta(0.7, 1.5, size)
    noise = rng.standard_normal(size)
    return pd.DataFrame(
        {
            "split": "test",
            "id": np.arange(size),
            "y": rng.binomial(1, p),
            "p": p,
            "ce": np.clip(p + 0.2 * noise, 0.01, 0.99),
            "platt": np.clip(p + 0.15 * noise + shift, 0.01, 0.99),
            "cape_bin": np.clip(p + 0.05 * noise, 0.01, 0.99),
            "k": rng.binomial(n, p),
            "n": n,
        }
    )


def test_the_papers_ratios():
    ratios = paper_ratios()["ratio"].round(1).to_dict()
    assert ratios == {"ce": 13.6, "cape_bin": 9.8, "cape_kernel": 10.5}


def test_ratio_of_the_first_direction_hardly_moves_and_of_the_printed_one_grows_without_end():
    p = np.repeat(np.arange(10) / 10, 20)
    p_hat = np.clip(p + 0.1 * np.tile([-1, 1], 100), 0.02, 0.98)
    ratios = kl_ratios(p, pd.DataFrame({"ce": p_hat}), clips=(1e-4, 1e-8, 1e-12))
    first, printed = (
        ratios[ratios["direction"] == d]["ratio"].to_numpy() for d in ("p||p_hat", "p_hat||p")
    )
    assert np.ptp(first) < 0.01
    assert first[0] == pytest.approx(kl_p(p, p_hat) / mse_p(p, p_hat), rel=5e-3)
    mean = p_hat[p == 0].mean() / 10  # of the rows with p = 0, a tenth
    step = mean * np.log(1e4) / mse_p(p, p_hat)
    assert np.diff(printed) == pytest.approx([step, step], rel=0.01)


def test_needed_predictions_at_zero_give_the_papers_divergence():
    """Put them on the class with p = 0 of predictions that are right everywhere else."""
    p = np.repeat(np.arange(10) / 10, 50)
    needed = needed_at_zero(paper_ratios(), 0, 1e-7)["ce"]
    p_hat = np.where(p == 0, needed, p)
    kl = kl_p(np.clip(p, 1e-7, 1), p_hat, "p_hat||p")
    entropy = -(needed * np.log(needed) + (1 - needed) * np.log(1 - needed)) / 10
    assert kl + entropy == pytest.approx(paper_ratios().loc["ce", "kl_p"], rel=1e-3)


def test_implied_clip_gives_back_the_ratio():
    p = np.repeat(np.arange(10) / 10, 20)
    p_hat = np.clip(p + 0.1 * np.tile([-1, 1], 100), 0.02, 0.98)
    ratios = kl_ratios(p, pd.DataFrame({"ce": p_hat}), clips=(1e-5,))
    printed = ratios[ratios["direction"] == "p_hat||p"]["ratio"].item()
    assert implied_clip(p, p_hat, printed) == pytest.approx(1e-5, rel=0.02)
    assert np.isnan(implied_clip(p + 0.05, p_hat, 1000))  # no p is 0: clipping changes nothing


def test_one_seed_is_the_paired_t_test_over_rows():
    data = table().drop(columns=["k", "n"])
    result = across_seeds([data])
    a, b = ((data[m] - data["p"]) ** 2 for m in ("platt", "ce"))
    test = ttest_rel(a, b).confidence_interval(0.95)
    assert result.loc["platt", ["low", "high"]].tolist() == pytest.approx(list(test), rel=0.01)
    assert result.loc["cape_bin", "verdict"] == "better"
    assert result.loc["ce", "verdict"] == "" and result.loc["ce", "difference"] == 0


def test_values_from_votes_are_those_of_the_probabilities_within_their_noise():
    data = table(size=20_000)
    votes, truth = across_seeds([data]), across_seeds([data.drop(columns=["k", "n"])])
    assert np.allclose(votes["value"], truth["value"], atol=0.002)
    assert np.allclose(votes["difference"], truth["difference"], atol=0.002)
    kl = across_seeds([data], metric="kl_p")["value"]
    assert np.allclose(kl, [kl_p(data["p"], data[m]) for m in kl.index], atol=0.02)


def test_seeds_that_disagree_widen_the_interval_and_seeds_that_agree_do_not_shrink_it_away():
    same = [table(), table(), table()]
    apart = [table(shift=s) for s in (-0.2, 0.0, 0.2)]
    one, agree, disagree = (across_seeds(t).loc["platt"] for t in ([table()], same, apart))
    width = [r["high"] - r["low"] for r in (one, agree, disagree)]
    assert width[1] == pytest.approx(width[0], rel=0.01)  # the rows are the same three times
    assert width[2] > 3 * width[1]


def test_interval_over_rows_and_seeds_holds_the_truth():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(300):
        ids = np.arange(200)
        row = rng.standard_normal(200)  # shared by the seeds, as test rows are
        tables = [
            pd.DataFrame(
                {
                    "id": ids,
                    "p": 0.0,
                    "ce": 0.0,
                    "platt": np.sqrt(
                        np.clip(0.5 + 0.05 * row + 0.01 * rng.standard_normal(), 0, 1)
                    ),
                }
            )
            for _ in range(4)
        ]
        r = across_seeds(tables).loc["platt"]
        held += r["low"] <= 0.5 <= r["high"]
    assert 0.91 <= held / 300 <= 0.99


def test_an_infinite_divergence_is_said_to_be_one():
    data = table().assign(platt=lambda d: np.where(d["k"] > 0, 0.0, d["platt"]))
    result = across_seeds([data, data], metric="kl_p")
    assert result.loc["platt", "value"] == np.inf
    assert result.loc["platt", "verdict"] == "not finite"
    assert result.loc["cape_bin", "verdict"] == "better"


def test_epochs_are_as_far_from_p_as_their_predictions():
    data = table(size=20_000)
    share = data["k"] / data["n"]
    record = {
        "mse_p": [mse_p(share, data[m]) for m in ("ce", "cape_bin")],
        "kl_p": [kl_p(share, data[m]) for m in ("ce", "cape_bin")],
    }
    epochs = unbias_epochs(pd.DataFrame(record), data["k"], data["n"])
    assert np.allclose(
        epochs["mse_p"], [mse_p(data["p"], data[m]) for m in ("ce", "cape_bin")], atol=0.002
    )
    assert np.allclose(
        epochs["kl_p"], [kl_p(data["p"], data[m]) for m in ("ce", "cape_bin")], atol=0.03
    )


def test_simulated_intervals_cover_as_often_as_they_say():
    result = coverage(votes=(2, 9), rows=(300,), replicates=600, seed=1)
    assert result["covered"].between(0.93, 0.97).all()
    assert np.allclose(result["mean"], result["truth"], rtol=0.02)
    assert (result["plain"] > 1.2 * result["truth"]).any()
    assert "intervals hold the truth in 9" in words.say_coverage(result)


@pytest.fixture
def results():
    epochs = pd.DataFrame(
        {
            "fit": ["ce"] * 4,
            "method": ["ce"] * 4,
            "epoch": range(4),
            "brier": [0.3, 0.2, 0.18, 0.21],
            "mse_p": [0.2, 0.1, 0.08, 0.11],
        }
    )
    chosen = pd.DataFrame({"method": ["ce"], "best_epoch": [2], "chosen": [True]})
    return Results(table(), chosen, epochs)


def test_models_are_methods_and_epochs_after_the_first(results):
    points = trained_models(results)
    assert points["kind"].value_counts().to_dict() == {"method": 3, "epoch": 3}
    assert points.query("kind == 'epoch'")["mse_p"].tolist() == [0.1, 0.08, 0.11]
    text = words.say_brier({"task": points})
    assert "3 epochs r = 1.00" in text and "3 methods" in text


def test_luck_of_a_seeds_votes_is_no_correlation():
    rng = np.random.default_rng(0)
    mse = rng.uniform(0.05, 0.1, 40)
    seeds = np.repeat([0, 1], 20)
    points = pd.DataFrame(
        {"kind": "method", "name": "ce", "mse_p": mse + 0.1 * seeds, "seed": seeds}
    ).assign(brier=lambda t: 0.2 + (t["seed"] == 0) * 0.3 + t["mse_p"] ** 3)
    found = brier_follows(points, "method")
    assert found["rank"].tolist() == [1, 1] and found["models"].tolist() == [20, 20]
    assert np.corrcoef(points["mse_p"], points["brier"])[0, 1] < 0
    overfit = points.assign(name=np.where(np.arange(40) % 20 == 0, "ce_overfit", "ce"))
    assert brier_follows(overfit, "method")["models"].tolist() == [19, 19]


def test_figures_draw_what_they_are_given(results):
    data = {"A": across_seeds([table()]), "B": across_seeds([table(1), table(2)])}
    ceilings = {"A": {1: 0.1, 9: 0.011}}
    axes = figures.value_figure(data, ceilings)
    assert [ax.get_title() for ax in axes] == ["A", "B"]
    (legend,) = axes[0].figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["1 other person", "9 other people"]
    axes = figures.difference_figure(data)
    assert [t.get_text() for t in axes[0].get_yticklabels()] == ["Platt scaling", "CaPE (bin)"]
    axes = figures.models_figure({"A": trained_models(results)})
    assert "rank correlation" in axes[0].get_title()
    axes = figures.epoch_figure({"A": [results, results]})
    assert axes[0].lines[1].get_xdata().tolist() == [2]
    axes = figures.share_figure({"A": [0, 0.5, 0.5, 1]})
    assert "50% between" in axes[0].get_title()
    ratios = kl_ratios(np.arange(10) / 10, pd.DataFrame({"ce": np.full(10, 0.4)}))
    axes = figures.ratio_figure(ratios, paper_ratios(), methods=["ce"])
    assert len(axes) == 2


def test_words_name_what_the_numbers_say():
    results = across_seeds([table(s) for s in range(3)])
    text = words.say_verdict("Faces", results, across_seeds([table(0)], "platt"), seeds=3)
    assert "better than CE early-stop: CaPE (bin) -" in text and "Lowest: CaPE (bin)" in text
    assert "CaPE (bin) 1" in text
    text = words.say_ceiling({1: 0.1, 9: 0.0111}, results)
    assert "worth the votes of" in text and "1: 10.00" in text
    assert "than the answer of a single" in words.say_ceiling({1: 0.001}, results)
    shown = tables.comparison_table({"mse_p": results})
    assert shown.shape == (3, 2) and shown.iloc[0, 1] == "–"
    beside = tables.paper_table({"ours": {"mse_p": results, "kl_p": results}})
    assert beside.loc["CE early-stop", ("paper", "MSE_p")] == 0.0297
    assert beside.loc["CaPE (bin)", ("ours", "KL_p / MSE_p")] == 1
    ratios = kl_ratios([0, 0.5], pd.DataFrame({"ce": [0.1, 0.4]}))
    zero = {"ce": 0.1, "cape_bin": 0.12}
    text = words.say_ratio(paper_ratios(), ratios, {"ce": 1e-9, "cape_bin": 1e-4}, zero)
    assert "13.6, 9.8 and 10.5" in text and "5 decades apart" in text
    assert text.endswith("ours are 0.10 and 0.12.")
    assert "No clipping" in words.say_ratio(paper_ratios(), ratios, {"ce": np.nan}, zero)
