"""``ballast completion``: what makes a shell complete the command."""

from __future__ import annotations

import argparse

from services.process.completion import SHELLS, completion


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's argument."""
    parser.add_argument("shell", choices=SHELLS, help="such as in: source <(ballast completion bash)")


def run(args: argparse.Namespace) -> int:
    """Print the script. ``whole`` of the arguments makes the parser of all commands."""
    print(completion(args.whole(), args.shell), end="")
    return 0
