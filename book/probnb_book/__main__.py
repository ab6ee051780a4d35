"""``python -m probnb_book COMMAND ...``: what the book makes from a shell; ``--help`` of each."""

import sys
from importlib import import_module

from probnb.validation import check_choice

COMMANDS = {
    "anywhere": "anywhere",
    "authors": "authors",
    "claims": "claims",
    "costs": "costs",
    "estimators": "estimators",
    "keep": "storage",
    "ladder": "ladder",
    "maps": "maps",
    "publish": "publish",
    "train": "studies",
    "votes": "cifar10.votes",
}
"""The module of each command, which has a ``main(arguments)``."""


def main(arguments=None):
    """Run a command; return the exit status."""
    name, *rest = sys.argv[1:] if arguments is None else arguments or [""]
    check_choice(name, COMMANDS, "command")
    return import_module(f"{__package__}.{COMMANDS[name]}").main(rest)


if __name__ == "__main__":
    sys.exit(main())
