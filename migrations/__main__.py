"""``python -m migrations upgrade|downgrade|current URL [REVISION]``."""

from __future__ import annotations

import argparse
import sys

from migrations import run
from services.contracts.errors import BallastError


def main(arguments: list[str] | None = None) -> int:
    """Run one command; print where the database is, or one line of what went wrong."""
    parser = argparse.ArgumentParser(prog="python -m migrations", description="Schema of the round store.")
    parser.add_argument("command", choices=("upgrade", "downgrade", "current"))
    parser.add_argument("url", help="sqlite:///path/to/file.db or postgresql://user:password@host:port/name")
    parser.add_argument("revision", nargs="?", help="head for upgrade when not given; needed for downgrade")
    given = parser.parse_args(arguments)
    if given.command == "downgrade" and given.revision is None:
        parser.error("downgrade needs a revision; base drops every table")
    try:
        if given.command == "upgrade":
            found: str | None = run.upgrade(given.url, given.revision or "head")
        elif given.command == "downgrade":
            found = run.downgrade(given.url, given.revision)
        else:
            found = run.current(given.url)
    except BallastError as error:
        print(error, file=sys.stderr)
        return 1
    print(found or "base")
    return 0


if __name__ == "__main__":
    sys.exit(main())
