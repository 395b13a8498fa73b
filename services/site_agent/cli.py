"""``ballast-site``: the plant's command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from services.contracts.errors import BallastError
from services.contracts.plain_words import plain
from services.process.command_line import (
    ShowVersion,
    add_json,
    add_ready_json,
    file_trouble,
    port,
    print_any_letter,
    reader_left,
    say_all,
    seconds,
    whole_number,
)
from services.process.completion import SHELLS, completion
from services.process.parser import Parser
from services.process.past_proxies import reach_this_host_directly
from services.process.private_files import keep_private
from services.site_agent import actions
from services.site_agent.outgoing import ledger_commands
from services.site_agent.settings import DEFAULT_SERVER
from services.site_agent.setup import key_commands

DEFAULT_CONFIG = Path("site.toml")
DEFAULT_PORT = 8790  # of the plant's console, on the loopback
SERVES = frozenset({"run", "console"})
"""Commands that go on until they are told to stop."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 when it went well, 1 with one line on stderr when not, 2 for a wrong command line."""
    if arguments is None:  # as a program of its own: who could write its policy would let rows leave
        keep_private()
        reach_this_host_directly()
        print_any_letter()
    chosen = _parser().parse_args(arguments)
    try:
        code: int = chosen.run(chosen)
        say_all()
    except BallastError as error:
        print(f"ballast-site: {plain(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return reader_left()
    except OSError as error:
        return file_trouble("ballast-site", error)
    return code


def _completion(chosen: argparse.Namespace) -> int:
    print(completion(_parser(), chosen.shell), end="")
    return 0


def _command(commands: Any, name: str, help_text: str, action: Callable[[argparse.Namespace], int]) -> Any:
    command = commands.add_parser(name, help=help_text)
    command.add_argument("--config", type=Path, default=DEFAULT_CONFIG, help="settings file (default site.toml)")
    command.set_defaults(run=action)
    (add_ready_json if name in SERVES else add_json)(command)
    return command


def _site_arguments(parser: argparse.ArgumentParser) -> None:
    """What a new site is told, however it is made."""
    parser.add_argument("--data", type=Path, help="a CSV or Parquet file, or a simulator's plant folder")
    parser.add_argument(
        "--allow-method", action="append", metavar="NAME",
        help="method to allow, may be repeated (default: all)",
    )
    parser.add_argument(
        "--own-scores", action="store_true", help="release this plant's own scores in runs on sums (reports show them)"
    )
    parser.add_argument(
        "--seen-alone", action="store_true", help="allow runs in which the OEM sees this plant's own answers"
    )
    parser.add_argument(
        "--tell-figures", action="store_true",
        help="tell how far readings have drifted, and what answers expose, with each join (the OEM's console shows it)",
    )


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="ballast-site", description="Site agent: trains with the OEM without giving sensor data away."
    )
    parser.add_argument("--version", action=ShowVersion)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    init = commands.add_parser("init", help="make key, settings and policy of a new site")
    init.add_argument("--site-id", required=True, help="name agreed with the OEM: lower-case letters, digits, dashes")
    init.add_argument("--dir", type=Path, required=True, help="folder to make")
    init.add_argument("--asset-type", type=Path, help="the OEM's asset type file; it is copied")
    init.add_argument("--server", action="append", help=f"NATS address, may be repeated (default {DEFAULT_SERVER})")
    init.add_argument("--ca", type=Path, help="certificate of the OEM's authority")
    init.add_argument("--oem-key", metavar="U...", help="the OEM's public key: tasks and versions are checked with it")
    _site_arguments(init)
    init.set_defaults(run=actions.init)
    add_json(init)

    joins = commands.add_parser("enrol", help="make a new site and enrol it, by a code that the OEM gave")
    joins.add_argument("--url", required=True, help="address of the OEM's server, https://host:port")
    joins.add_argument("--code", required=True, help="the one-time code that the OEM gave (blse_...); - reads it")
    joins.add_argument("--dir", type=Path, help="folder to make (default: the site's name)")
    joins.add_argument("--proxy", metavar="URL", help="HTTP proxy on the way, http://host:port; the plant link's too")
    joins.add_argument("--proxy-auth", type=Path, metavar="FILE", help="holds user:password for the proxy")
    _site_arguments(joins)
    joins.set_defaults(run=actions.enrol)
    add_json(joins)

    run = _command(commands, "run", "answer the OEM's tasks until told to stop", actions.run)
    run.add_argument(
        "--timeout", type=seconds, help="give up when no server answers in this many seconds (default: never)"
    )
    about = "open data, key, certificate and ledger, and say what fits and what does not"
    _command(commands, "check", about, actions.check)
    _command(commands, "health", "say whether the agent runs and is connected; 1 where not", actions.health)

    _command(commands, "exposure", "say what the answers so far isolate of the data", actions.exposure)

    about = "say how far the readings have moved since this plant first took part with these sensors and ranges"
    drift = _command(commands, "drift", about, actions.drift)
    drift.add_argument("--from-now", action="store_true", help="hold what comes against the rows of now")

    console = _command(commands, "console", "serve a page of all this to this machine alone", actions.console)
    console.add_argument("--port", type=port, default=DEFAULT_PORT, help=f"port (default {DEFAULT_PORT})")

    diagnose = commands.add_parser("diagnose", help="diagnose measurements inside the plant; nothing is sent")
    diagnose.epilog = (
        "Exit code 1 where nothing could be answered. Of NDJSON a line that does not fit is answered by its error, and "
        "the last line has the counts: 1 where lines were refused and none was answered, 0 where some were."
    )
    diagnose.add_argument("--model", type=Path, required=True, help="model version file (JSON) from the OEM")
    diagnose.add_argument(
        "--input", type=Path, required=True, help="CSV without labels, or NDJSON (.ndjson, .jsonl, - for stdin)"
    )
    diagnose.add_argument("--ndjson", action="store_true", help="the input is NDJSON: a line in, a line out")
    diagnose.add_argument("--config", type=Path, help="settings file, for the columns and units of this plant's table")
    diagnose.add_argument("--coverage", type=float, help="of class sets and intervals (default: the version's own)")
    made = diagnose.add_mutually_exclusive_group()
    made.add_argument("--oem-key", metavar="U...", help="the OEM's public key (default: oem_key in the settings)")
    made.add_argument("--unsigned", action="store_true", help="use the model whoever made it; nothing is checked")
    diagnose.set_defaults(run=actions.diagnose)
    add_json(diagnose)

    verify = _command(commands, "verify", "prove a model's bounds again, and its risk on the own rows", actions.verify)
    verify.add_argument("model", type=Path, help="zip file or folder of a version from the OEM, or its model.json")
    verify.add_argument("--certificate", type=Path, help="its certificate file (default: certificate.npz beside it)")
    verify.add_argument("--oem-key", metavar="U...", help="the OEM's public key (default: oem_key in the settings)")

    ledger = commands.add_parser("ledger", help="what has left this plant").add_subparsers(
        required=True, metavar="COMMAND"
    )
    for name, help_text, action in (
        ("verify", "find every entry that was changed, removed or moved", ledger_commands.ledger_verify),
        ("show", "list the entries", ledger_commands.ledger_show),
    ):
        command = _command(ledger, name, help_text, action)
        command.add_argument("path", type=Path, nargs="?", help="ledger file (default: the one in the settings)")
        if name == "show":
            command.add_argument("--last", type=whole_number, help="only the last N entries")
    key = commands.add_parser("key", help="this site's key").add_subparsers(required=True, metavar="COMMAND")
    _command(key, "show", "print the public key", key_commands.key_show)
    about = "make the next key and print its public half, for the OEM; the present one stays"
    _command(key, "new", about, key_commands.key_new)
    about = "put the next key in the place of the present one, once the OEM's server lets it in"
    use = _command(key, "use", about, key_commands.key_use)
    use.add_argument("--untried", action="store_true", help="do not try the key at the OEM's server first")
    shells = commands.add_parser("completion", help="print what makes a shell complete this command")
    shells.add_argument("shell", choices=SHELLS)
    shells.set_defaults(run=_completion)
    return parser
