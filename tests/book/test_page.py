"""An executed notebook as one page."""

import base64
import re
import warnings

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

from probnb_book.publish import write_page

from ..made import write_files

PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def showing(data, *tags):
    """A code cell with one output."""
    output = new_output("display_data", data)
    return new_code_cell("draw()", outputs=[output], metadata={"tags": [*tags]})


def test_page_holds_everything_it_shows(tmp_path):
    cell = new_code_cell("plumbing = 1", metadata={"tags": ["remove-cell"]})
    words = new_markdown_cell("# A title\n\nSee {cite}`liu2022deep`: $p = \\psi(z)$.")
    cells = [words, cell, showing({"image/gif": PIXEL}, "hide-input")]
    nbformat.write(new_notebook(cells=cells), tmp_path / "out.ipynb")
    page = write_page(tmp_path / "out.ipynb")
    html = page.read_text()
    text = re.sub("<[^>]*>", "", html[html.index("<article") :])
    assert page == tmp_path / "out.html"
    assert "A title" in text and "Liu" in text and "[]" not in text
    assert "plumbing" not in html and "<details" in html
    assert f"data:image/gif;base64,{PIXEL}" in html
    assert 'src="' not in html.replace('src="data:', "")  # nothing else is loaded
    assert "MathJax" in html and "\\psi" in html


def page_of(folder, *cells):
    """The article of the page of some cells, as a browser has it, and what is said to be lost."""
    nbformat.write(new_notebook(cells=[*cells]), folder / "out.ipynb")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        html = write_page(folder / "out.ipynb").read_text()
    article = BeautifulSoup(html, "html.parser").find("article")
    return article, " ".join(str(w.message) for w in caught if "lacks" in str(w.message))


def pasted(text, pictures):
    attached = {name: {"image/gif": data} for name, data in pictures.items()}
    return new_markdown_cell(text, attachments=attached)


OTHER = "R0lGODlhAQABAIAAAP///wAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw=="
KEPT = {"one": PIXEL, "two": OTHER, "three": PIXEL, "four": PIXEL, "five": OTHER, "six": OTHER}
CELLS = [
    pasted("# T\n\n![one](attachment:image.gif)", {"image.gif": PIXEL}),
    pasted(
        "![two](attachment:image.gif) ![three](attachment:a%20b.gif)",
        {"image.gif": OTHER, "a b.gif": PIXEL},
    ),
    new_markdown_cell("![four](sub%20dir/a.gif)\n\n<img alt='five' src='b.gif'>"),
    showing({"text/html": "<img alt='six' src='b.gif' srcset='c.gif 2x'>"}),
    new_markdown_cell("![a](attachment:0.png)"),
    new_markdown_cell("![b](1.png)"),
    new_markdown_cell("![c](https://example.org/2.png)"),
    new_markdown_cell("<img alt='d' src='3.png'>"),
    new_markdown_cell("<video poster='4.png'></video>"),
    new_markdown_cell("![slide](secret.txt)"),
    new_markdown_cell('<img srcset="s.gif 2x">\n\n<iframe src="film.html"></iframe>'),
    new_markdown_cell("[the data](my%20data.csv) [a title](#t)"),
    new_raw_cell("\\newpage"),
]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """The page of these cells, beside what lies there and is or is no picture."""
    pixel, other = map(base64.b64decode, (PIXEL, OTHER))
    there = {"sub dir/a.gif": pixel, "b.gif": other, "s.gif": pixel}
    there |= {"secret.txt": b"x", "my data.csv": b"a\n1\n"}
    return page_of(write_files(tmp_path_factory.mktemp("page"), there), *CELLS)


def test_pictures_that_are_pasted_or_lie_beside_the_notebook(pictures):
    article, lost = pictures
    shown = article.find_all("img", alt=True)
    assert {img["alt"]: img["src"].split(",")[1] for img in shown} == KEPT
    assert ".gif" not in lost and not article.find(srcset=True)


