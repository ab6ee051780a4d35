"""One page whose code fails does not take the book: every other one is built, and it is named."""

import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import nbformat
import pytest
from jupyter_client.kernelspec import NoSuchKernel
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from probnb_book import publish

ROOT = Path(__file__).resolve().parent.parent
HIDDEN = {"tags": ["remove-cell"]}
FAILING = {  # what its cell does, whether it is shown, and what its page has to say
    "error": ("assert 1 > 2, 'planted'", {}, "AssertionError: planted"),
    "hidden": ("raise ValueError('epochs must be 1; got <b>0</b>')", HIDDEN, "got <b>0</b>"),
    "died": ("import os; os._exit(1)", HIDDEN, "Kernel died"),  # as for want of memory
    "exit": ("import sys; sys.exit(3)", {}, "SystemExit: 3"),
    "syntax": ("if True", {}, "SyntaxError"),
}

OTHERS = {
    "conflict": "conflict.ipynb is no notebook",
    "kernel": "No such kernel named not-installed",
}


def write_page(folder, name, source, metadata=None, kernel=None):
    cells = [new_markdown_cell(f"# {name}"), new_code_cell(source, metadata=metadata or {})]
    notebook = new_notebook(cells=[*cells, new_code_cell("'not reached'")])
    if kernel is not None:
        notebook.metadata["kernelspec"] = {"name": kernel, "display_name": kernel}
    nbformat.write(notebook, folder / f"{name}.ipynb")


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    shutil.copy(ROOT / "_config.yml", folder)
    shutil.copy(ROOT / "book" / "references.bib", folder)
    shutil.copytree(ROOT / "book" / "_static", folder / "_static")
    write_page(folder, "good", "1 + 1")
    for name, (source, metadata, _) in FAILING.items():
        write_page(folder, name, source, metadata)
    write_page(folder, "kernel", "1", kernel="not-installed")
    (folder / "conflict.ipynb").write_text("<<<<<<< ours\n{}\n")
    pages = "".join(f"- file: {name}\n" for name in [*FAILING, *OTHERS])
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: good\nchapters:\n{pages}")
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build"]
    return folder, subprocess.run([*command, folder], capture_output=True, text=True)


def test_the_other_pages_are_built_and_the_failed_ones_are_named(book):
    folder, done = book
    assert done.returncode != 0
    named = re.search(r"Pages that failed: (.*)\. The others are built\.", done.stderr).group(1)
    assert named.split(", ") == sorted([*FAILING, *OTHERS])
    assert done.stderr.rstrip().endswith("The others are built.")
    for name in ("good", *FAILING, *OTHERS):
        assert (folder / "_build" / "html" / f"{name}.html").is_file()


@pytest.mark.parametrize("name", [*FAILING, *OTHERS])
def test_a_failed_page_says_why_in_a_box_whether_its_cell_is_shown_or_not(book, name):
    page = (book[0] / "_build" / "html" / f"{name}.html").read_text()
    box = re.search(r'<div class="admonition error">.*?</div>\s*</div>', page, re.DOTALL).group()
    said = FAILING[name][2] if name in FAILING else OTHERS[name]
    assert said in unescape(re.sub(r"<[^>]+>", "", box))


@pytest.mark.parametrize("error", [RuntimeError("Kernel didn't respond"), NoSuchKernel("r")])
def test_a_kernel_that_never_starts_fails_its_page(error, monkeypatch):
    def start(notebook, startup_timeout, **settings):
        assert startup_timeout >= 600  # seconds: a busy machine needs more than one minute
        raise error

    monkeypatch.setattr(publish.nbclient, "execute", start)
    with pytest.raises(CellExecutionError, match=r"[Kk]ernel"):
        publish._execute(new_notebook(), cwd=".")
