"""What is handed on: pages that can be heard, one PDF, an archive with checksums, a single page.

``python -m probnb_book publish pdf`` prints the pages that ``make book`` built through headless
Chromium into ``book.pdf``; ``python -m probnb_book publish archive`` puts book and stored results
into ``probnb-VERSION.zip``; ``python -m probnb_book publish page out.ipynb`` writes ``out.html``:
an executed notebook as the book would show it, with code folded and mathematics set, as one file
that opens without a network. As an extension of Sphinx the module mends what theme and extensions
leave.
"""

import atexit
import base64
import hashlib
import html
import inspect
import mimetypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import files
from itertools import accumulate
from pathlib import Path
from urllib.parse import quote, unquote
from zipfile import ZIP_DEFLATED, ZipFile

import nbclient
import nbformat
import yaml
from bs4 import BeautifulSoup
from docutils import nodes
from jupyter_cache.executors import utils as executors
from jupyter_client.kernelspec import NoSuchKernel
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from probnb import __version__, store
from probnb.validation import check_choice

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "book" / "_build" / "html"
KEPT = ("results", "CITATION.cff", "LICENSE", "README.md", "requirements.txt", "book.pdf")
"""What an archive holds beside the book, where it is there."""

MENDS = (  # in every built page
    # a script that is declared twice, and would ask a network
    (r"<script>const THEBE_JS_URL.*?</script>|<script[^>]*sphinx-thebe[^>]*></script>", ""),
    # names that hide the words that are seen, and roles that do not fit their elements
    (
        r' aria-label="Toggle hidden content"'
        r'|(?<=search-button__button pst-js-only") title="Search" aria-label="Search"'
        r"(?=[^>]*>\s*<i [^>]*></i>\s*<span)",
        "",
    ),
    (r'(<i [^>]*class="theme-switch [^>]*) title="[^"]*"', r"\1"),
    (r' role="list"(?= class="citation-list")| role="doc-biblioentry"', ""),
)

_CONTENTS = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Contents</title><style>
@page {{size: A4; margin: 25mm}} body {{font: 12pt sans-serif}} a {{color: inherit}}
p {{display: flex; justify-content: space-between}}</style><h1>{title}</h1>{lines}</html>"""
_NUMBERS = """<!DOCTYPE html><meta charset="utf-8"><style>@page {{size: A4; margin: 0}}
body {{margin: 0; font: 9pt sans-serif}} div {{height: 296mm; break-after: page; display: flex;
align-items: end; justify-content: center}} span {{margin-bottom: 8mm}}</style>{lines}"""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_STYLES = re.compile(r'<link[^>]*href="(_static/[^"?]+\.css)[^>]*>')
_RUNS = ("script", "iframe", "object", "embed", "base", "meta", "link", "animate", "set")
"""Elements that run or load something, or change what does."""

_SHOWN = re.compile("text/(plain|html|markdown|latex)|image/.*")
"""Kinds of output that need no script."""

_CITED = "## References\n\n```{bibliography}\n:filter: docname in docnames\n```\n"
_FRAME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{styles}</style><style>
body {{display: block; padding: 1.5rem}} article {{max-width: 60rem; margin: auto}}
.headerlink {{display: none}}</style><script>document.documentElement.dataset.theme =
matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
MathJax = {{options: {{processHtmlClass: "math", ignoreHtmlClass: ".*"}}}}</script>
<script>{mathjax}</script></head><body>{article}</body></html>
"""


def setup(app):
    """Mend the pages once Sphinx has written them; name those whose code failed."""
    executors.executenb = _execute
    app.connect("source-read", read_failure)
    app.connect("doctree-resolved", show_failure)
    app.connect("build-finished", lambda app, error: error or mend(app.outdir))
    app.connect("build-finished", lambda app, error: error or report_failures(app))
    return {"parallel_read_safe": True}


def failure(app, page):
    """Return the traceback of a page whose code failed, None where it ran or was not run."""
    run = app.env.nb_metadata.get(page, {}).get("exec_data")
    return None if run is None or run["succeeded"] else (run["traceback"] or "no traceback")


