"""What the parts of a division into training, validation and test rows are called."""

import re

__all__ = ["part_names", "parts_of"]

PARTS = {
    "train": "train training",
    "val": "val valid validate validation dev development tune tuning",
    "test": "test tests testing holdout heldout",
}
"""What the parts of a division are called; an eval is a test, and where there is one, a val."""


def parts_of(values):
    """Return "train", "val" or "test" for each value of a division, None for another word.

    Examples
    --------
    >>> parts_of(["Training", "hold-out", "Test set", "eval", "A"])
    ['train', 'test', 'test', 'val', None]
    """
    words = {word: part for part, words in PARTS.items() for word in words.split()}
    plain = [re.sub(r"[\W_]", "", str(value).casefold()) for value in values]
    plain = [re.sub(r"(sets?|data|split|part|images|rows)$", "", value) for value in plain]
    several = any(words.get(value) == "test" for value in plain)
    words |= dict.fromkeys(("eval", "evaluation"), "val" if several else "test")
    return [words.get(value) for value in plain]


def part_names(part, names):
    """Return those of the names in a column that mean a part: by its word, or as it is spelt."""
    same = [name for name in names if name.casefold() == str(part).casefold()]
    (word,), words = parts_of([part]), parts_of(names)
    if word is None or (same and word != str(part).casefold()):
        return same
    return [name for name, own in zip(names, words) if own == word]
