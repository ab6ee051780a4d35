"""The book on other machines: failed pages and words that differ are told; numbers may differ."""

import json
import os
import subprocess

import nbformat
import numpy as np
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from probnb_book import anywhere, storage

PAGE = "<table><tr><th>row</th><th></th></tr><tr><td><b>CaPE</b></td><td>{}</td></tr></table>"


def test_verdicts_are_the_cells_without_a_digit():
    page = PAGE.format("+0.12 [-0.05, 0.30]") + PAGE.format("not told apart") + PAGE.format("✓")
    assert anywhere.verdicts(page) == [*["row", "CaPE"] * 2, "not told apart", "row", "CaPE"]


def test_what_a_page_has_just_trained_is_a_figure_in_words():
    chosen = f'<div class="cell tag_hide-input tag_this-run"><div>{PAGE}</div></div>'
    page = chosen.format("deep ensemble") + f'<div class="cell">{PAGE.format("lower")}</div>'
    assert anywhere.verdicts(page) == ["row", "CaPE", "lower"]


def test_only_the_page_of_a_users_own_images_reports_its_run_in_words():
    tagged = {
        path.stem
        for path in (anywhere.ROOT / "book").glob("*.py")
        if '"this-run"' in path.read_text(encoding="utf-8")
    }
    assert tagged == {"images"}


def test_a_word_that_differs_is_told_and_a_number_is_not():
    same = {"AVX2": {"a": ["lower"], "b": []}, "SSE4.1": {"a": ["lower"], "b": []}}
    assert anywhere.differing(same) == []
    other = same | {"SSE4.1": {"a": ["higher"]}}
    (line,) = anywhere.differing(other)
    assert line == "a: {'AVX2': 'lower', 'SSE4.1': 'higher'}"
    assert anywhere.differing(same | {"SSE4.1": {"a": [], "b": []}})  # a table that is missing


def test_a_page_records_at_its_usual_parameters_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(anywhere, "results_path", lambda: tmp_path)
    anywhere.record("page", False, x=1)
    assert not list(tmp_path.iterdir())
    table = pd.DataFrame({"v": [1.5]}, pd.Index(["a"], name="k"))
    anywhere.record("page", True, x=np.float64(2), many=np.arange(2), table=table)
    found = json.loads((tmp_path / "findings" / "page.json").read_text())
    assert found == {"x": 2.0, "many": [0, 1], "table": {"k": ["a"], "v": [1.5]}}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A book of one page, whose words hang on the environment if it is told so."""
    root = tmp_path / "project"
    (root / "book").mkdir(parents=True)
    (root / "book" / "_config.yml").write_text("title: x\nexecute:\n  execute_notebooks: force\n")
    (root / "book" / "_toc.yml").write_text("format: jb-book\nroot: page\n")
    code = (
        "import os, time, pathlib\nfrom IPython.display import HTML\n"
        "where = os.environ.get('ATEN_CPU_CAPABILITY', 'best')\n"
        "word = pathlib.Path('word.txt').read_text().format(where)\n"
        f"HTML({PAGE!r}.format(word) + {PAGE!r}.format(time.time()))"
    )
    cells = [new_markdown_cell("# Page"), new_code_cell(code)]
    nbformat.write(new_notebook(cells=cells), root / "book" / "page.ipynb")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    monkeypatch.setattr(anywhere, "ROOT", root)
    return root


def test_a_build_for_each_machine(project, capsys):
    (project / "book" / "word.txt").write_text("it is {}")
    assert anywhere.main(["this one", "SSE4.1"]) == 1
    said = capsys.readouterr().out
    assert "page: {'this one': 'it is best', 'SSE4.1': 'it is default'}" in said
    assert not (project / "book" / "_build").exists()  # copies were built


@pytest.mark.parametrize(("failed", "wrong"), [("", 0), ("Pages that failed: page", 1)])
def test_builds_that_say_the_same_are_right_unless_one_failed(failed, wrong, monkeypatch, capsys):
    monkeypatch.setattr(anywhere, "build", lambda *_: (failed, {"page": ["lower"]}, {}))
    assert anywhere.main(["this one", "SSE4.1"]) == wrong
    assert "No verdict differs." in capsys.readouterr().out


def test_unknown_machines_are_refused_before_anything_is_built():
    with pytest.raises(ValueError, match=r"machines must be one of SSE4\.1, .*; got 'AVX3'"):
        anywhere.main(["AVX3"])


def test_a_study_is_computed_as_each_machine_would(tmp_path, monkeypatch):
    (tmp_path / "toy.py").write_text(
        "import os, pandas as pd\n"
        "def study(seed):\n"
        "    said = os.environ.get('ATEN_CPU_CAPABILITY', 'best')\n"
        "    return pd.DataFrame({'said': [said], 'value': [10 * seed]})\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setitem(anywhere.STUDIES, "toy", "toy import study")
    assert anywhere.main(["this one", "AVX2", "--study", "toy", "--seeds", "1", "2",
                          "--keep", str(tmp_path)]) == 0  # fmt: skip
    table = storage.read(tmp_path, "machines", "toy")
    assert table["said"].tolist() == ["best", "best", "avx2", "avx2"]
    assert table["value"].tolist() == [10, 20, 10, 20] == [10 * s for s in table["seed"]]
    assert set(table["machine"]) == {"this one", "AVX2"}
    records = storage.records(tmp_path, "machines")
    assert len(records) == 4 and all(record["processor"] for record in records.values())