def _execute(notebook, **settings):
    """Run a notebook; a kernel that dies, as for want of memory, or never starts fails its page."""
    try:  # a machine with much else to do needs more than nbclient's minute for a kernel to start
        return nbclient.execute(notebook, startup_timeout=600, **settings)
    except (RuntimeError, NoSuchKernel) as error:
        raise CellExecutionError(str(error), type(error).__name__, str(error)) from error


def read_failure(app, page, source):
    """Let a page that is no notebook fail by itself: one that says so stands in its place."""
    if app.env.doc2path(page).endswith(".ipynb"):
        try:
            nbformat.reads(source[0], as_version=4)
        except (ValueError, nbformat.ValidationError) as error:
            said = f"{page}.ipynb is no notebook: {str(error)[:200]}"
            cells = [new_markdown_cell(f"# {page}"), new_code_cell(f"raise ValueError({said!r})")]
            source[0] = nbformat.writes(new_notebook(cells=cells))


def show_failure(app, doctree, page):
    """Put a failed page's error in a box under its title, since its cell may be one not shown."""
    traceback = failure(app, page)
    if traceback is not None:
        said = "The code of this page failed. What comes after the cell that failed is missing."
        last = [line for line in _COLOUR.sub("", traceback).splitlines() if line.strip()][-1]
        box = nodes.error("", nodes.paragraph(text=said), nodes.literal_block(text=last))
        title = doctree.next_node(nodes.title)
        title.parent.insert(title.parent.index(title) + 1, box)


def report_failures(app):
    """End the build with the names of the pages that failed, and not with 0."""
    failed = [page for page in sorted(app.env.found_docs) if failure(app, page) is not None]
    if failed:
        app.statuscode = 1
        # after jupyter-book's own last words
        atexit.register(
            print, f"Pages that failed: {', '.join(failed)}. The others are built.", file=sys.stderr
        )


def mend(folder):
    """Apply `MENDS` to every page of a folder."""
    for page in Path(folder).glob("*.html"):
        text = mended = page.read_text(encoding="utf-8")
        for pattern, new in MENDS:
            mended = re.sub(pattern, new, mended, flags=re.DOTALL)
        if mended != text:
            page.write_text(mended, encoding="utf-8")


def pages_of(contents=ROOT / "_toc.yml"):
    """List the pages of a table of contents in their order, by the caption they stand under."""
    toc = yaml.safe_load(Path(contents).read_text(encoding="utf-8"))
    parts = {part["caption"]: [c["file"] for c in part["chapters"]] for part in toc["parts"]}
    return {"": [toc["root"]], **parts}


