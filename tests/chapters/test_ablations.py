import subprocess
import sys
from pathlib import Path

import jupytext
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from probnb.chapters.ablations import (
    figures,
    several,
    start,
    stopping,
    stored,
    study,
    verdicts,
    words,
)
from probnb.chapters.ablations.page import Page
from probnb.chapters.ablations.studies import (
    BASE,
    PAGE,
    STUDIES,
    Row,
    check_studies,
    settings_of,
)
from probnb.data.faces import load_faces
from probnb.experiment.plan import job_key, lineage, plan
from probnb.methods import METHODS
from probnb.published import published

matplotlib.use("Agg")
SEEDS = (0, 1, 2)
BOOK = Path(__file__).resolve().parents[2] / "book" / "ablations.py"


def made_up(name, scenarios=("linear",), seeds=SEEDS, n=(100,)):
    """A table of a study whose rows differ by known amounts, with noise that seeds share."""
    endings = (("", "kept"), (", platt", "platt"), (", cape", "cape"))
    rows = [(r, row.method.label, row.part) for r, row in STUDIES[name].items()]
    if name == "stopping":
        rows = [(f"{r}{end}", r, part) for r in stopping.RULES for end, part in endings]
    if name == "several":
        rows = [(r, label, "") for r, label in several.ROWS.items()]
    if name == "ensembles":
        rows += [("ensemble_members", "Each", ""), ("cape_ensemble_members", "CaPE each", "")]
    rng = np.random.default_rng(len(name))
    lines = []
    for seed in seeds:
        luck = rng.normal(0, 0.01)
        for scenario in scenarios:
            for size in n:
                for k, (row, label, part) in enumerate(rows):
                    value = 0.05 + luck + 0.001 * k + rng.normal(0, 1e-4)
                    value *= 0.5 if row == "resampled" else 1
                    known = STUDIES[name].get(row, Row(METHODS["ce"]))
                    x = known.x if known.x is not None else (3 if name == "stopping" else np.nan)
                    lines.append(
                        {"study": name, "scenario": scenario, "data": "drawn v3",
                         "profile": "quick",
                         "seed": seed, "n": size, "row": row, "label": label, "part": part, "x": x,
                         "mse_p": value, "kl_p": 2.5 * value, "brier": value + 0.2,
                         "epoch": 3, "cost": 1.0 + k / 4}
                    )  # fmt: skip
    return pd.DataFrame(lines)


def test_intervals_are_students_over_the_differences_of_seeds():
    table = made_up("weighted")
    found = stored.paired(table, base="cape_bin").set_index("row")
    wide = table.pivot(index="seed", columns="row", values="mse_p")
    difference = (wide["lambda=1"] - wide["cape_bin"]).to_numpy()
    expected = stats.ttest_1samp(difference, 0).confidence_interval(0.95)
    row = found.loc["lambda=1"]
    assert row["difference"] == pytest.approx(difference.mean())
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))
    assert row["verdict"] == "worse" and found.loc["cape_bin", "verdict"] == ""
    own = stored.means(table).set_index("row").loc["ce"]
    assert own["value"] == pytest.approx(wide["ce"].mean())
    assert own["high"] - own["low"] > row["high"] - row["low"]  # pairing takes the seeds' luck out
    one = stored.paired(made_up("weighted", seeds=(0,)), base="ce")
    assert set(one["verdict"]) == {"one seed", ""} and one["low"].isna().all()


