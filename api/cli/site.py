"""``ballast site``: the plants."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from pydantic import ValidationError

from api.cli.common import add_action, add_actions, add_reason, opened, print_json, print_table
from api.schemas import SiteEnrolment
from api.use_cases import sites
from api.use_cases.actor import Actor, local_administrator
from api.wiring import Backend
from services.contracts.asset_type import explain
from services.contracts.errors import InvalidInputError
from services.contracts.site import Site


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    enrol = add_action(actions, "enrol", _enrol, "enrol a plant with its public key")
    enrol.add_argument("site_id", metavar="ID")
    enrol.add_argument("--key", required=True, metavar="U...", help="the public key that the plant made")
    enrol.add_argument(
        "--asset-type", action="append", default=[], metavar="NAME", help="kind of machine it takes part in; repeatable"
    )
    enrol.add_argument("--description", default="")
    add_action(actions, "list", _list, "list plants", lists=True)
    for name, do, about in (
        ("suspend", _suspend, "ask a plant no more, until it is activated"),
        ("activate", _activate, "ask a suspended plant again"),
        ("remove", _remove, "end a plant's enrolment"),
    ):
        action = add_action(actions, name, do, about)
        action.add_argument("site_id", metavar="ID")
        add_reason(action)


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    code: int = args.do(args)
    return code


def _enrol(args: argparse.Namespace) -> int:
    try:
        wanted = SiteEnrolment(
            site_id=args.site_id, public_key=args.key, asset_types=tuple(args.asset_type), description=args.description
        )
    except ValidationError as error:
        raise InvalidInputError(f"site: {explain(error)}") from None
    with opened(args) as backend:
        site = sites.enrol(backend, local_administrator(), wanted)
    print(f"site {site.site_id} is enrolled for {', '.join(site.asset_types) or 'no asset type yet'}")
    return 0


def _list(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        found = backend.store.sites.list_sites()
    if args.json:
        print_json(found)
        return 0
    head = ("id", "status", "asset types", "last seen", "agent", "key")
    print_table(head, (
        (site.site_id, site.status, site.asset_types, site.last_seen, site.agent_version, site.public_key)
        for site in found
    ))  # fmt: skip
    return 0


def _suspend(args: argparse.Namespace) -> int:
    return _change(args, sites.suspend)


def _activate(args: argparse.Namespace) -> int:
    return _change(args, sites.activate)


def _remove(args: argparse.Namespace) -> int:
    return _change(args, sites.remove)


def _change(args: argparse.Namespace, change: Callable[[Backend, Actor, str, str], Site]) -> int:
    with opened(args) as backend:
        site = change(backend, local_administrator(), args.site_id, args.reason)
    print(f"site {site.site_id} is {site.status}")
    return 0
