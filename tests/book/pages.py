"""What guards and tests share about the pages: their prose, and what their cells define."""

import ast
import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"


def prose(page):
    """The text of a page in one line."""
    text = (ROOT / "book" / f"{page}.py").read_text(encoding="utf-8")
    return re.sub(r"\s+", " ", text.replace("\n# ", " "))


def said(words, page):
    """Fail where a page no longer says what its evidence bears out."""
    assert words in prose(page), f"{page} no longer says {words!r}, or its evidence has changed"


def defined(page):
    """Return what the cells of a page import and define, its functions and its CONSTANTS.

    What needs a value that the page computes is not there.
    """
    space = {}
    for node in ast.parse((ROOT / "book" / f"{page}.py").read_text(encoding="utf-8")).body:
        imported = isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)
        names = [name for to in getattr(node, "targets", []) for name in ast.walk(to)]
        constant = any(getattr(name, "id", "").isupper() for name in names)
        if imported or constant:
            with contextlib.suppress(NameError):
                exec(compile(ast.Module([node], []), f"{page}.py", "exec"), space)
    return SimpleNamespace(**space)


def run(page, **given):
    """Run the code of a page in this process, with parameters of its own; return its variables."""
    text = (ROOT / "book" / f"{page}.py").read_text(encoding="utf-8")
    parts = [part.split("\n", 1) for part in re.split(r"^# %%", text, flags=re.M)[1:]]
    space = {"display": lambda *_: None}
    for at, (tags, code) in enumerate(part for part in parts if "[markdown]" not in part[0]):
        exec(compile(code, f"{page}.py, cell {at}", "exec"), space)
        if "parameters" in tags:
            space |= given
    return space