def test_tables_are_kept_and_new_lines_replace_old(tmp_path):
    table = made_up("weighted", seeds=(0, 1))
    stored.write_study(table, tmp_path)
    later = made_up("weighted", seeds=(1, 2)).assign(mse_p=0.5)
    path = stored.write_study(later, tmp_path)
    found = stored.read_study(tmp_path, "weighted")
    assert found["seed"].value_counts().to_dict() == dict.fromkeys(SEEDS, len(STUDIES["weighted"]))
    assert (found.query("seed > 0")["mse_p"] == 0.5).all()
    kept = found.query("seed == 0")["mse_p"].to_numpy()
    np.testing.assert_allclose(kept, table.query("seed == 0")["mse_p"], rtol=1e-5)
    other = tmp_path / "other"  # the first folder's line of a run counts
    stored.write_study(made_up("weighted", seeds=(2, 3)).assign(mse_p=0.9), other)
    both = stored.read_study([tmp_path, other], "weighted")
    assert both.groupby("seed")["mse_p"].max()[[2, 3]].tolist() == [0.5, 0.9]
    stored.write_study(made_up("weighted", ("discrete",)), other)
    stored.write_study(made_up("weighted", ("sigmoid",)), other)
    order = ["linear", "sigmoid", "discrete"]
    assert list(stored.read_study(other, "weighted")["scenario"].unique()) == order
    assert path.with_suffix(".json").exists() and stored.read_study(tmp_path, "cape").empty


def test_the_page_shows_what_is_stored_unless_this_run_is_about_something_else():
    old, new = made_up("weighted"), made_up("weighted", seeds=(5,))
    assert stored.select({"weighted": old}, {"weighted": new}, "weighted").equals(old)
    other = new.assign(scenario="sigmoid")
    assert set(stored.select({"weighted": old}, {"weighted": other}, "weighted")["seed"]) == {5}
    assert stored.select({}, {"weighted": new}, "weighted")["seed"].tolist() == [5] * len(new)
    assert stored.select({}, {}, "weighted").empty
    both = pd.concat([old, other], ignore_index=True)
    assert set(stored.select({"weighted": both}, {}, "weighted")["scenario"]) == {"linear"}


def test_the_mark_is_asked_of_every_scenario():
    table = made_up("mark", ("linear", "discrete"))
    table.loc[
        (table["row"] == "augmented_hygiene") & (table["scenario"] == "discrete"), "mse_p"
    ] = 0.001
    said = verdicts.say_mark(table).splitlines()
    label = STUDIES["mark"]["augmented_hygiene"].method.label
    linear, discrete = (next(x for x in said if x.startswith(f"- {s}: {label}"))
                        for s in ("Linear", "Discrete"))  # fmt: skip
    assert "does not reach the mark" in linear and "reaches the mark" in discrete
    values = table[table["scenario"] == "discrete"].groupby("row")["mse_p"].mean()
    way = (values["ce"] - 0.001) / (values["ce"] - values["resampled"])
    assert f"{way:.0%} of the way from CE ({100 * values['ce']:.2f})" in discrete
    assert "of the way" not in verdicts.say_mark(table[table["row"] != "resampled"])


def test_three_seeds_of_photographs_come_before_drawn_faces():
    drawn = made_up("losses", ("linear", "discrete"), seeds=range(5))
    photographs = made_up("losses").assign(data="utkface")
    for enough in (True, False):
        some = photographs[photographs["seed"] < (3 if enough else 2)]
        page = Page({"losses": pd.concat([some, drawn], ignore_index=True)}, {}, {})
        assert set(page.study("losses")["data"]) == {"utkface" if enough else "drawn v3"}
        assert len(page.on_drawn("losses")) == (len(drawn) if enough else 0)
    assert words.also(page.on_drawn("losses"), words.say_losses) == ""
    said = words.also(drawn, words.say_losses)
    assert said.startswith("*Linear, Discrete; drawn faces") and "- Discrete, less CE" in said
    assert Page({}, {}, {}).on_drawn("losses").empty


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_its_base_and_rows_that_can_be_planned(name):
    settings = settings_of("smoke")
    rows = {row: r.method for row, r in STUDIES[name].items()}
    jobs = plan(list(rows), settings, rows=rows)
    if rows:
        assert BASE[name] in rows
    assert all(jobs.values())


