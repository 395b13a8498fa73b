"""``ballast-site``: the plant's command."""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from services.contracts.command_line import (
    SHELLS,
    ShowVersion,
    add_json,
    completion,
    print_json,
    reader_left,
    tell,
)
from services.contracts.errors import BallastError, InvalidInputError
from services.site_agent.settings import CsvSource, SiteSettings
from services.site_agent.site_setup import DEFAULT_SERVER, SiteSetup, create_site

DEFAULT_CONFIG = Path("site.toml")
DEFAULT_PORT = 8790
WITHOUT_JSON = frozenset({"run", "console"})
"""Commands that go on until they are told to stop."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 when it went well, 1 with one line on stderr when not, 2 for a wrong command line."""
    chosen = _parser().parse_args(arguments)
    try:
        code: int = chosen.run(chosen)
        sys.stdout.flush()
    except BallastError as error:
        print(f"ballast-site: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return reader_left()
    return code


def _init(chosen: argparse.Namespace) -> int:
    key = create_site(
        SiteSetup(
            site_id=chosen.site_id, folder=chosen.dir, asset_type=chosen.asset_type, data=chosen.data,
            servers=tuple(chosen.server or [DEFAULT_SERVER]), authority=chosen.ca,
            methods=tuple(chosen.allow_method or ()), oem_key=chosen.oem_key, own_scores=chosen.own_scores,
            seen_alone=chosen.seen_alone, figures=chosen.tell_figures,
        )
    )
    lines = [f"Site {chosen.site_id} is set up in {chosen.dir}. Read policy.toml: it says what may leave this plant."]
    if chosen.asset_type is None:
        lines += ["Put the OEM's asset_type.toml there and list its name in policy.toml under asset_types."]
    result = {"site_id": chosen.site_id, "folder": str(chosen.dir), "public_key": key}
    tell(chosen, result, *lines, "Give this public key to the OEM:", key)
    return 0


def _enrol(chosen: argparse.Namespace) -> int:
    from services.contracts.enrolment import read_code
    from services.site_agent.enrol import enrol

    code = sys.stdin.readline() if chosen.code == "-" else chosen.code
    site_id = read_code(code).site_id
    folder = chosen.dir or Path(site_id)
    setup = SiteSetup(
        site_id=site_id, folder=folder, data=chosen.data, methods=tuple(chosen.allow_method or ()),
        own_scores=chosen.own_scores, seen_alone=chosen.seen_alone, figures=chosen.tell_figures,
        proxy=chosen.proxy, proxy_auth=chosen.proxy_auth,
    )
    made = enrol(setup, chosen.url, code)
    lines = [
        f"Site {site_id} is enrolled for {made.asset_type}; its key is {made.public_key}, whose private half is in "
        f"{folder} alone."
    ]
    if chosen.proxy is not None and not made.goes_by_proxy:
        lines += [
            f"The OEM named no WebSocket (wss://) but {', '.join(made.servers)}, which no proxy lets through: ask for "
            "one, and write it into site.toml with proxy and proxy_auth."
        ]
    if made.goes_by_proxy and find_spec("aiohttp") is None:
        lines += ["The way by the proxy needs: pip install 'ballast-diagnosis[websocket]'"]
    lines += [
        "Read policy.toml there: it says what may leave this plant. Then:",
        f"ballast-site run --config {folder / 'site.toml'}",
    ]
    tell(chosen, {"site_id": site_id, "folder": str(folder), **asdict(made)}, *lines)
    return 0


def _run(chosen: argparse.Namespace) -> int:
    from services.site_agent.agent import serve
    from services.site_agent.logs import PRIVATE, open_logs

    settings = SiteSettings.from_toml(chosen.config)
    with open_logs(settings.log, settings.site_id, settings.logging):
        try:
            asyncio.run(serve(settings, chosen.timeout))
        except BallastError as error:
            PRIVATE.error("ended: %s", error)  # the caller prints it on the console
            raise
    return 0


def _check(chosen: argparse.Namespace) -> int:
    from services.site_agent.agent import check

    lines = [*check(SiteSettings.from_toml(chosen.config))]
    tell(chosen, {"findings": lines}, *lines)
    return 0


def _health(chosen: argparse.Namespace) -> int:
    from services.site_agent.health import check_alive

    since = check_alive(SiteSettings.from_toml(chosen.config))
    print(f"connected {since:.0f} s ago")
    return 0


def _exposure(chosen: argparse.Namespace) -> int:
    from services.site_agent.agent import exposure

    summary, lines = exposure(SiteSettings.from_toml(chosen.config))
    tell(chosen, summary, *lines)
    return 0


def _drift(chosen: argparse.Namespace) -> int:
    from services.site_agent.agent import drift

    figures, lines = drift(SiteSettings.from_toml(chosen.config), anew=chosen.from_now)
    tell(chosen, figures, *lines)
    return 0


def _console(chosen: argparse.Namespace) -> int:
    from services.site_agent.console.command import serve

    serve(SiteSettings.from_toml(chosen.config), chosen.port)
    return 0


def _diagnose(chosen: argparse.Namespace) -> int:
    from services.site_agent.local_predictor import diagnose, read_model

    columns, key = CsvSource(kind="csv", path=chosen.input), chosen.oem_key
    if chosen.config is not None:
        settings = SiteSettings.from_toml(chosen.config)
        key = key or settings.oem_key
        if isinstance(settings.data, CsvSource):
            columns = settings.data.model_copy(update={"path": chosen.input})
    if key is None and not chosen.unsigned:
        raise InvalidInputError(
            "the OEM's public key is not known, so the model cannot be checked: give --oem-key, or --config with "
            "oem_key in it; --unsigned uses the model whoever made it"
        )
    rows = diagnose(read_model(chosen.model, None if chosen.unsigned else key), columns, chosen.coverage)
    if chosen.json:
        print_json({"rows": [*csv.DictReader(rows)]})
        return 0
    for line in rows:
        print(line)
    return 0


def _verify(chosen: argparse.Namespace) -> int:
    from services.site_agent.verify_model import verify_model
    from services.verification.version import NoCertificateError

    settings = SiteSettings.from_toml(chosen.config)
    try:
        lines = verify_model(chosen.model, chosen.certificate, settings, chosen.oem_key or settings.oem_key)
    except NoCertificateError as error:
        print(f"ballast-site: {error}", file=sys.stderr)
        return 2
    tell(chosen, {"proven": lines}, *lines)
    return 0


def _ledger_path(chosen: argparse.Namespace) -> Path:
    path: Path | None = chosen.path
    return path if path is not None else SiteSettings.from_toml(chosen.config).ledger


def _ledger_verify(chosen: argparse.Namespace) -> int:
    from services.site_agent.ledger_check import verify

    entries = verify(_ledger_path(chosen))
    span = f", from {entries[0]['time']} to {entries[-1]['time']}" if entries else ""
    size = sum(entry["bytes"] for entry in entries)
    told = f"sound: {len(entries)} entries, {size} bytes left{span}"
    tell(chosen, {"sound": True, "entries": len(entries), "bytes": size}, told)
    return 0


def _ledger_show(chosen: argparse.Namespace) -> int:
    from services.site_agent.ledger_check import verify

    entries = verify(_ledger_path(chosen))
    for entry in entries[-chosen.last :] if chosen.last else entries:
        if chosen.json:
            print(json.dumps(entry))
            continue
        what = " ".join(str(entry[key]) for key in ("message", "kind", "code") if key in entry)
        where = f" run {entry['run'][:8]} round {entry['round']}" if "run" in entry else ""
        shapes = " ".join(f"{name}{tuple(shape)}" for name, shape in entry["shapes"].items())
        line = f"{entry['sequence']:>6} {entry['time'][:19]}Z {what}{where}: {entry['bytes']} bytes {shapes}".rstrip()
        print(line + _isolated(entry.get("exposure")))
    return 0


def _isolated(figures: dict[str, Any] | None) -> str:
    """What the answers isolated with an entry; nothing for entries without the figure."""
    return "" if figures is None else f"; isolated {figures['by_differences']} of {figures['rows']} rows"


def _key_show(chosen: argparse.Namespace) -> int:
    from services.contracts.signing import public_key

    key = public_key(SiteSettings.from_toml(chosen.config).nkey_seed)
    tell(chosen, {"public_key": key}, key)
    return 0


def _key_new(chosen: argparse.Namespace) -> int:
    from services.site_agent.key_change import make_next_key

    key = make_next_key(SiteSettings.from_toml(chosen.config).nkey_seed)
    tell(chosen, {"next_public_key": key}, key)
    return 0


def _key_use(chosen: argparse.Namespace) -> int:
    from services.site_agent.key_change import use_next_key

    key = use_next_key(SiteSettings.from_toml(chosen.config).nkey_seed)
    tell(chosen, {"public_key": key}, f"the key is {key} now; restart the agent")
    return 0


def _completion(chosen: argparse.Namespace) -> int:
    print(completion(_parser(), chosen.shell), end="")
    return 0


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, got {text}")
    return seconds


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, got {text}")
    return count


def _command(commands: Any, name: str, help_text: str, action: Callable[[argparse.Namespace], int]) -> Any:
    command = commands.add_parser(name, help=help_text)
    command.add_argument("--config", type=Path, default=DEFAULT_CONFIG, help="settings file (default site.toml)")
    command.set_defaults(run=action)
    if name not in WITHOUT_JSON:
        add_json(command)
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
    parser = argparse.ArgumentParser(
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
    init.add_argument("--oem-key", metavar="U...", help="the OEM's public key: versions are checked with it")
    _site_arguments(init)
    init.set_defaults(run=_init)
    add_json(init)

    joins = commands.add_parser("enrol", help="make a new site and enrol it, by a code that the OEM gave")
    joins.add_argument("--url", required=True, help="address of the OEM's server, https://host:port")
    joins.add_argument("--code", required=True, help="the one-time code that the OEM gave (blse_...); - reads it")
    joins.add_argument("--dir", type=Path, help="folder to make (default: the site's name)")
    joins.add_argument("--proxy", metavar="URL", help="HTTP proxy on the way, http://host:port; the plant link's too")
    joins.add_argument("--proxy-auth", type=Path, metavar="FILE", help="holds user:password for the proxy")
    _site_arguments(joins)
    joins.set_defaults(run=_enrol)
    add_json(joins)

    run = _command(commands, "run", "answer the OEM's tasks until told to stop", _run)
    run.add_argument(
        "--timeout", type=_seconds, help="give up when no server answers in this many seconds (default: never)"
    )
    _command(commands, "check", "open the data and say what fits the contract and what does not", _check)
    _command(commands, "health", "say whether the agent runs and is connected; 1 where not", _health)

    _command(commands, "exposure", "say what the answers so far isolate of the data", _exposure)

    drift = _command(commands, "drift", "say how far the readings have moved since this plant first took part", _drift)
    drift.add_argument("--from-now", action="store_true", help="hold what comes against the rows of now")

    console = _command(commands, "console", "serve a page of all this to this machine alone", _console)
    console.add_argument("--port", type=_count, default=DEFAULT_PORT, help=f"port (default {DEFAULT_PORT})")

    diagnose = commands.add_parser("diagnose", help="diagnose measurements inside the plant; nothing is sent")
    diagnose.add_argument("--model", type=Path, required=True, help="model version file (JSON) from the OEM")
    diagnose.add_argument("--input", type=Path, required=True, help="CSV file of measurements; it needs no labels")
    diagnose.add_argument("--config", type=Path, help="settings file, for the columns and units of this plant's CSV")
    diagnose.add_argument("--oem-key", metavar="U...", help="the OEM's public key (default: oem_key in the settings)")
    diagnose.add_argument("--coverage", type=float, help="of class sets and intervals (default: the version's own)")
    diagnose.add_argument("--unsigned", action="store_true", help="use the model whoever made it; nothing is checked")
    diagnose.set_defaults(run=_diagnose)
    add_json(diagnose)

    verify = _command(commands, "verify", "prove a model's bounds again, and its risk on the own rows", _verify)
    verify.add_argument("model", type=Path, help="zip file or folder of a version from the OEM, or its model.json")
    verify.add_argument("--certificate", type=Path, help="its certificate file (default: certificate.npz beside it)")
    verify.add_argument("--oem-key", metavar="U...", help="the OEM's public key (default: oem_key in the settings)")

    ledger = commands.add_parser("ledger", help="what has left this plant").add_subparsers(
        required=True, metavar="COMMAND"
    )
    for name, help_text, action in (
        ("verify", "find every entry that was changed, removed or moved", _ledger_verify),
        ("show", "list the entries", _ledger_show),
    ):
        command = _command(ledger, name, help_text, action)
        command.add_argument("path", type=Path, nargs="?", help="ledger file (default: the one in the settings)")
        if name == "show":
            command.add_argument("--last", type=_count, help="only the last N entries")
    key = commands.add_parser("key", help="this site's key").add_subparsers(required=True, metavar="COMMAND")
    _command(key, "show", "print the public key", _key_show)
    _command(key, "new", "make the next key and print its public half, for the OEM; the present one stays", _key_new)
    _command(key, "use", "put the next key in the place of the present one, once the OEM has it", _key_use)
    shells = commands.add_parser("completion", help="print what makes a shell complete this command")
    shells.add_argument("shell", choices=SHELLS)
    shells.set_defaults(run=_completion)
    return parser
