"""The command ``ballast``: what the OEM's operators type on the service's own host."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol

from services.contracts.errors import BallastError
from services.contracts.plain_words import plain
from services.process.command_line import ShowVersion, file_trouble, print_any_letter, reader_left, say_all
from services.process.parser import Parser
from services.process.past_proxies import reach_this_host_directly
from services.process.private_files import keep_private


class Command(Protocol):
    """A module with a command. It is imported only when the command is asked for."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command: 0 when it did what was asked, 1 with one line on stderr when it could not, 2 for wrong usage."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:  # as a program of its own: what it writes is for whoever started it alone
        keep_private()
        reach_this_host_directly()
        print_any_letter()
        gc.disable()
    try:
        wanted, command = _parse(given)
        if arguments is None:
            # What was imported stays: to look again and again what of it can go is a tenth of a short call and more.
            gc.freeze()
            gc.enable()
        code = command.run(wanted)
        say_all()
        return code
    except BallastError as error:
        print(f"ballast: {plain(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return reader_left()
    except OSError as error:
        return file_trouble("ballast", error)


def _parse(given: list[str]) -> tuple[argparse.Namespace, Command]:
    """Read the arguments; only the command that is asked for is imported."""
    first = next((word for word in given if not word.startswith("-")), None)
    chosen = first if first in COMMANDS else None
    command = _module(chosen) if chosen else None
    parser = make_parser({} if chosen is None or command is None else {chosen: command})
    parser.set_defaults(whole=lambda: make_parser({name: _module(name) for name in COMMANDS}))
    wanted = parser.parse_args(given)
    if command is None:
        parser.error("give a command; --help lists them")
    return wanted, command


def make_parser(commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """Parser that knows the names of all commands, and the arguments of the given ones."""
    parser = Parser(
        prog="ballast", description="Certified fault diagnosis across plants that do not share their data."
    )
    parser.add_argument("--version", action=ShowVersion)
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, about in COMMANDS.items():
        made = parsers.add_parser(
            name, help=about, description=about[0].upper() + about[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in commands:
            commands[name].add_arguments(made)
    return parser


def _module(name: str) -> Command:
    """Module of a command, imported only now."""
    command: Command
    match name:
        case "up":
            from api.cli.commands import up as command
        case "demo":
            from api.cli.commands import demo as command
        case "simulate":
            from services.plant_simulator import cli as command
        case "migrate":
            from api.cli.commands import migrate as command
        case "backup":
            from api.cli.commands import backup as command
        case "restore":
            from api.cli.commands import restore as command
        case "retention":
            from api.cli.commands import retention as command
        case "doctor":
            from api.cli.commands import doctor as command
        case "token":
            from api.cli.commands import token as command
        case "site":
            from api.cli.commands import site as command
        case "asset-type":
            from api.cli.commands import asset_type as command
        case "plan":
            from api.cli.commands import plan as command
        case "run":
            from api.cli.commands import run as command
        case "model":
            from api.cli.commands import model as command
        case "verify":
            from api.cli.commands import verify as command
        case "evidence":
            from api.cli.commands import evidence as command
        case "audit":
            from api.cli.commands import audit as command
        case "webhook":
            from api.cli.commands import webhook as command
        case "key":
            from api.cli.commands import key as command
        case "bus":
            from api.cli.commands import bus as command
        case "health":
            from api.cli.commands import health as command
        case "completion":
            from api.cli.commands import completion as command
        case _:
            raise KeyError(name)
    return command


COMMANDS = {
    "up": "start the OEM's side and keep it running",
    "demo": "show the whole service on this machine, with simulated plants",
    "simulate": "write the raw signals of simulated plants",
    "migrate": "make the database, or bring it up to date",
    "backup": "write everything that the OEM's side keeps into one sealed file",
    "restore": "make a home folder from a backup",
    "retention": "forget what the settings say is old",
    "doctor": "say what is wrong and what to do",
    "token": "make, list and revoke API tokens",
    "site": "enrol, list, suspend, activate and remove plants",
    "asset-type": "add and list asset types",
    "plan": "create, change, compare, pause, trigger and archive plans",
    "run": "list, show, watch and cancel runs",
    "model": "list, show, promote and roll back models",
    "verify": "prove a model's bounds again from what it carries",
    "evidence": "prove from two signed answers that a plant contradicts itself",
    "audit": "list and verify the audit trail",
    "webhook": "add, list, try and remove addresses that events are sent to",
    "key": "list the keys that all API processes share, and replace one",
    "bus": "make and run NATS servers of a cluster",
    "health": "say whether one part of the OEM's side is at work",
    "completion": "print what makes a shell complete this command",
}
"""Help of each command."""


if __name__ == "__main__":
    sys.exit(main())