def test_settings_are_on_their_panels():
    settings = settings_of("smoke")
    rows = {row: r.method for row, r in STUDIES["cape"].items()}
    jobs = plan(list(rows), settings, rows=rows)
    for name, value in (
        ("m=2", ("every", 2)),
        ("B=50", ("bins", 50)),
        ("r=20", ("neighbours", 20)),
    ):
        (job,) = jobs[name]
        assert getattr(job.targets, value[0]) == value[1] and STUDIES["cape"][name].x == value[1]
    assert jobs["length=12"][0].recipe.epochs == 12
    assert jobs["rate=0.001"][0].recipe.learning_rate == 1e-3
    starts = {job.start for row in jobs.values() for job in row if job.start}
    assert len(starts) == 1  # they differ in nothing else


def test_names_of_studies():
    assert check_studies("weighted, beginning") == ["beginning", "weighted"]
    assert check_studies(list(PAGE)) and check_studies("") == []
    with pytest.raises(ValueError, match=r"studies must be one of .* Did you mean 'weighted'"):
        check_studies("weigthed")


def test_costs_are_counted_in_images_seen(tmp_path):
    rows = {name: STUDIES["targets"][name] for name in ("ce", "ensemble", "crossfit")}
    settings = settings_of("smoke")
    splits = study.load("linear", settings, 0)
    table = study.run_rows(rows, splits, settings, 0, tmp_path, device="cpu", workers=1,
                           progress=False).set_index("row")  # fmt: skip
    assert table.loc["ce", "cost"] == 1
    methods = {name: row.method for name, row in rows.items()}
    jobs = plan(list(rows), settings, rows=methods)
    from probnb.experiment.run import run_jobs

    every = list(dict.fromkeys(s for row in jobs.values() for j in row for s in lineage(j)))
    fits = run_jobs(every, splits, tmp_path, "cpu", 1, progress=False)
    ce = fits[jobs["ce"][0]]
    unit = min(len(ce.history) - 1, ce.best_epoch + settings.patience)
    epochs = lambda job: len(fits[job].history) - 1  # noqa: E731
    second = jobs["ensemble"][1]
    assert table.loc["ensemble", "cost"] == pytest.approx((unit + epochs(second)) / unit)
    (student,) = jobs["crossfit"]
    n = len(splits.train)
    from probnb.training.targets import left_out

    seen = sum(epochs(t) * (n - len(left_out(splits, t.fold))) for t in student.teachers)
    expected = (seen + n * epochs(student)) / (n * unit)
    assert table.loc["crossfit", "cost"] == pytest.approx(expected)


def test_augmented_rows_are_trained_on_changed_faces():
    splits = load_faces("linear", size=16, n=60)
    changed = study.with_augmentation(splits)
    (job,) = plan(["ce"], settings_of("smoke"))["ce"]
    assert job_key(job, splits) != job_key(job, changed)
    assert len(changed.train.augment) == 3 and not changed.val.augment


def test_probabilities_of_three_outcomes():
    p = several.probabilities([0.0, 0.3, 1.0])
    np.testing.assert_allclose(p, [[1, 0, 0], [0.49, 0.42, 0.09], [0, 0, 1]], atol=1e-12)
    many = np.tile(p[1], (20_000, 1))
    share = np.bincount(several.draw(many, 0), minlength=3) / 20_000
    np.testing.assert_allclose(share, p[1], atol=4 * 0.5 / np.sqrt(20_000))


def test_stopping_rules_by_hand():
    """Logits whose cross entropy is best at epoch 2, whose ranking is best at epoch 4."""
    y = np.array([0, 1] * 50)
    sign = np.where(y == 1, 1.0, -1.0)
    noise = np.random.default_rng(0).normal(0, 1, 100)

    def logits(scale, signal):
        s = scale * (signal * sign + noise)
        return np.stack([-s / 2, s / 2], axis=1)

    z = np.stack([logits(0.1, 0.2), logits(1.0, 0.5), logits(6, 0.3), logits(30, 1.0)])
    chosen = stopping.choose(z, y)
    assert list(chosen) == list(stopping.RULES)
    assert chosen["val CE"] == 2 and chosen["val CE after Platt"] == 4 and chosen["last"] == 4
    assert stopping._patient([3, 2, 5, 5, 1], 2) == 2 and stopping._patient([3, 2, 5, 5, 1], 3) == 5


