"""``python -m probnb_book COMMAND ...``: what the book makes from a shell; ``--help`` of each."""

import argparse
import sys
from importlib import import_module

_OWN = ("anywhere", "authors", "claims", "costs", "estimators", "ladder", "maps", "publish")
COMMANDS = dict(zip(_OWN, _OWN)) | {"keep": "storage", "train": "studies", "votes": "cifar10.votes"}
"""The module of each command, most of them of its name; it has a ``main(arguments)``."""


def main(arguments=None):
    """Run a command; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m probnb_book", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="--help says which")
    given = parser.parse_args(arguments)
    try:
        return import_module(f"{__package__}.{COMMANDS[given.command]}").main(given.arguments)
    except (ValueError, OSError, ImportError) as error:
        print(f"{parser.prog} {given.command}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
