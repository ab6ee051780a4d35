"""A user's text is shown as it stands: in Markdown, HTML, cards and figures, and runs nothing."""

import re
import warnings
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt

from probnb.data import ProbabilityData
from probnb.images.card import model_card
from probnb.images.model import KeptModel
from probnb.plots import decision_figure, forest, reliability_grid
from probnb.report import check_table, make_report
from probnb.report.decide import decision_curve, show_decisions
from probnb.report.tell import FORMS
from probnb.text import Html, Named, escape, fenced, listed, plain
from probnb.training.models import network
from probnb_book.images import what_was_read

matplotlib.use("agg")

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</td></table><script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "![x](https://example.org/x.png)",
    "{raw}`html <b>`",
    "cost $x^$",
    "$$",
    "_new",
    "__a__ *b*",
    "a|b",
    "a\\",
    "&lt;b&gt;",
    "{{ x }} {{{y",
    "# a\n\n<b>b",
    "x\n```\n<script>",
    "https://example.org/<b>",
]
GIVEN, OURS = (
    "id class type colspan rowspan",
    "p strong ul li table thead tbody tr th td style code pre h1 h2",
)


def check(text, *words):
    """Hold what a browser would make of a text: its tags, their attributes, and the words."""
    page = BeautifulSoup(text if isinstance(text, Html) else rendered(text), "html.parser")
    tags, shown = page.find_all(True), " ".join(page.get_text().split())
    assert {tag.name for tag in tags} <= {*OURS.split()}
    assert {name for tag in tags for name in tag.attrs} <= {*GIVEN.split()}
    assert all(" ".join(word.split()) in shown for word in words)
    return {tag.name for tag in tags}


def rendered(text):
    return MarkdownIt("commonmark").enable("table").render(text)


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_shows_it_as_it_stands(name):
    check(listed([name, f"Column {name}"]), f"Column {name}")
    check(f"| | {escape(name)} |\n| --- | --- |\n| {escape(name)} | 1 |", name)
    assert check(f"before\n\n{fenced(name)}\n\nafter", name) == {"p", "pre", "code"}


def table_of(names, rows=400):
    """A table with columns, cells and groups called so."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, rows)
    frame = pd.DataFrame({"y": (rng.random(rows) < p).astype(int)})
    columns = {name: p ** (1 + k / 10) for k, name in enumerate(names)}
    texts = {f"text {name}": name for name in names}
    frame = frame.assign(**columns, **texts, other=p**2)
    return check_table(frame.assign(group=np.resize([*names, "b"], rows)))


@pytest.mark.parametrize("names", [HOSTILE[k::3] for k in range(3)])
def test_a_report_and_a_card_show_it_as_it_stands(names):
    table = table_of(names)
    report = make_report(table, "other", bins=5, replicates=20)
    check(report.in_short(), *names)
    left_out = [f"left out: text {name} ({name!r})" for name in names]
    check(report.what_was_read(), *left_out)
    for part in set(FORMS) - {"distances"}:
        check(report.show(part), *names)
    curve = decision_curve(table, 0.2)
    check(show_decisions(curve), *names)
    ax = decision_figure(curve)
    ax.figure.canvas.draw()
    legend = [text.get_text().replace(r"\$", "$") for text in ax.get_legend().get_texts()]
    axes = reliability_grid(table.y, table.predictions)
    axes[0].figure.canvas.draw()
    titles = [panel.get_title(loc="left").replace(r"\$", "$") for panel in axes]
    plt.close("all")
    for name, word, title in zip(names, legend, titles):
        assert word == name and title.startswith(name)
        mlp, record = network("mlp", hidden=(4,)), {"label": name, "source": name}
        model = KeptModel(mlp, (mlp.build(torch.zeros(2, 3)).state_dict(),), 3, record=record)
        card = model_card(model, listed([name]), None, report, f"papermill {name}")
        check(card, name, f"source: {name}", f"papermill {name}")


@pytest.mark.parametrize("name", HOSTILE)
def test_the_page_on_images_shows_it_and_the_card_withholds_names(name):
    part = ProbabilityData(torch.zeros(4, 3, 8, 8), [0, 1, 0, 1])
    notes = [Named(f"1 of 5 images cannot be read ({name}: empty).", "1 of 5 cannot be read.")]
    splits = SimpleNamespace(parts=lambda: {"train": part}, report={"notes": notes})
    check(what_was_read(splits, f"Backbone {name}."), f"({name}: empty)", f"Backbone {name}.")
    assert escape(name) not in what_was_read(splits, names=False)


def test_what_cannot_be_seen_is_shown_as_what_it_is():
    """It went to pages and terminals, which it steers."""
    names = ["\x1b[31mred", "a\x00b\x07", "\u202etxt.exe", "\x9b1m"]
    report = make_report(table_of(names), "other", bins=5, replicates=20)
    texts = [report.in_short(), report.what_was_read(), *map(escape, names), *map(plain, names)]
    texts += [report.show(part) for part in set(FORMS) - {"distances"}]
    for text in texts:
        assert not re.search(
            "[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text
        )
        text.encode()
    assert plain("\udcff.png") == r"\xff.png"
    assert plain("Zoë \u200d\u2014 東京\n") == "Zoë \u200d\u2014 東京\n"


def test_a_long_name_leaves_a_figure_its_panels():
    table = table_of(["x" * 300])
    for ax in (
        reliability_grid(table.y, table.predictions)[0],
        decision_figure(decision_curve(table, 0.2)),
    ):
        with warnings.catch_warnings(action="error"):
            ax.figure.canvas.draw()
        assert ax.get_window_extent().width > 100
    plt.close("all")


def test_a_forest_shows_names_as_they_stand():
    table = pd.DataFrame({"label": ["cost $x^$", "b"], "kind": ["_new", "$y^$"], "value": 0.1})
    ax = forest(table.assign(low=0.0, high=0.2, seeds=3), hue="kind")
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["_new", r"\$y^\$"]
    plt.close("all")