def find_chromium():
    """Return Chromium's path: that of the environment's ``CHROME``, or the one that is there.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    names, own = ("chromium", "chromium-browser", "google-chrome"), os.environ.get("CHROME", "")
    for found in filter(None, map(shutil.which, (own, *names))):
        return found
    others = f"none of {', '.join(names)} is on the path"
    raise FileNotFoundError(
        f"CHROME must be the path of Chromium or Chrome; got {own!r}, and {others}."
    )


def print_pdf(built=BUILT, path=ROOT / "book.pdf", contents=ROOT / "_toc.yml"):
    """Print a built book: contents, then every page in their order, with page numbers and links.

    Parameters
    ----------
    built : path-like
        Folder of the built pages.
    path : path-like
        The PDF.
    contents : path-like
        The book's ``_toc.yml``.

    Returns
    -------
    dict of str to int
        The number of the first page of each chapter.

    Raises
    ------
    FileNotFoundError
        If a page is not built or there is no Chromium.
    """
    from pypdf import PdfReader, PdfWriter

    built, parts = Path(built).resolve(), pages_of(contents)
    names = [name for chapters in parts.values() for name in chapters]
    missing = [name for name in names if not (built / f"{name}.html").is_file()]
    if missing:
        raise FileNotFoundError(f"built must hold every page; {built} lacks {', '.join(missing)}.")
    titles = {name: _title(built / f"{name}.html") for name in names}
    with tempfile.TemporaryDirectory() as folder:
        folder, whole = Path(folder), PdfWriter()
        printed = [PdfReader(_print(built / f"{name}.html", folder)) for name in names]
        lengths = [2, *(len(pdf.pages) for pdf in printed)]  # after one page of contents
        starts = dict(zip(names, accumulate(lengths)))
        lines = ""
        for part, chapters in parts.items():
            lines += f"<h3>{html.escape(part)}</h3>"
            for n in chapters:
                lines += f'<p><a href="{(built / n).as_uri()}.html">{titles[n]}</a> {starts[n]}</p>'
        contents = _CONTENTS.format(title=titles[names[0]], lines=lines)
        whole.append(_print(folder / "contents.html", folder, contents), import_outline=False)
        for pdf in printed:
            whole.append(pdf)  # with the outline of its headings
        lines = "".join(f"<div><span>{k + 1}</span></div>" for k in range(len(whole.pages)))
        lines = _NUMBERS.format(lines=lines)
        numbers = PdfReader(_print(folder / "numbers.html", folder, lines))
        for page, number in zip(whole.pages, numbers.pages):
            page.merge_page(number)
            _link(page, whole, built.as_uri(), starts)
        whole.add_metadata({"/Title": html.unescape(titles[names[0]])})
        whole.compress_identical_objects()
        store.replace_file(path, whole.write)
    return starts


def _print(page, folder, text=None):
    """One page as PDF; the clock runs ahead until its mathematics is set."""
    if text is not None:
        page.write_text(text, encoding="utf-8")
    path = folder / f"{page.stem}.pdf"
    options = [
        "--headless",
        "--disable-gpu",
        "--no-sandbox",
        "--no-pdf-header-footer",
        "--disable-background-networking",
        "--generate-pdf-document-outline",
        "--virtual-time-budget=60000",
        f"--user-data-dir={folder / 'profile'}",
    ]
    command = [find_chromium(), *options, f"--print-to-pdf={path}", page.as_uri()]
    return _made(path, f"{page} was not printed", command, timeout=600)


def _made(path, otherwise, command, **settings):
    """Run a command that makes a file."""
    done = subprocess.run(command, capture_output=True, text=True, **settings)
    if not path.exists():
        raise RuntimeError(f"{otherwise}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return path


def _title(page):
    title = re.search(r"<title>(.*?)</title>", page.read_text(encoding="utf-8"), re.DOTALL).group(1)
    return re.split(r"\s+(?:—|&#8212;)\s+", title.strip())[0]


def _link(page, whole, base, starts):
    """Turn links between the book's pages into jumps; those to its other files, to the contents."""
    from pypdf.generic import ArrayObject, DictionaryObject, NameObject

    for note in [note.get_object() for note in page.get("/Annots", [])]:
        address = note.get("/A", {}).get("/URI", "")
        if address.startswith("file:"):
            name = address.removeprefix(f"{base}/").split("#")[0].removesuffix(".html")
            target = whole.pages[starts.get(name, 1) - 1].indirect_reference
            go = {"/S": NameObject("/GoTo"), "/D": ArrayObject([target, NameObject("/Fit")])}
            note[NameObject("/A")] = DictionaryObject({NameObject(k): v for k, v in go.items()})


def write_archive(path=None, built=BUILT, root=ROOT):
    """Pack the built book and the stored results, with the SHA-256 of every file in ``SHA256SUMS``.

    Unpacked, ``sha256sum -c SHA256SUMS`` in the folder says whether all of it is as it was.

    Parameters
    ----------
    path : path-like, optional
        The archive; by default ``probnb-VERSION.zip`` in the project's folder.
    built : path-like
        Folder of the built pages.
    root : path-like
        The project's folder, for what `KEPT` names.

    Returns
    -------
    pathlib.Path
        The archive, whole or not there at all.

    Raises
    ------
    FileNotFoundError
        If the book is not built.
    """
    root, stem = Path(root), f"probnb-{__version__}"
    path = root / f"{stem}.zip" if path is None else Path(path)
    if not Path(built, "index.html").is_file():
        raise FileNotFoundError(f"built must hold a built book (make book); got {built}.")
    found = {f"book/{p.relative_to(built).as_posix()}": p for p in Path(built).rglob("*")}
    for kept in (root / name for name in KEPT):
        found |= {p.relative_to(root).as_posix(): p for p in (kept, *kept.rglob("*"))}
    found = {name: p for name, p in sorted(found.items()) if p.is_file()}

    sums = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {name}\n" for name, p in found.items()]

    def write(file):
        with ZipFile(file, "w", ZIP_DEFLATED, strict_timestamps=False) as archive:
            for name, source in found.items():
                archive.write(source, f"{stem}/{name}")
            archive.writestr(f"{stem}/SHA256SUMS", "".join(sums))

    store.replace_file(path, write)
    return path