def test_first_targets(tmp_path):
    settings = settings_of("smoke")
    splits = study.load("linear", settings, 0)
    table = start.first_targets(splits, settings, 0, tmp_path, "cpu")
    spread = start.spread_of_targets(table)
    first = table[table["network"] == "epoch 0"]
    assert spread.loc["epoch 0", "variance"] == pytest.approx(np.var(first["p_emp"]))
    assert spread.loc["epoch 0", "truth"] == pytest.approx(np.var(first["p"]))
    assert first["p_emp"].mean() == pytest.approx(splits.train.outcomes.numpy().mean())
    text = words.say_spread(spread)
    assert f"{100 * np.var(first['p_emp']):.2f}" in text
    assert len(figures.first_targets_figure(table)) == 2
    plt.close("all")


def test_noise_is_that_of_random_bins():
    rng = np.random.default_rng(0)
    variances = []
    for _ in range(300):
        y = (rng.random(600) < 0.3).astype(int)
        means = y.reshape(15, 40).mean(1)
        table = pd.DataFrame({"network": "epoch 0", "p": 0.3, "p_emp": np.repeat(means, 40)})
        variances.append(start.spread_of_targets(table).loc["epoch 0", "variance"])
    assert np.mean(variances) == pytest.approx(0.3 * 0.7 * 14 / 600, rel=0.06)


def test_table_12_stands_beside_ours():
    table = made_up("beginning", scenarios=("linear", "discrete"))
    page = words.beginning_table(table)
    printed = published("discrete", table=12, method="beginning_bin", metric="kl_p")["value"][0]
    assert page.loc["From the beginning (bin)", ("Discrete KL_p", "paper")] == f"{printed:.2f}"
    own = 100 * table.query("scenario == 'linear' and row == 'ce'")["mse_p"]
    shown = page.loc["CE early-stop", ("Linear MSE_p", "ours")]
    assert shown == f"{own.mean():.2f} ± {own.std():.2f}"


def test_what_table_12_says_itself():
    text = words.say_printed()
    assert "worse than CaPE in 20 of 20 cells" in text
    assert "Linear (bin)" in text and "Linear (kernel)" in text  # 2.59 and 2.23 against 4.21


SENTENCES = {
    "beginning": words.say_beginning, "losses": words.say_losses, "cape": words.say_settings,
    "weighted": words.say_weighted, "targets": verdicts.say_targets, "mark": verdicts.say_mark,
    "ensembles": verdicts.say_ensembles, "stopping": verdicts.say_stopping,
    "several": verdicts.say_several, "scaling": verdicts.say_scaling,
}  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("seeds", [(0,), SEEDS])
def test_sentences_are_made_from_the_numbers(name, seeds):
    table = made_up(name, seeds=seeds, n=(100, 200) if name == "scaling" else (100,))
    text = SENTENCES[name](table)
    assert ("[" in text) == (len(seeds) > 1)
    assert "nan" not in text and "None" not in text
    assert SENTENCES[name](pd.DataFrame()) == words.NOTHING
    assert words.say_data(table).count("anecdote") == (len(seeds) == 1)


def test_the_recommendation_is_the_best_single_network_within_the_price():
    table = made_up("targets")
    table.loc[table["row"] == "crossfit", "mse_p"] = 0.012  # below the mark
    table.loc[table["row"] == "crossfit", "cost"] = 5.0
    table.loc[table["row"] == "distilled", ["mse_p", "cost"]] = [0.001, 9.0]  # too dear
    text = verdicts.say_targets(table)
    assert "*Cross-fitted*: 1.20" in text and "which reaches the mark" in text
    part = table[(table["seed"] == 0) | (table["row"] != "crossfit")]
    assert "*Cross-fitted*" not in verdicts.say_targets(part)  # another seed's luck is no gain
    found = table.groupby("row")["mse_p"].mean()
    assert verdicts.mark_of(table) == pytest.approx((found["ce"] + found["resampled"]) / 2)
    costs = verdicts.cost_table(table)
    assert costs.loc["CE early-stop", "share of the way"] == "0%"
    assert costs.loc["CE + resampled labels", "share of the way"] == "100%"


