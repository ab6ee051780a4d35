"""A user's text on its way out: names of columns, groups and files, and what cells hold.

Notes and names are plain text wherever they are kept; it is here that they become markup, so that
nothing of a file is read as Markdown, HTML or mathematics.
"""

import re

_MARKS = r"[\\`*\[\]<|$~#]|(?<![^\W_])_|_(?![^\W_])|\{(?=\{)|(?<=\{)\{"
"""What may be markup: an underscore within a word and a single brace are none."""


_UNSEEN = r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
"""What steers a terminal or the direction of writing, and bytes of a name that are no text."""


class Markdown(str):
    """Markdown that a notebook shows as such."""

    def _repr_markdown_(self):
        return str(self)


class Html(str):
    """HTML that a notebook shows as such."""

    def _repr_html_(self):
        return str(self)


class Named(str):
    """A sentence that names files, which may be called after people.

    Attributes
    ----------
    public : str
        The same without their names, as it may be passed on.
    """

    def __new__(cls, text, public):
        """Take both."""
        one = super().__new__(cls, text)
        one.public = public
        return one


def plain(text):
    r"""Return text whose every character can be seen and written, whatever a file is called.

    Examples
    --------
    >>> plain("a\x1b[31m")
    'a\\x1b[31m'
    """
    return re.sub(_UNSEEN, lambda found: ascii(found[0])[1:-1].replace("udc", "x"), str(text))


def escape(text):
    r"""Return text that Markdown shows as it stands, on one line.

    Examples
    --------
    >>> escape("<b>|a_b|")
    '\\<b>\\|a_b\\|'
    """
    text = re.sub(_MARKS, r"\\\g<0>", " ".join(plain(text).split()))
    return text.replace("&", "&amp;")


def listed(lines):
    """Return lines of plain text as a list."""
    return Markdown("\n".join(f"- {escape(line)}" for line in lines))


def tabled(frame):
    """Return a table of cells that are no markup, its names those of a user."""
    lines = [["", *map(escape, frame)], ["---"] * (1 + len(frame.columns))]
    for name, *cells in frame.itertuples():
        lines.append([escape(name), *(str(cell).replace("\n", " ") for cell in cells)])
    return Markdown("\n".join(f"| {' | '.join(line)} |" for line in lines))


def fenced(text):
    """Return a block of code, whatever stands in it."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
