"""``ballast doctor``: what is wrong and what to do."""

from __future__ import annotations

import argparse

from api.backend.wiring import open_backend
from api.cli.common import add_home, print_json
from services.process.settings import Settings
from services.process.terminal import Mood, shaded

SHOWN = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}
MOODS: dict[str, Mood] = {"ok": "good", "warn": "warn", "fail": "bad"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = "Exit code 1 where something fails. Nothing is changed."


def run(args: argparse.Namespace) -> int:
    """Look, and print each finding; 1 where one is a failure."""
    from api.system.doctor import examine

    with open_backend(Settings.load(args.home)) as backend:
        found = examine(backend)
    if args.json:
        print_json(found)
    else:
        width = max(len(each.check) for each in found)
        for each in found:
            print(f"{shaded(SHOWN[each.state], MOODS[each.state])}  {each.check.ljust(width)}  {each.said}")
            if each.todo:
                print(f"{'':{6 + width}}  -> {each.todo}")
    return 1 if any(each.state == "fail" for each in found) else 0
