"""``ballast run``: runs of plans."""

from __future__ import annotations

import argparse
from typing import get_args

from api.cli.common import add_action, add_actions, add_reason, opened, print_fields, print_json, print_table
from api.use_cases import runs
from api.use_cases.actor import local_administrator
from services.contracts.run import RunStatus


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    listing = add_action(actions, "list", _list, "list runs, newest first", lists=True)
    listing.add_argument("--plan", metavar="NAME", help="of one plan")
    listing.add_argument("--status", choices=get_args(RunStatus), help="of one status")
    listing.add_argument("--limit", type=int, default=20, help="most runs (default 20)")
    show = add_action(actions, "show", _show, "show a run", lists=True)
    show.add_argument("run_id", metavar="RUN_ID")
    rounds = add_action(actions, "rounds", _rounds, "list the committed rounds of a run", lists=True)
    rounds.add_argument("run_id", metavar="RUN_ID")
    cancel = add_action(actions, "cancel", _cancel, "ask a run to stop after its present round")
    cancel.add_argument("run_id", metavar="RUN_ID")
    add_reason(cancel)


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    code: int = args.do(args)
    return code


def _list(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        found = backend.store.runs.list_runs(plan=args.plan, status=args.status, limit=args.limit)
    if args.json:
        print_json(found)
        return 0
    head = ("id", "plan", "status", "rounds", "gap", "created", "version")
    print_table(head, (
        (item.run_id, item.plan.name, item.status, item.rounds, item.gap, item.created_at, item.model_version)
        for item in found
    ))  # fmt: skip
    return 0


def _show(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        found = backend.store.runs.get_run(args.run_id)
    if args.json:
        print_json(found)
        return 0
    shown = ("run_id", "status", "reason", "rounds", "gap", "upper", "lower", "fresh_weight", "created_at")
    results = ("cancel_requested", "flow_run_id", "mlflow_run_id", "model_version")
    print_fields([
        ("plan", found.plan.name),
        *((name, getattr(found, name)) for name in shown),
        ("sites", [site.site_id for site in found.sites]),
        ("absentees", [f"{answer.site_id} ({answer.code})" for answer in found.absentees]),
        *((name, getattr(found, name)) for name in results),
    ])  # fmt: skip
    return 0


def _rounds(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        found = backend.store.runs.get_rounds(args.run_id)
    if args.json:
        print_json(found)
        return 0
    print_table(("round", "upper", "lower", "gap", "seconds", "accepted", "missing"), (
        (
            item.round, item.upper, item.lower, item.gap, item.seconds,
            sum(answer.status == "accepted" for answer in item.answers),
            [answer.site_id for answer in item.answers if answer.status != "accepted"],
        )
        for item in found
    ))  # fmt: skip
    return 0


def _cancel(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        runs.cancel(backend, local_administrator(), args.run_id, args.reason)
    print(f"run {args.run_id} will stop")
    return 0
