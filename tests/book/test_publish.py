"""The book as a whole: mended pages, one PDF that lacks nothing, an archive that can be checked."""

import html
import json
import re
import shutil
import subprocess
import unicodedata
import zipfile

import pytest
import yaml

from probnb import __version__
from probnb_book import publish

from ..browser import CHROMIUM
from .pages import ROOT

TOC = {
    "root": "index",
    "parts": [{"caption": "One & two", "chapters": [{"file": "first"}, {"file": "second"}]}],
}


def test_mended_pages_keep_their_text(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        '<script>const THEBE_JS_URL = "https://x"</script><script src="_static/sphinx-thebe.js">'
        '</script><summary aria-label="Toggle hidden content">Show</summary>'
        '<button class="btn search-button-field search-button__button pst-js-only" title="Search" '
        'aria-label="Search" data-x="y">\n <i class="fa"></i>\n <span>Search</span></button>'
        '<button class="btn search-button search-button__button pst-js-only" title="Search" '
        'aria-label="Search">\n <i class="fa"></i>\n</button>'
        '<i class="theme-switch fa" data-mode="dark" title="Dark"></i>'
        '<div role="list" class="citation-list"><div class="citation" role="doc-biblioentry">A'
    )
    publish.mend(tmp_path)
    text = page.read_text()
    assert '<i class="theme-switch fa" data-mode="dark"></i>' in text
    assert "thebe" not in text.lower() and "<summary>Show" in text
    assert text.count('aria-label="Search"') == 1  # of the button that has no words
    assert "<span>Search</span>" in text and text.endswith('<div class="citation">A')
    before = page.stat().st_mtime_ns
    publish.mend(tmp_path)
    assert page.stat().st_mtime_ns == before


@pytest.fixture
def book(tmp_path):
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(TOC))
    built = tmp_path / "built"
    built.mkdir()
    pages = {
        "index": ("A &lt;book&gt;", '<a href="second.html#there">go</a>'),
        "first": ("One", '<p style="height: 400mm">tall</p><p>the end of one</p>'),
        "second": ("Two", '<h2 id="there">There</h2><a href="https://example.org">out</a>'),
    }
    for name, (title, body) in pages.items():
        text = f"<title>{title} &#8212; Book</title><h1>{title}</h1>{body}"
        (built / f"{name}.html").write_text(text)
    return built


def test_pdf_has_contents_and_every_page_with_its_number(book, tmp_path):
    pypdf = pytest.importorskip("pypdf")
    if CHROMIUM is None:
        pytest.skip("needs Chromium: none on the path, nor in CHROME")
    starts = publish.print_pdf(book, tmp_path / "book.pdf", tmp_path / "_toc.yml")
    assert starts == {"index": 2, "first": 3, "second": 5}
    pages = pypdf.PdfReader(tmp_path / "book.pdf").pages
    text = [page.extract_text() for page in pages]
    assert len(pages) == 5 and all(str(k + 1) in t for k, t in enumerate(text))
    assert re.search(r"A <book>\s+2\s+One & two\s+One\s+3\s+Two\s+5", text[0])
    assert "the end of one" in text[3]

    def targets(page):
        actions = [note.get_object()["/A"] for note in page["/Annots"]]
        return [a["/URI"] if "/URI" in a else pages.index(a["/D"][0].get_object()) for a in actions]

    assert targets(pages[0]) == [1, 2, 4] and targets(pages[1]) == [4]
    assert targets(pages[4]) == ["https://example.org/"]
    outline = pypdf.PdfReader(tmp_path / "book.pdf").outline
    assert [o.title for o in outline if not isinstance(o, list)] == ["A <book>", "One", "Two"]


def test_a_page_that_is_not_built_is_named(book, tmp_path):
    pytest.importorskip("pypdf")
    (book / "first.html").unlink()
    with pytest.raises(FileNotFoundError, match="lacks first"):
        publish.print_pdf(book, tmp_path / "book.pdf", tmp_path / "_toc.yml")
    assert not (tmp_path / "book.pdf").exists()


