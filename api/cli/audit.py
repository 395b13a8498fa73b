"""``ballast audit``: who did what."""

from __future__ import annotations

import argparse

from api.cli.common import add_action, add_actions, opened, print_json, print_table
from services.contracts.errors import ConflictError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    listing = add_action(actions, "list", _list, "list events, newest first", lists=True)
    listing.add_argument("--actor", help="of one actor")
    listing.add_argument("--target", help="of one target, such as site:plant-1")
    listing.add_argument("--limit", type=int, default=50, help="most events (default 50)")
    listing.add_argument("--offset", type=int, default=0, help="events to leave out at the beginning")
    add_action(actions, "verify", _verify, "check the whole trail", lists=True)


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    code: int = args.do(args)
    return code


def _list(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        found = backend.store.audit.list_events(
            actor=args.actor, target=args.target, limit=args.limit, offset=args.offset
        )
    if args.json:
        print_json(found)
        return 0
    print_table(("number", "at", "actor", "action", "target", "reason"), (
        (event.number, event.at, event.actor, event.action, event.target, event.reason) for event in found
    ))  # fmt: skip
    return 0


def _verify(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        report = backend.store.audit.verify_chain()
    if args.json:
        print_json(report)
        return 0 if report.ok else 1
    if not report.ok:
        raise ConflictError(f"the audit trail does not hold: {report.problem}")
    print(f"{report.events} events, none changed, missing or reordered; the last is {report.head}")
    return 0
