"""What each command of ``ballast-site`` does, by the arguments that :mod:`services.site_agent.cli` has read.

Each gives the exit code. What a command needs is imported when it runs, so that ``--help`` loads little.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from services.contracts.errors import BallastError, InvalidInputError, UnavailableError
from services.process.command_line import print_json, print_line, standard_input, tell
from services.process.terminal import shaded
from services.site_agent.settings import DEFAULT_SERVER, CsvSource, SiteSettings, TableSource


def init(chosen: argparse.Namespace) -> int:
    """Make a new site."""
    from services.site_agent.own_use.first_look import data_misfit, misfit_lines
    from services.site_agent.setup.site_setup import SiteSetup, create_site

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
    lines += _not_there(("--data", chosen.data), ("--ca", chosen.ca))
    misfit = None if chosen.data is None or chosen.asset_type is None else data_misfit(chosen.dir)
    lines += misfit_lines(misfit, chosen.dir)
    result = {"site_id": chosen.site_id, "folder": str(chosen.dir), "public_key": key, "data_misfit": misfit}
    tell(chosen, result, *lines, "Give this public key to the OEM:", key)
    return 0


def enrol(chosen: argparse.Namespace) -> int:
    """Make a new site and have the OEM's server enrol it by its code."""
    from services.contracts.access.enrolment import read_code
    from services.site_agent.own_use.first_look import data_misfit, misfit_lines
    from services.site_agent.setup.enrol import enrol
    from services.site_agent.setup.site_setup import SiteSetup

    code = standard_input().readline() if chosen.code == "-" else chosen.code
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
    if made.goes_by_proxy and not _has_web_socket():
        lines += ["The way by the proxy needs: pip install 'ballast-diagnosis[websocket]'"]
    misfit = None if chosen.data is None else data_misfit(folder)
    lines += [
        *_not_there(("--data", chosen.data)),
        *misfit_lines(misfit, folder),
        "Read policy.toml there: it says what may leave this plant. Then:",
        f"ballast-site run --config {folder / 'site.toml'}",
    ]
    tell(chosen, {"site_id": site_id, "folder": str(folder), **asdict(made), "data_misfit": misfit}, *lines)
    return 0


def _not_there(*named: tuple[str, Path | None]) -> list[str]:
    """A line for each file that was named and is not there yet, which may come before the agent is started."""
    return [
        f"There is no {path} yet, which {option} named: put it there before the agent runs."
        for option, path in named
        if path is not None and _is_missing(path)
    ]


def _is_missing(path: Path) -> bool:
    try:
        return not path.exists()
    except OSError:  # who reads it says why nobody may look
        return False


def _has_web_socket() -> bool:
    try:
        from services.site_agent.connection import web_socket  # noqa: F401
    except ImportError:
        return False
    return True


def run(chosen: argparse.Namespace) -> int:
    """Answer tasks until told to stop."""
    from services.site_agent.agent import serve
    from services.site_agent.logs import PRIVATE, open_logs
    from services.site_agent.outgoing.one_agent import log_for_one

    settings = SiteSettings.from_toml(chosen.config)
    with log_for_one(settings.log), open_logs(settings.log, settings.site_id, settings.logging):
        try:
            asyncio.run(serve(settings, chosen.timeout, _ready(settings) if chosen.json else None))
        except BallastError as error:
            PRIVATE.error("ended: %s", error)  # the caller prints it on the console
            raise
    return 0


def _ready(settings: SiteSettings) -> Callable[[str], None]:
    """What prints the one line of a run: the site, its key and the server that has heard it."""
    from services.contracts.keys.signing import public_key

    key = public_key(settings.nkey_seed)
    return lambda server: print_line({"site_id": settings.site_id, "server": server, "public_key": key})


def check(chosen: argparse.Namespace) -> int:
    """Say what of the data fits."""
    from services.site_agent.agent import check

    lines = [*check(SiteSettings.from_toml(chosen.config))]
    tell(chosen, {"findings": lines}, *lines)
    return 0


