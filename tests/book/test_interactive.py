"""Figures that answer: their data, and in Chromium the numbers and what a reader does."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from probnb import metrics
from probnb_book import interactive
from probnb_book.claims import stored_runs
from probnb_book.evidence import compare
from probnb_book.metrics import best_runs

from ..browser import Browser
from .pages import ROOT

STATIC = ROOT / "book" / "_static"
PAIRS = [("cape_bin", "ce_finetuned"), ("ensemble", "ce")]


@pytest.fixture(scope="module")
def moves():
    rng, lines = np.random.default_rng(0), []
    p = rng.uniform(size=40)
    y = (rng.random(40) < p).astype(int)
    for start in ("early stop", "last epoch"):
        for targets in ("outcomes only", "calibration only"):
            for epoch in range(3):
                facts = {"start": start, "targets": targets, "epoch": epoch, "p": p, "y": y}
                lines.append(pd.DataFrame({**facts, "p_hat": rng.uniform(size=40)}))
    return pd.concat(lines, ignore_index=True)


@pytest.fixture
def figures(tmp_path, store, moves):
    for seed in range(3):
        store(tmp_path, seed=seed, shifts={"cape_bin": 0.1 + 0.1 * seed, "resampled": 0.05})
    store(tmp_path, "sigmoid", shifts={"cape_bin": 0.4, "platt": 2.0, "resampled": 0.05})
    best = stored_runs([tmp_path])
    found = best_runs([tmp_path], ["linear", "sigmoid"])
    first = {name: runs["run"].iloc[0] for name, runs in found.items()}
    scores = moves.groupby(["start", "targets", "epoch"], sort=False)["p_hat"].mean()
    return {
        "reliability": interactive.reliability(first),
        "epochs": interactive.epochs(moves, scores.rename("MSE_p").reset_index(), faces=10),
        "scenarios": interactive.scenarios(best),
        "seeds": interactive.seeds(best, PAIRS),
    }, best


def read(figure):
    return json.loads(re.search(r"<script[^>]*>(.*)</script>", figure.data).group(1))


def test_what_the_pictures_hold(figures, moves):
    held, best = {kind: read(figure) for kind, figure in figures[0].items()}, figures[1]
    assert all(kind == data["kind"] and len(data["alt"]) > 60 for kind, data in held.items())
    part = held["reliability"]["scenarios"]["Linear"]
    test = pd.read_parquet(best["linear"]["run"].iloc[0].directory / "predictions.parquet")
    assert part["y"] == "".join(map(str, test["y"]))
    np.testing.assert_allclose(expit(np.array(part["logits"]["ce"]) / 1e3), test["ce"], atol=2e-4)
    np.testing.assert_allclose(np.array(part["p"]) / 1e4, test["p"], atol=6e-5)
    last = held["epochs"]["moves"]["last epoch"]["calibration only"][2]
    shown = moves.query("start == 'last epoch' and targets == 'calibration only' and epoch == 2")
    assert (
        last == (1000 * shown["p_hat"].iloc[[0, 4, 8, 13, 17, 21, 26, 30, 34, 39]]).round().tolist()
    )
    linear = held["scenarios"]["scenarios"]["Linear"]
    assert len(linear["curves"]) == 6 and sum(c["fresh"] for c in linear["curves"]) == 3
    assert linear["curves"][0]["error"] == [4.0, 2.0, 5.0, 10.0]  # after the first epoch
    assert all(len(values) == 3 for values in linear["rows"].values())
    pair = held["seeds"]["pairs"]["CaPE (bin) less CE fine-tuned"]
    assert list(pair) == ["Linear"]  # one seed of Sigmoid is no finding
    told = metrics.difference(np.array(pair["Linear"]) / 100)
    assert told.value == pytest.approx(compare(best["linear"], *PAIRS[0]).value, abs=1e-7)
    assert interactive.seeds({}, PAIRS) is None


def test_data_cannot_end_its_element():
    text = interactive.figure("seeds", "</script><b>", 1).data
    assert text.count("<") == 4 and json.loads(text.split(">", 2)[2].split("</script>")[0])


CHANGE = """(() => {
  const box = document.querySelectorAll(".moving")[%d], seen = new Set();
  const set = (field, value) => {
    field.value = value;
    field.dispatchEvent(new Event(field.matches("select") ? "change" : "input"));
    seen.add(box.querySelector("svg").innerHTML);
  };
  const fields = [...box.querySelectorAll("select, input")], before = fields.map(f => f.value);
  fields.forEach((field, k) => {
    const other = [...(field.options || [])].find(o => !o.disabled && !o.selected);
    if (field.options) { if (other) set(field, other.value); }
    else set(field, field.value === field.min ? field.max : field.min);
    fields.forEach((f, j) => set(f, before[j]));
  });
  return [fields.length, seen.size - 1, box.querySelector("[role=status]").textContent];
})()"""

ONE_SEED = """(() => {
  const [count, first] = document.querySelectorAll(".moving")[3].querySelectorAll("input");
  if (!first.disabled) throw "of all seeds there is no first";
  count.value = 1;
  count.dispatchEvent(new Event("input"));
})()"""


def test_every_control_changes_the_picture_and_numbers_are_the_librarys(figures, tmp_path):
    boxes = "".join(f"<div class=cell_output>{f.data}<img></div>" for f in figures[0].values())
    page = tmp_path / "page.html"
    sheet, script = (STATIC / name for name in ("book.css", "moving.js"))
    page.write_text(
        f'<meta charset="utf-8"><link rel=stylesheet href="{sheet.as_uri()}"><body>'
        f'{boxes}<script src="{script.as_uri()}"></script>'
    )
    shown = "[...document.images].map(i => getComputedStyle(i).display !== 'none')"
    part = read(figures[0]["reliability"])["scenarios"]["Linear"]
    y, p = np.array([*map(int, part["y"])]), np.array(part["p"]) / 1e4
    s = np.array(part["logits"]["ce_overfit"]) / 1e3
    with Browser() as browser:
        browser.open(page)
        assert browser.run(shown) == [False] * 4
        browser.send("Emulation.setEmulatedMedia", media="print")
        assert browser.run(shown) == [True] * 4
        browser.send("Emulation.setEmulatedMedia", media="screen")
        browser.run(ONE_SEED)
        for place in range(4):
            acts, changed, told = browser.run(CHANGE % place)
            assert acts == (5, 2, 1, 3)[place] and changed >= acts and told
        for temperature, intercept, bins in [(1, 0, 15), (2.5, -0.4, 7), (0.4, 1.2, 40), (1, 0, 1)]:
            given = [y.tolist(), s.tolist(), p.tolist()]
            seen = browser.run(
                f"(([y, s, p]) => moving.scores(y, moving.turned(s, {temperature}, {intercept}), "
                f"p, {bins}))({json.dumps(given)})"
            )
            q = expit(s / temperature + intercept)
            assert seen["ece"] == pytest.approx(metrics.ece(y, q, bins), abs=1e-12)
            assert seen["brier"] == pytest.approx(metrics.brier(y, q), abs=1e-12)
            assert seen["mse_p"] == pytest.approx(metrics.mse_p(p, q), abs=1e-12)
        tied, t = [0.2] * 7 + [0.6] * 3, read(figures[0]["seeds"])["t"]  # a run keeps its bin
        seen = browser.run(f"moving.scores({y[:10].tolist()}, {tied}, {tied}, 4).ece")
        assert seen == pytest.approx(metrics.ece(y[:10], tied, 4), abs=1e-12)
        for values in ([0.3, -0.1], [0.3, -0.1, 0.25]):
            told = metrics.difference(values)
            seen = browser.run(f"moving.interval({values}, {json.dumps(t)})")
            assert [seen["low"], seen["high"]] == pytest.approx([told.low, told.high], abs=1e-5)
        assert browser.errors == []
        browser.open(page, scripts=False)
        assert "controls" not in json.dumps(browser.send("DOM.getDocument", depth=-1))