def write_page(notebook, page=None):
    """Write a notebook with its outputs as one HTML file.

    It loads nothing and runs no script but that of its mathematics. Pictures are taken into it,
    pasted ones too. An output that needs a script is shown as the picture or text that it has
    besides.

    Parameters
    ----------
    notebook : path-like
        An executed notebook; it is not run again.
    page : path-like, optional
        Where to; by default beside the notebook, with the ending ``.html``.

    Returns
    -------
    pathlib.Path
        The file, whole or not there at all.

    Raises
    ------
    FileNotFoundError
        If there is no such notebook.
    RuntimeError
        If jupyter-book does not build it; with what it said.

    Warns
    -----
    UserWarning
        If something is not in the page, which says so where it stood.
    """
    notebook, lost = Path(notebook), []
    if notebook.suffix != ".ipynb" or not notebook.is_file():
        raise FileNotFoundError(f"notebook must be an .ipynb file; found none at {notebook}.")
    page = notebook.with_suffix(".html") if page is None else Path(page)
    with tempfile.TemporaryDirectory() as folder:
        text = _one_file(_build(notebook, Path(folder), lost), notebook.parent, lost)
    store.replace_file(page, lambda path: Path(path).write_text(text, encoding="utf-8"))
    if lost:
        warnings.warn(f"{page} lacks: {'; '.join(lost)}.", stacklevel=2)
    return page


def _build(notebook, folder, lost):
    """Let jupyter-book build the page by itself, with the book's settings."""
    try:
        content = nbformat.read(notebook, as_version=4)
    except ValueError as error:  # no JSON, or no text
        raise ValueError(f"notebook must be one; {notebook} cannot be read: {error}.") from None
    for k, cell in enumerate(content["cells"]):
        _paste(cell, folder, f"pasted-{k}")
        cell["outputs"] = [o for o in cell.get("outputs", []) if _still(o, f"cell {k + 1}", lost)]
        if cell["cell_type"] != "code":
            del cell["outputs"]
        if cell["cell_type"] == "raw" and cell["source"].strip():
            lost.append(f"a raw cell (cell {k + 1})")
    if any("{cite}" in cell["source"] for cell in content["cells"]):
        content["cells"].append(new_markdown_cell(_CITED))
    nbformat.write(content, folder / "page.ipynb")
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    settings["execute"] = {"execute_notebooks": "off", "stderr_output": "remove"}
    shutil.copy(ROOT / "book" / "references.bib", folder)
    for ours in ("html_static_path", "html_css_files", "html_js_files"):
        settings["sphinx"]["config"].pop(ours, None)
    (folder / "_config.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    run = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", run, "build", "page.ipynb", "--quiet"]
    command += ["--config", "_config.yml", "--path-output", "site"]
    page = folder / "site" / "_build" / "_page" / "page" / "html" / "page.html"
    return _made(page, f"{notebook} was not built", command, cwd=folder)


def _paste(cell, folder, stem):
    """Write the pictures that were pasted into a cell, whose names other cells may have too."""
    pasted = cell.pop("attachments", {})
    for number, name in enumerate(sorted(pasted, key=len, reverse=True)):
        ((kind, data),) = [*pasted[name].items()][:1]
        path = folder / f"{stem}-{number}{mimetypes.guess_extension(kind) or '.bin'}"
        path.write_bytes(base64.b64decode("".join(data)))
        for spelt in (name, quote(name)):
            cell["source"] = cell["source"].replace(f"attachment:{spelt}", path.name)