def test_focal_and_entropy_below_mmce_is_said_to_contradict():
    table = made_up("losses", ("linear", "discrete"))
    said = words.say_losses(table).splitlines()
    assert [line.split(",")[0] for line in said[2:]] == ["- Linear", "- Discrete"]
    assert all("entropy are not inferior to MMCE" in line for line in said[2:])
    table.loc[(table["part"] == "mmce") & (table["scenario"] == "discrete"), "mse_p"] = 0.001
    said = words.say_losses(table).splitlines()
    assert "are not inferior" in said[2] and "are inferior to MMCE at every strength" in said[3]
    printed = published("discrete", table=1, metric="mse_p").set_index("method")["value"]
    assert f"(printed: {printed['focal'] - printed['ce']:+.2f})" in said[3]


@pytest.mark.parametrize("seeds", [(0,), SEEDS])
def test_figures_draw_every_row(seeds):
    table = made_up("targets", seeds=seeds)
    left, _right = figures.targets_figure(table)
    assert len(left.get_yticklabels()) == len(STUDIES["targets"]) - 1
    (ax,) = figures.difference_figure(made_up("ensembles", seeds=seeds), "ensemble")
    assert len(ax.get_yticks()) == len(STUDIES["ensembles"]) + 1
    axes = figures.strengths_figures(made_up("losses", ("linear", "discrete"), seeds))
    assert [ax.get_title() for ax in axes] == ["Linear"] * 3 + ["Discrete"] * 3
    assert figures.strengths_figures(pd.DataFrame()) == []
    axes = figures.settings_figure(made_up("cape", seeds=seeds), ("m", "rate", "nothing"), "ce")
    assert len(axes) == 2 and axes[1].get_xscale() == "log"
    ax = figures.stopping_figure(made_up("stopping", seeds=seeds))
    assert [t.get_text() for t in ax.get_yticklabels()] == list(stopping.RULES)
    ax = figures.size_figure(made_up("scaling", seeds=seeds, n=(100, 400)))
    assert len(ax.get_lines()) >= len(STUDIES["scaling"])
    axes = figures.difference_figure(made_up("beginning", ("linear", "discrete"), seeds), "ce")
    assert [ax.get_title() for ax in axes] == ["Linear", "Discrete"]
    plt.close("all")


def test_a_study_is_run_from_the_command_line(tmp_path, monkeypatch):
    from probnb.chapters.ablations.__main__ import main

    monkeypatch.chdir(tmp_path)
    main(["stopping", "--profile", "smoke", "--seeds", "0", "--runs", str(tmp_path / "runs"),
          "--workers", "1"])  # fmt: skip
    table = stored.read_study(tmp_path / "results", "stopping")
    assert set(table["part"]) == {"kept", "platt", "cape"} and list(table) == list(study.COLUMNS)
    again = study.run_study("stopping", profile="smoke", fits_dir=tmp_path / "runs" / "fits")
    np.testing.assert_allclose(again["mse_p"], table["mse_p"], rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"studies": "targts"}, "studies must be one of .* Did you mean 'targets'"),
        ({"scenario": "linaer"}, "scenario must be one of"),
        ({"profile": "big"}, "profile must be one of smoke, quick, cpu, paper"),
        ({"data_dir": "nowhere"}, "data_dir must be an existing"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
        ({"retrain": 3}, "retrain must be one of True, False"),
        ({"epochs": 3}, "parameter must be one of"),
    ],
)
def test_the_notebook_refuses_bad_parameters_in_its_second_cell(given, message):
    cells = [c["source"] for c in jupytext.read(BOOK)["cells"] if c["cell_type"] == "code"]
    namespace = {}
    exec(cells[0], namespace)
    namespace |= given
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        exec(cells[1], namespace)


def test_names_of_studies_need_no_torch():
    code = (
        "import sys, probnb.chapters.ablations.studies;"
        "assert not {'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