def test_a_picture_that_is_not_there_is_told(pictures):
    article, lost = pictures
    for name in [*(f"{k}.png" for k in range(5)), "secret.txt"]:
        assert f"{name};" in lost + ";" or f"{name}." in lost
        assert f"{name} is not in this page]" in article.text
    assert lost.count("the picture") == 6 and len(article.find_all("img")) == len(KEPT) + 1


def test_a_picture_by_another_attribute_is_kept_and_a_frame_is_said(pictures):
    """All vanished in silence; so did a raw cell, and what a link leads to."""
    article, lost = pictures
    for words in (f"a raw cell (cell {len(CELLS)})", "the file my data.csv, which is linked"):
        assert words in lost and "#t" not in lost
    assert article.find("img", alt=False)["src"].startswith("data:image/gif")
    assert "the iframe of film.html" in lost


WIDGET = "application/vnd.jupyter.widget-view+json"
HERE = "Here the notebook has an interactive output"
OUTPUTS = [  # what an output has, whether something is lost, and what is seen in its place
    ({"text/html": "<div id=a></div><script>draw()</script>"}, True, HERE),
    ({"text/html": "<iframe srcdoc='<b>x'></iframe>"}, True, HERE),
    ({"text/html": "<b>12</b><SCRIPT>1</SCRIPT>", "text/plain": "x"}, True, "12"),
    (
        {"application/p+json": {}, "text/html": "<script>1</script>", "image/gif": PIXEL},
        True,
        "img",
    ),
    ({"application/vnd.vegalite.v5+json": {}, "text/plain": "Chart"}, True, HERE),
    ({"application/javascript": "alert(1)"}, True, HERE),
    ({WIDGET: {"model_id": "x"}, "text/plain": "IntSlider(value=0)"}, True, HERE),
    ({WIDGET: {"model_id": "x"}, "text/plain": " 40%|##  | 4/10 [00:01<00:02]"}, False, ""),
    ({"text/html": "<b>34</b>", "text/plain": "y"}, False, "34"),
]


HOSTILE = """<img src=x onerror=alert(1)> <a href="java&#10;script:alert(1)">a</a>
<svg onload=alert(1)><script>alert(1)</script><animate attributeName=href values=x></svg>
<object data=x></object><form action=javascript:alert(1)><input autofocus onfocus=alert(1)>
</form><p style="background: url(https://x.org/a.png)">url(kept)</p>
<style>@import "https://x.org"; p {background: url('https://x.org/b.png')}</style>"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    hostile = new_markdown_cell(HOSTILE), showing({"text/html": HOSTILE})
    cells = [showing(data) for data, _, _ in OUTPUTS]
    return page_of(tmp_path_factory.mktemp("page"), new_markdown_cell("# A"), *cells, *hostile)


def test_an_output_that_needs_a_script_is_told(outputs):
    article, lost = outputs
    shown = article.find_all("div", class_="cell")
    assert len(shown) == len(OUTPUTS) + 1
    for k, (cell, (_, told, seen)) in enumerate(zip(shown, OUTPUTS)):
        assert (f"(cell {k + 2})" in lost) == told
        assert cell.find("img") if seen == "img" else seen in cell.text
    assert not article.find(["script", "iframe"]) and "40%" not in article.text


def test_a_page_that_is_passed_on_runs_nothing(outputs):
    article, _ = outputs
    assert not article.find(["script", "object", "animate", "iframe"])
    for tag in article.find_all(True):
        assert not [name for name in tag.attrs if name.startswith("on")]
        links = [str(tag.get(name, "")) for name in ("href", "action", "src")]
        assert "script:" not in "".join(links)
    assert "@import" not in str(article) and "url(http" not in str(article)
    assert "url(kept)" in article.text


def test_bad_input_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="notebook must be an"):
        write_page(tmp_path / "out.html")
    assert not list(tmp_path.iterdir())