def _still(output, place, lost):
    """Whether to show an output, of which only what needs no script is kept."""
    data = output.get("data", {})
    text = {kind: "".join(value) for kind, value in data.items() if kind.startswith("text/")}
    runs = [kind for kind in data if not _SHOWN.fullmatch(kind)]
    if re.search("<(script|iframe|object|embed)", text.get("text/html", ""), re.IGNORECASE):
        runs.append("text/html")
    if not runs:
        return True
    if re.search(r"\d%\|", text.get("text/plain", "")):  # a progress bar
        return False
    still = any(kind.startswith("image/") for kind in data)
    for kind in runs:
        if kind != "text/html" or still:
            del data[kind]
    told = "an interactive output" + ", but for a picture of it" * still
    lost.append(f"{told} ({place})")
    if "text/html" in data or not still:
        instead = f"<p><em>Here the notebook has {told}.</em></p>"
        data["text/html"] = instead + text.get("text/html", "")
    return True


def _one_file(page, beside, lost):
    """The article of a built page with its styles, pictures and mathematics inside."""
    html, built = page.read_text(encoding="utf-8"), page.parent
    article = BeautifulSoup(html, "html.parser").find("article")
    for tag in article.find_all(_RUNS):
        if tag.name in ("iframe", "object", "embed"):
            lost.append(f"the {tag.name} of {tag.get('src') or tag.get('data')}")
        tag.decompose()
    for tag in article.select('a[href^="#"]'):
        if (beside / unquote(tag["href"][1:])).is_file():
            lost.append(f"the file {unquote(tag['href'][1:])}, which is linked")
    for tag in article.select("img[srcset]:not([src])"):
        tag["src"] = tag["srcset"].split()[0].rstrip(",")
    for tag in article.find_all("style"):
        tag.string = _unloaded(tag.string or "")
    for tag in article.find_all(True):
        for name, value in [*tag.attrs.items()]:
            start = re.sub(r"[\s\0]", "", str(value)).lower()
            runs = start.startswith(("javascript:", "vbscript:", "data:text/html"))
            if name.startswith("on") or name in ("srcset", "srcdoc", "background") or runs:
                del tag[name]
            elif name == "style":
                tag[name] = _unloaded(value)
            elif name in ("src", "poster") or (tag.name == "image" and name.endswith("href")):
                _embed(tag, name, (built, beside), lost)
    sheets = [(built / name).read_text(encoding="utf-8") for name in _STYLES.findall(html)]
    sheets.append((ROOT / "book" / "_static" / "book.css").read_text(encoding="utf-8"))
    shipped = files("sphinx-mathjax-offline")
    (mathjax,) = (f.locate() for f in shipped if str(f).endswith("mathjax/tex-svg.js"))
    return _FRAME.format(
        title=re.search(r"<title>(.*?)</title>", html, re.DOTALL).group(1),
        styles=_unloaded("\n".join(sheets)),
        mathjax=Path(mathjax).read_text(encoding="utf-8").replace("</script", "<\\/script"),
        article=article,
    )


def _unloaded(style):
    """Rules of style that fetch nothing."""
    return re.sub(r"url\((?![\"']?(data:|#))[^)]*\)|@import", "none", style)


def _embed(tag, name, folders, lost):
    """Take a picture, a sound or a film into the page; say where there is none."""
    value = tag[name]
    if value.startswith("data:"):
        return
    kind = mimetypes.guess_type(value)[0] or ""
    found = [folder / unquote(value) for folder in folders if (folder / unquote(value)).is_file()]
    if found and kind.startswith(("image/", "audio/", "video/")):
        tag[name] = f"data:{kind};base64,{base64.b64encode(found[0].read_bytes()).decode()}"
        return
    lost.append(f"the picture {value}")
    missing = BeautifulSoup("<em></em>", "html.parser").em
    missing.string = f"[{tag.get('alt') or ''}: {value} is not in this page]"
    tag.replace_with(missing)


def main(arguments):
    """Print what was made."""
    makes = {"pdf": print_pdf, "archive": write_archive, "page": write_page}
    name, *given = arguments or [""]
    make = makes[check_choice(name, makes, "command")]
    try:
        inspect.signature(make).bind(*given)
    except TypeError as error:
        raise ValueError(f"{name} must be given {inspect.signature(make)}; {error}.") from None
    print(make(*given))
