"""``ballast site``: the plants. What one action alone needs is imported there: a list costs half of what all do."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import get_args

from api.backend.actor import local_administrator
from api.backend.flows_process import flows_at_work
from api.backend.wiring import Backend
from api.cli.common import (
    add_action,
    add_actions,
    checked,
    note_asset_type,
    note_unknown,
    print_json,
    print_list,
    run_action,
    tell,
)
from services.contracts.access.enrolment_records import CodeState
from services.contracts.errors import InvalidInputError
from services.contracts.history.site import SiteStatus

run = run_action
MOST_OVERLAP = timedelta(days=30)
"""For which a former key holds beside the new one, a plant's or the OEM's."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    enrol = add_action(actions, "enrol", _enrol, "enrol a plant with its public key", "ID")
    enrol.add_argument("--key", required=True, metavar="U...", help="the public key that the plant made")
    enrol.add_argument(
        "--asset-type", action="append", default=[], metavar="NAME", help="kind of machine it takes part in; repeatable"
    )
    enrol.add_argument("--description", default="")
    about = "make a one-time code by which a plant enrols itself"
    code = add_action(actions, "enrol-code", _enrol_code, about, "ID", lists=True)
    code.add_argument("--expires", metavar="WHEN", default="24h", help="when it ends, such as 24h or 7d (default 24h)")
    code.add_argument("--asset-type", metavar="NAME", help="kind of machine (default: the only one that there is)")
    code.add_argument("--description", default="")
    code.add_argument("--replace-key", action="store_true", help="the plant is enrolled and has lost its key")
    code.add_argument(
        "--certificate-sha256", metavar="HEX", help="of the certificate that plants meet, where a proxy ends TLS"
    )
    listed = add_action(actions, "enrol-codes", _enrol_codes, "list enrolment codes, without their secrets")
    listed.add_argument("id", metavar="ID", nargs="?", help="of one plant (default: of all)")
    listed.add_argument("--state", choices=get_args(CodeState), help="of one state")
    add_action(actions, "revoke-code", _revoke_code, "revoke a code that was not used", "ID", "CODE_ID", reason=True)
    rotate = add_action(actions, "rotate-key", _rotate, "give a plant another key", "ID", reason=True)
    rotate.add_argument("--key", required=True, metavar="U...", help="the new public key that the plant made")
    _add_overlap(rotate.add_argument, "24h")
    about = "give the OEM's side of the link another key"
    own = add_action(actions, "rotate-coordinator-key", _rotate_own, about, reason=True)
    ends = own.add_mutually_exclusive_group()
    _add_overlap(ends.add_argument, "1h")
    ends.add_argument(
        "--stolen", action="store_true",
        help="the former key ends at once; of what it signed, only the versions that are in the registry now stand",
    )
    listing = add_action(actions, "list", _list, "list plants", lists=True)
    listing.add_argument("--status", choices=get_args(SiteStatus), help="of one status")
    listing.add_argument("--asset-type", metavar="NAME", help="of one kind of machine")
    add_action(actions, "oem-key", _oem_key, "print the public key that signs tasks and versions, for the plants")
    for name, about in (
        ("suspend", "ask a plant no more, until it is activated"),
        ("activate", "ask a suspended plant again"),
        ("remove", "end a plant's enrolment"),
    ):
        add_action(actions, name, partial(_change, name), about, "ID", reason=True)


def _enrol(backend: Backend, args: argparse.Namespace) -> None:
    from api.sites import service as sites
    from api.sites.schemas import SiteEnrolment

    wanted = checked(
        SiteEnrolment, "site", site_id=args.id, public_key=args.key, asset_types=tuple(args.asset_type),
        description=args.description,
    )
    site = sites.enrol(backend, local_administrator(), wanted)
    tell(args, site, f"site {site.site_id} is enrolled for {', '.join(site.asset_types) or 'no asset type yet'}")


def _lifetime(text: str) -> timedelta:
    """How long a code is to hold; ``InvalidInputError`` says how long it may."""
    from api.cli.commands.token import read_end
    from api.sites.schemas import CODE_DAYS

    now = datetime.now(UTC)
    lifetime = read_end(text, now) - now
    if not timedelta(0) < lifetime <= timedelta(days=CODE_DAYS):
        what = "is over already" if lifetime <= timedelta(0) else "is too far away"
        allowed = f"a code holds {CODE_DAYS} days at most, such as 24h or 7d"
        raise InvalidInputError(f"--expires {text[:40]} {what}: {allowed}")
    return lifetime


