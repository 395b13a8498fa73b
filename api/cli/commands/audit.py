"""``ballast audit``: who did what."""

from __future__ import annotations

import argparse
from functools import partial

from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, add_times, print_json, print_list, run_action
from services.contracts.errors import ConflictError
from services.process.command_line import whole_number

run = run_action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    listing = add_action(actions, "list", _list, "list events, newest first", lists=True)
    listing.add_argument("--actor", help="of one actor")
    listing.add_argument("--target", help="of one target, such as site:plant-1")
    listing.add_argument("--action", help="of one kind, such as site.enrol", dest="kind")
    add_times(listing)
    listing.add_argument("--limit", type=whole_number, default=50, help="most events (default 50)")
    skipped = partial(whole_number, least=0)
    listing.add_argument("--offset", type=skipped, default=0, help="events to leave out at the beginning")
    add_action(actions, "verify", _verify, "check the whole trail", lists=True)


def _list(backend: Backend, args: argparse.Namespace) -> None:
    found = backend.store.audit.list_events(
        actor=args.actor, action=args.kind, target=args.target, since=args.since, until=args.until, limit=args.limit,
        offset=args.offset,
    )
    print_list(args, found, {name: name for name in ("number", "at", "actor", "action", "target", "reason")})


def _verify(backend: Backend, args: argparse.Namespace) -> int:
    report = backend.store.audit.verify_chain()
    if args.json:
        print_json(report)
        return 0 if report.ok else 1
    if not report.ok:
        raise ConflictError(f"the audit trail does not hold: {report.problem}")
    print(f"{report.events} events, none changed, missing or reordered; the last is {report.head}")
    return 0