def test_chromium_that_is_missing_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CHROME", "nowhere")
    with pytest.raises(FileNotFoundError, match="CHROME must be the path"):
        publish.find_chromium()


def letters(text):
    """Letters alone; a ligature of print is the letters it stands for."""
    return re.sub(r"[\W\d_]", "", unicodedata.normalize("NFKC", html.unescape(text)))


def test_every_page_of_the_printed_book_is_whole():
    """Of `make pdf`: every title, every paragraph, nothing beyond the edge of the sheet."""
    pypdf = pytest.importorskip("pypdf")
    if not (ROOT / "book.pdf").exists() or not publish.BUILT.exists():
        pytest.skip("the book is not printed: make pdf")
    printed = pypdf.PdfReader(ROOT / "book.pdf")
    pages, chapters = printed.pages, [o for o in printed.outline if not isinstance(o, list)]
    starts = [printed.get_destination_page_number(chapter) for chapter in chapters]
    names = [name for chapters in publish.pages_of().values() for name in chapters]
    assert len(starts) == len(names)
    for name, start, end in zip(names, starts, [*starts[1:], len(pages)]):
        source = (publish.BUILT / f"{name}.html").read_text()
        article = source[source.index("<article") : source.index("</article>")]
        told = "".join(letters(page.extract_text()) for page in pages[start:end])
        plain = [p for p in re.findall(r"<p>([^<>]{40,}?)</p>", article) if "\\" not in p]
        lost = [p for p in plain if not stands(letters(p), told)]
        assert not lost, (name, lost[:3])
    for page in pages:
        assert furthest(page) < float(page.mediabox.right), page.extract_text()


def stands(text, told):
    """Whether a text is there, in one piece or, over the edge of a sheet, in two."""
    return any(text[:k] in told and text[k:] in told for k in range(len(text), 0, -1))


def furthest(page):
    """Where the text that begins furthest to the right begins."""
    places = [0]

    def look(text, cm, tm, *font):
        if text.strip():
            places.append(tm[4] * cm[0] + cm[4])

    page.extract_text(visitor_text=look)
    return max(places)


@pytest.fixture
def archive(book, tmp_path):
    (tmp_path / "results" / "deep").mkdir(parents=True)
    (tmp_path / "results" / "deep" / "a b.csv").write_text("x\n1\n")
    (tmp_path / "LICENSE").write_text("free")
    return publish.write_archive(None, book, tmp_path)


def test_archive_says_what_is_in_it(archive, tmp_path):
    stem = f"probnb-{__version__}"
    assert archive == tmp_path / f"{stem}.zip"
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path / "out")
    folder = tmp_path / "out" / stem
    sums = (folder / "SHA256SUMS").read_text().splitlines()
    listed = [line.split("  ", 1)[1] for line in sums]
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert listed == sorted(found - {"SHA256SUMS"})
    assert {"results/deep/a b.csv", "LICENSE", "book/index.html"} <= set(listed)
    if shutil.which("sha256sum") is None:
        pytest.skip("needs sha256sum")
    check = ["sha256sum", "-c", "--quiet", "SHA256SUMS"]
    assert subprocess.run(check, cwd=folder).returncode == 0
    (folder / "LICENSE").write_text("not free")
    assert subprocess.run(check, cwd=folder, capture_output=True).returncode != 0


def test_nothing_is_packed_without_a_book(tmp_path):
    with pytest.raises(FileNotFoundError, match="make book"):
        publish.write_archive(tmp_path / "x.zip", tmp_path, tmp_path)
    assert not (tmp_path / "x.zip").exists()


def test_citations_agree():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    deposit = json.loads((ROOT / ".zenodo.json").read_text())
    assert cited["version"] == deposit["version"] == __version__
    assert cited["title"] == deposit["title"] and cited["license"] == deposit["license"].upper()
    assert [a["name"] for a in cited["authors"]] == [c["name"] for c in deposit["creators"]]
    assert cited["keywords"] == deposit["keywords"]
    assert cited["preferred-citation"]["title"] in deposit["description"]