def _enrol_code(backend: Backend, args: argparse.Namespace) -> None:
    from api.sites import enrolment
    from api.sites.schemas import CodeRequest, SiteName

    wanted = checked(
        CodeRequest, "code", asset_type=args.asset_type, description=args.description, replace_key=args.replace_key,
        expires_hours=_lifetime(args.expires) / timedelta(hours=1),
        certificate_sha256=args.certificate_sha256,
    )
    checked(SiteName, "site", site_id=args.id)
    made = enrolment.create_code(backend, local_administrator(), args.id, wanted)
    if args.json:
        print_json(made)
        return
    what = f"code {made.code_id} for {made.site_id} ({made.asset_type})"
    print(f"{what}, shown this once, until {made.expires_at:%Y-%m-%d %H:%M} UTC. At the plant:", file=sys.stderr)
    print(made.command)


def _enrol_codes(backend: Backend, args: argparse.Namespace) -> None:
    shown = ("code_id", "site_id", "asset_type", "created_at", "expires_at", "used_at", "revoked_at", "created_by")
    found = backend.store.enrolment_codes.list_codes(args.id, state=args.state)
    if not found and args.id is not None:
        promised = {each.site_id for each in backend.store.enrolment_codes.list_codes()}
        note_unknown("site", args.id, promised | {each.site_id for each in backend.store.sites.list_sites()})
    print_list(args, found, {name.replace("_", " "): name for name in shown})


def _revoke_code(backend: Backend, args: argparse.Namespace) -> None:
    from api.sites import enrolment

    gone = enrolment.revoke_code(backend, local_administrator(), args.id, args.code_id, args.reason)
    tell(args, gone, f"enrolment code {args.code_id} is revoked")


def _add_overlap(add: Callable[..., object], default: str) -> None:
    add(
        "--overlap", metavar="TIME", default=default, type=_overlap,
        help=f"how long the former key holds too, such as 12h or 2d (default {default}; 0h after a loss)",
    )


def _overlap(text: str) -> timedelta:
    found = re.fullmatch(r"([0-9]{1,3})([hd])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"give a time such as 12h, 2d or 0h, not {text[:20]!r}")
    overlap = timedelta(hours=int(found[1])) if found[2] == "h" else timedelta(days=int(found[1]))
    if overlap > MOST_OVERLAP:
        raise argparse.ArgumentTypeError(f"a former key holds {MOST_OVERLAP.days} days at most, not {text}")
    return overlap


def _rotate(backend: Backend, args: argparse.Namespace) -> None:
    from api.sites import service as sites
    from api.sites.schemas import KeyChange

    hours = args.overlap / timedelta(hours=1)
    wanted = checked(KeyChange, "site", public_key=args.key, overlap_hours=hours, reason=args.reason)
    site = sites.rotate_key(backend, local_administrator(), args.id, wanted)
    until = site.former_key_until
    told = f"site {site.site_id} has another key; the former one holds until {until:%Y-%m-%d %H:%M:%S} UTC"
    tell(args, site, told)


def _rotate_own(backend: Backend, args: argparse.Namespace) -> None:
    from api.sites import service as sites

    key, _ = sites.rotate_coordinator(backend, local_administrator(), args.overlap, args.reason, stolen=args.stolen)
    lines = [f"the coordinator has another key, {key}; the flows start again with it when no run is on its way"]
    if args.stolen:
        lines += ["tell the plants the new key by a way that they trust; with the stolen one they refuse every version"]
    tell(args, {"public_key": key, "stolen": args.stolen}, *lines)


def _oem_key(backend: Backend, args: argparse.Namespace) -> None:
    from services.contracts.keys.signing import public_key

    key = public_key(backend.settings.nats_seed)
    tell(args, {"public_key": key}, key)


def _list(backend: Backend, args: argparse.Namespace) -> None:
    found = backend.store.sites.list_sites(status=args.status, asset_type=args.asset_type)
    note_asset_type(backend, args.asset_type)
    now = datetime.now(UTC)
    print_list(args, found, {
        "id": "site_id", "status": "status", "agent is": lambda site: site.presence(now), "notice": "notice",
        "last seen": "last_seen", "asset types": "asset_types", "agent": "agent_version", "key": "public_key",
    })
    if found and flows_at_work(backend.settings) is False:
        print("ballast: no flows process runs here, so nobody looks which plants are connected", file=sys.stderr)


def _change(name: str, backend: Backend, args: argparse.Namespace) -> None:
    from api.sites import service

    change = {"suspend": service.suspend, "activate": service.activate, "remove": service.remove}[name]
    site = change(backend, local_administrator(), args.id, args.reason)
    tell(args, site, f"site {site.site_id} is {site.status}")
