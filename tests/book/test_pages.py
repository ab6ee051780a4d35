"""The built book in Chromium without a network: every page, its figures, their words."""

import os
import re
from pathlib import Path

import pytest

from ..browser import Browser
from .pages import ROOT

PLACES = ("book/_build/html", "_smoke/_build/html")
BUILT = next((ROOT / f for f in PLACES if (ROOT / f / "index.html").exists()), None)
PAGES = sorted(BUILT.glob("*.html")) if BUILT else []
MOVING = {"metrics": 1, "method": 1, "results": 1, "appendix": 1}
LIMIT = 6_000_000  # bytes of script, shared by the pages

FOUND = """(theme, rules) => {
  document.documentElement.dataset.theme = theme;
  const only = rules ? {runOnly: rules} : {};
  const how = {resultTypes: ["violations"], preload: false, ...only};
  return axe.run(how).then(told => told.violations
    .filter(v => ["serious", "critical"].includes(v.impact))
    .map(v => [v.id, v.nodes.map(n => n.target.join(" "))]));
}"""


@pytest.fixture(scope="module")
def browser():
    if not PAGES:
        pytest.skip("the book is not built: make book")
    with Browser() as opened:
        yield opened


def test_scripts_of_the_book_are_small():
    if not PAGES:
        pytest.skip("the book is not built: make book")
    named = {
        s for page in PAGES for s in re.findall(r'<script[^>]*src="([^"?]+)', page.read_text())
    }
    assert "_static/moving.js" in named
    assert sum((BUILT / name).stat().st_size for name in named) < LIMIT


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_works_and_can_be_heard(page, browser):
    browser.open(page)
    figures = browser.run("document.querySelectorAll('.moving.ready svg[aria-label] path').length")
    ready = browser.run("document.querySelectorAll('.moving.ready').length")
    assert ready == MOVING.get(page.stem, 0) and figures >= 10 * ready  # axes alone have fewer
    shown = "document.querySelectorAll('article img:not(.toggler)')"
    alts = browser.run(f"[...{shown}].map(i => i.alt)")
    assert all(len(alt) > 40 and "_images/" not in alt for alt in alts), alts
    assert browser.errors == []
    assert not [a for a in browser.addresses if not a.startswith(("file:", "data:", "blob:"))]
    axe = os.environ.get("PROBNB_AXE")
    if axe:
        browser.run(Path(axe).read_text() + "; 1")
        assert browser.run(f"({FOUND})('light')") == []
        assert browser.run(f"({FOUND})('dark', ['color-contrast'])") == []


def test_accessibility_was_checked():
    if not os.environ.get("PROBNB_AXE"):
        pytest.skip("PROBNB_AXE must be the path of axe.min.js: make browser")
