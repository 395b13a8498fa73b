"""``ballast site``: the plants."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from api.backend.actor import Actor, local_administrator
from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, checked, print_list, run_action
from api.sites import service as sites
from api.sites.schemas import KeyChange, SiteEnrolment
from services.contracts.records import Site
from services.contracts.signing import public_key

run = run_action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    enrol = add_action(actions, "enrol", _enrol, "enrol a plant with its public key", "ID")
    enrol.add_argument("--key", required=True, metavar="U...", help="the public key that the plant made")
    enrol.add_argument(
        "--asset-type", action="append", default=[], metavar="NAME", help="kind of machine it takes part in; repeatable"
    )
    enrol.add_argument("--description", default="")
    rotate = add_action(actions, "rotate-key", _rotate, "give a plant another key", "ID", reason=True)
    rotate.add_argument("--key", required=True, metavar="U...", help="the new public key that the plant made")
    _add_overlap(rotate, "24h")
    about = "give the OEM's side of the link another key"
    own = add_action(actions, "rotate-coordinator-key", _rotate_own, about, reason=True)
    _add_overlap(own, "1h")
    add_action(actions, "list", _list, "list plants", lists=True)
    add_action(actions, "oem-key", _oem_key, "print the public key by which versions are signed, for the plants")
    for name, change, about in (
        ("suspend", sites.suspend, "ask a plant no more, until it is activated"),
        ("activate", sites.activate, "ask a suspended plant again"),
        ("remove", sites.remove, "end a plant's enrolment"),
    ):
        add_action(actions, name, partial(_change, change), about, "ID", reason=True)


def _enrol(backend: Backend, args: argparse.Namespace) -> None:
    wanted = checked(
        SiteEnrolment, "site", site_id=args.id, public_key=args.key, asset_types=tuple(args.asset_type),
        description=args.description,
    )
    site = sites.enrol(backend, local_administrator(), wanted)
    print(f"site {site.site_id} is enrolled for {', '.join(site.asset_types) or 'no asset type yet'}")


def _add_overlap(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--overlap", metavar="TIME", default=default, type=_overlap,
        help=f"how long the former key holds too, such as 12h or 2d (default {default}; 0h after a loss)",
    )


def _overlap(text: str) -> timedelta:
    found = re.fullmatch(r"([0-9]{1,3})([hd])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"give a time such as 12h, 2d or 0h, not {text[:20]!r}")
    return timedelta(hours=int(found[1])) if found[2] == "h" else timedelta(days=int(found[1]))


def _rotate(backend: Backend, args: argparse.Namespace) -> None:
    hours = args.overlap / timedelta(hours=1)
    wanted = checked(KeyChange, "site", public_key=args.key, overlap_hours=hours, reason=args.reason)
    site = sites.rotate_key(backend, local_administrator(), args.id, wanted)
    until = site.former_key_until
    print(f"site {site.site_id} has another key; the former one holds until {until:%Y-%m-%d %H:%M:%S} UTC")


def _rotate_own(backend: Backend, args: argparse.Namespace) -> None:
    key, _ = sites.rotate_coordinator(backend, local_administrator(), args.overlap, args.reason)
    print(f"the coordinator has another key, {key}; the flows start again with it when no run is on its way")


def _oem_key(backend: Backend, args: argparse.Namespace) -> None:
    print(public_key(backend.settings.nats_seed))


def _list(backend: Backend, args: argparse.Namespace) -> None:
    print_list(args, backend.store.sites.list_sites(), {
        "id": "site_id", "status": "status", "asset types": "asset_types", "last seen": "last_seen",
        "agent": "agent_version", "key": "public_key",
    })


def _change(change: Callable[[Backend, Actor, str, str], Site], backend: Backend, args: argparse.Namespace) -> None:
    site = change(backend, local_administrator(), args.id, args.reason)
    print(f"site {site.site_id} is {site.status}")
