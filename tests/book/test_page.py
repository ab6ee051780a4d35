"""An executed notebook as one page."""

import re

import nbformat
import pytest

from probnb_book.publish import write_page

PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def test_page_holds_everything_it_shows(tmp_path):
    v4 = nbformat.v4
    cell = v4.new_code_cell("plumbing = 1", metadata={"tags": ["remove-cell"]})
    picture = v4.new_output("display_data", {"image/gif": PIXEL})
    shown = v4.new_code_cell("draw()", outputs=[picture], metadata={"tags": ["hide-input"]})
    words = v4.new_markdown_cell("# A title\n\nSee {cite}`liu2022deep`: $p = \\psi(z)$.")
    notebook = v4.new_notebook(cells=[words, cell, shown])
    nbformat.write(notebook, tmp_path / "out.ipynb")
    page = write_page(tmp_path / "out.ipynb")
    html = page.read_text()
    text = re.sub("<[^>]*>", "", html[html.index("<article") :])
    assert page == tmp_path / "out.html"
    assert "A title" in text and "Liu" in text and "[]" not in text
    assert "plumbing" not in html and "<details" in html
    assert f"data:image/gif;base64,{PIXEL}" in html
    assert 'src="' not in html.replace('src="data:', "")  # nothing else is loaded
    assert "MathJax" in html and "\\psi" in html


def test_bad_input_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="notebook must be an"):
        write_page(tmp_path / "out.html")
    assert not list(tmp_path.iterdir())
