"""An executed notebook as one HTML file that opens in a browser without a network.

``python -m probnb.page out.ipynb`` writes ``out.html``: the page as the book would show it, with
code folded and mathematics set.
"""

from __future__ import annotations

import base64
import mimetypes
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import files
from pathlib import Path

import nbformat
import yaml

from . import store

__all__ = ["write_page"]

BOOK = Path(__file__).resolve().parent.parent
_STYLES = re.compile(r'<link[^>]*href="(_static/[^"?]+\.css)[^>]*>')
_PICTURE = re.compile(r'src="(_images/[^"]+)"')
_CITED = "## References\n\n```{bibliography}\n:filter: docname in docnames\n```\n"
_FRAME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{styles}</style>
<style>body {{display: block; padding: 1.5rem}} article {{max-width: 60rem; margin: auto}}
.headerlink {{display: none}}</style>
<script>document.documentElement.dataset.theme =
matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
MathJax = {{options: {{processHtmlClass: "math", ignoreHtmlClass: ".*"}}}}</script>
<script>{mathjax}</script>
</head><body>{article}</body></html>
"""


def write_page(notebook, page=None):
    """Write a notebook with its outputs as one HTML file.

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
    """
    notebook = Path(notebook)
    if notebook.suffix != ".ipynb" or not notebook.is_file():
        raise FileNotFoundError(f"notebook must be an .ipynb file; found none at {notebook}.")
    page = notebook.with_suffix(".html") if page is None else Path(page)
    with tempfile.TemporaryDirectory() as folder:
        built = _build(notebook, Path(folder))
        text = _one_file((built / "page.html").read_text(encoding="utf-8"), built)
    store.replace_file(page, lambda path: Path(path).write_text(text, encoding="utf-8"))
    return page


def _build(notebook, folder):
    """Let jupyter-book build the page by itself, with the book's settings."""
    content = nbformat.read(notebook, as_version=4)
    if any("{cite}" in cell["source"] for cell in content["cells"]):
        content["cells"].append(nbformat.v4.new_markdown_cell(_CITED))
    nbformat.write(content, folder / "page.ipynb")
    settings = yaml.safe_load((BOOK / "_config.yml").read_text(encoding="utf-8"))
    settings["execute"] = {"execute_notebooks": "off", "stderr_output": "remove"}
    shutil.copy(BOOK / "book" / "references.bib", folder)
    for ours in ("html_static_path", "html_css_files", "html_js_files"):
        settings["sphinx"]["config"].pop(ours, None)
    (folder / "_config.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    run = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", run, "build", "page.ipynb", "--quiet"]
    done = subprocess.run(
        [*command, "--config", "_config.yml", "--path-output", "site"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    built = folder / "site" / "_build" / "_page" / "page" / "html"
    if not (built / "page.html").exists():
        raise RuntimeError(f"{notebook} was not built: {done.stdout[-500:]}{done.stderr[-500:]}")
    return built


def _one_file(html, built):
    """The article of a built page with its styles, pictures and mathematics inside."""
    article = re.search(r"<article.*</article>", html, re.DOTALL).group()
    article = re.sub(r"<script.*?</script>", "", article, flags=re.DOTALL)
    article = _PICTURE.sub(lambda found: f'src="{_embedded(built / found.group(1))}"', article)
    sheets = [(built / name).read_text(encoding="utf-8") for name in _STYLES.findall(html)]
    sheets.append((BOOK / "book" / "_static" / "book.css").read_text(encoding="utf-8"))
    shipped = files("sphinx-mathjax-offline")
    (mathjax,) = (f.locate() for f in shipped if str(f).endswith("mathjax/tex-svg.js"))
    return _FRAME.format(
        title=re.search(r"<title>(.*?)</title>", html, re.DOTALL).group(1),
        styles=re.sub(r"url\((?![\"']?data:)[^)]*\)", "none", "\n".join(sheets)),
        mathjax=Path(mathjax).read_text(encoding="utf-8").replace("</script", "<\\/script"),
        article=article,
    )


def _embedded(path):
    kind = mimetypes.guess_type(path.name)[0]
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


if __name__ == "__main__":
    print(write_page(*sys.argv[1:]))
