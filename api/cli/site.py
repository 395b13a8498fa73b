"""``ballast site``: the plants."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from api.backend.actor import Actor, local_administrator
from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, checked, print_list, run_action
from api.sites import service as sites
from api.sites.schemas import SiteEnrolment
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
