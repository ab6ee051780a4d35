"""An executed notebook as one page."""

import base64
import re
import warnings

import nbformat
import pytest
from bs4 import BeautifulSoup

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


def page_of(tmp_path, *cells):
    """The article of the page of some cells, as a browser has it, and what is said to be lost."""
    nbformat.write(nbformat.v4.new_notebook(cells=[*cells]), tmp_path / "out.ipynb")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        html = write_page(tmp_path / "out.ipynb").read_text()
    article = BeautifulSoup(html, "html.parser").find("article")
    return article, " ".join(str(w.message) for w in caught if "lacks" in str(w.message))


def pasted(text, **pictures):
    cell = nbformat.v4.new_markdown_cell(text)
    cell["attachments"] = {n.replace("_", " "): {"image/gif": data} for n, data in pictures.items()}
    return cell


OTHER = "R0lGODlhAQABAIAAAP///wAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw=="


def test_pictures_that_are_pasted_or_lie_beside_the_notebook(tmp_path):
    (tmp_path / "sub dir").mkdir()
    (tmp_path / "sub dir" / "a.gif").write_bytes(base64.b64decode(PIXEL))
    (tmp_path / "b.gif").write_bytes(base64.b64decode(OTHER))
    cells = [
        pasted("# Title\n\n![one](attachment:image.gif)", **{"image.gif": PIXEL}),
        pasted(
            "![two](attachment:image.gif) ![three](attachment:a%20b.gif)",
            **{"image.gif": OTHER, "a_b.gif": PIXEL},
        ),
        nbformat.v4.new_markdown_cell("![four](sub%20dir/a.gif)\n\n<img alt='five' src='b.gif'>"),
        nbformat.v4.new_code_cell(
            "x",
            outputs=[
                nbformat.v4.new_output(
                    "display_data", {"text/html": "<img alt='six' src='b.gif' srcset='c.gif 2x'>"}
                )
            ],
        ),
    ]
    article, lost = page_of(tmp_path, *cells)
    shown = {
        img["alt"]: img["src"].removeprefix("data:image/gif;base64,")
        for img in article.find_all("img")
    }
    right = {"one": PIXEL, "two": OTHER, "three": PIXEL, "four": PIXEL, "five": OTHER, "six": OTHER}
    assert shown == right and not lost and not article.find(srcset=True)


def test_a_picture_that_is_not_there_is_told(tmp_path):
    (tmp_path / "secret.txt").write_text("x")  # is there, and is no picture
    texts = [
        "![a](attachment:0.png)",
        "![b](1.png)",
        "![c](https://example.org/2.png)",
        "<img alt='d' src='3.png'>",
        "<video poster='4.png'></video>",
        "![slide](secret.txt)",
    ]
    article, lost = page_of(
        tmp_path, *(nbformat.v4.new_markdown_cell(text) for text in ["# A", *texts])
    )
    for name in [*(f"{k}.png" for k in range(5)), "secret.txt"]:
        assert f"{name};" in lost + ";" or f"{name}." in lost
        assert f"{name} is not in this page]" in article.text
    assert not article.find("img") and lost.count("the picture") == 6


WIDGET = "application/vnd.jupyter.widget-view+json"
HERE = "Here the notebook has an interactive output"
OUTPUTS = [  # what an output has, whether something is lost, and what is seen in its place
    ({"text/html": "<div id=a></div><script>draw()</script>"}, True, HERE),
    ({"text/html": "<iframe srcdoc='<b>x'></iframe>"}, True, HERE),
    ({"text/html": "<b>12</b><SCRIPT>1</SCRIPT>", "text/plain": "x"}, True, "12"),
    (
        {"application/vnd.p.v1+json": {}, "text/html": "<script>1</script>", "image/gif": PIXEL},
        True,
        "img",
    ),
    ({"application/vnd.vegalite.v5+json": {}, "text/plain": "Chart"}, True, HERE),
    ({"application/javascript": "alert(1)"}, True, HERE),
    ({WIDGET: {"model_id": "x"}, "text/plain": "IntSlider(value=0)"}, True, HERE),
    ({WIDGET: {"model_id": "x"}, "text/plain": " 40%|##  | 4/10 [00:01<00:02]"}, False, ""),
    ({"text/html": "<b>34</b>", "text/plain": "y"}, False, "34"),
]


def test_an_output_that_needs_a_script_is_told(tmp_path):
    cells = [nbformat.v4.new_markdown_cell("# A")]
    for data, _, _ in OUTPUTS:
        output = nbformat.v4.new_output("display_data", data)
        cells.append(nbformat.v4.new_code_cell("x", outputs=[output]))
    article, lost = page_of(tmp_path, *cells)
    shown = article.find_all("div", class_="cell")
    for k, (cell, (_, told, seen)) in enumerate(zip(shown, OUTPUTS, strict=True)):
        assert (f"(cell {k + 2})" in lost) == told
        assert cell.find("img") if seen == "img" else seen in cell.text
    assert not article.find(["script", "iframe"]) and "40%" not in article.text


def test_a_page_that_is_passed_on_runs_nothing(tmp_path):
    hostile = """<img src=x onerror=alert(1)> <a href="java&#10;script:alert(1)">a</a>
    <svg onload=alert(1)><script>alert(1)</script><animate attributeName=href values=x></svg>
    <object data=x></object><form action=javascript:alert(1)><input autofocus onfocus=alert(1)>
    </form><p style="background: url(https://x.org/a.png)">url(kept)</p>
    <style>@import "https://x.org"; p {background: url('https://x.org/b.png')}</style>"""
    output = nbformat.v4.new_output("display_data", {"text/html": hostile})
    cells = [
        nbformat.v4.new_markdown_cell(f"# A\n\n{hostile}"),
        nbformat.v4.new_code_cell("x", outputs=[output]),
    ]
    article, _ = page_of(tmp_path, *cells)
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


def test_a_picture_by_another_attribute_is_kept_and_a_frame_is_said(tmp_path):
    """All vanished in silence; so did a raw cell, and what a link leads to."""
    (tmp_path / "s.gif").write_bytes(base64.b64decode(PIXEL))
    text = '# T\n\n<img srcset="s.gif 2x">\n\n<iframe src="film.html"></iframe>'
    (tmp_path / "my data.csv").write_text("a\n1\n")
    text += "\n\n[the data](my%20data.csv) [a title](#t)"
    raw = nbformat.v4.new_raw_cell("\\newpage")
    article, lost = page_of(tmp_path, nbformat.v4.new_markdown_cell(text), raw)
    for words in ("a raw cell (cell 2)", "the file my data.csv, which is linked"):
        assert words in lost and "#t" not in lost
    assert article.img["src"].startswith("data:image/gif") and "the iframe of film.html" in lost