def health(chosen: argparse.Namespace) -> int:
    """Say whether the agent is connected."""
    from services.site_agent.health import check_alive, told_by

    settings = SiteSettings.from_toml(chosen.config)
    try:
        since = check_alive(settings)
    except UnavailableError as error:
        if not chosen.json:
            raise
        print_json({"connected": False, "seconds_since_connected": None, "reason": str(error)})
        return 1
    told = told_by(settings)
    lines = [f"{shaded('connected', 'good')} {since:.0f} s ago", *([told] if told else [])]
    tell(chosen, {"connected": True, "seconds_since_connected": since, "told": told}, *lines)
    return 0


def exposure(chosen: argparse.Namespace) -> int:
    """Say what the answers so far isolate."""
    from services.site_agent.agent import exposure

    summary, lines = exposure(SiteSettings.from_toml(chosen.config))
    tell(chosen, summary, *lines)
    return 0


def drift(chosen: argparse.Namespace) -> int:
    """Say how far readings have moved."""
    from services.site_agent.agent import drift

    figures, lines = drift(SiteSettings.from_toml(chosen.config), anew=chosen.from_now)
    tell(chosen, figures, *lines)
    return 0


def console(chosen: argparse.Namespace) -> int:
    """Serve the plant's page."""
    from services.site_agent.console.command import serve

    serve(SiteSettings.from_toml(chosen.config), chosen.port, as_json=chosen.json)
    return 0


def diagnose(chosen: argparse.Namespace) -> int:
    """Diagnose measurements inside the plant.

    :class:`InvalidInputError` where nobody said by which key the model is to be checked.
    """
    from services.site_agent.own_use.local_predictor import answers, diagnose, read_model
    from services.site_agent.own_use.own_screen import measured_lines, scaled_measurements
    from services.site_agent.own_use.sample_stream import diagnose_lines, is_stream, opened_lines

    columns, key = CsvSource(kind="csv", path=chosen.input), chosen.oem_key
    if chosen.config is not None:
        settings = SiteSettings.from_toml(chosen.config)
        key = key or settings.oem_key
        if isinstance(settings.data, TableSource):
            columns = CsvSource.model_validate(settings.data.model_dump() | {"kind": "csv", "path": chosen.input})
    if key is None and not chosen.unsigned:
        raise InvalidInputError(
            "the OEM's public key is not known, so the model cannot be checked: give --oem-key, or --config with "
            "oem_key in it; --unsigned uses the model whoever made it"
        )
    model = read_model(chosen.model, None if chosen.unsigned else key)
    if is_stream(chosen.input, chosen.ndjson):
        with opened_lines(chosen.input) as lines:
            for answer in diagnose_lines(model, lines, columns, chosen.coverage):
                print_line(answer)
        if answer["refused"] and not answer["answered"]:  # the last one has the counts
            print("ballast-site: no line was answered; each says why", file=sys.stderr)
            return 1
        return 0
    measured = scaled_measurements(columns, model.asset_type)
    if chosen.json:
        found = answers(model, measured.features, chosen.coverage)
        print_json({"rows": [{"row": row, **answer} for row, answer in enumerate(found, start=1)]})
    else:
        for line in diagnose(model, measured.features, chosen.coverage):
            print(line)
    for line in measured_lines(measured):
        print(line, file=sys.stderr)
    return 0


def verify(chosen: argparse.Namespace) -> int:
    """Prove a model's bounds again, and its risk on the own rows."""
    from services.site_agent.own_use.verify_model import verify_model
    from services.verification.version import NoCertificateError

    settings = SiteSettings.from_toml(chosen.config)
    try:
        lines = verify_model(chosen.model, chosen.certificate, settings, chosen.oem_key or settings.oem_key)
    except NoCertificateError as error:
        print(f"ballast-site: {error}", file=sys.stderr)
        return 2
    tell(chosen, {"proven": lines}, *lines)
    return 0
