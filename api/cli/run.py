"""``ballast run``: runs of plans."""

from __future__ import annotations

import argparse
from typing import get_args

from api.backend.actor import local_administrator
from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, print_fields, print_json, print_list, run_action
from api.runs import service as runs
from services.contracts.run import RunStatus

run = run_action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    listing = add_action(actions, "list", _list, "list runs, newest first", lists=True)
    listing.add_argument("--plan", metavar="NAME", help="of one plan")
    listing.add_argument("--status", choices=get_args(RunStatus), help="of one status")
    listing.add_argument("--limit", type=int, default=20, help="most runs (default 20)")
    add_action(actions, "show", _show, "show a run", "RUN_ID", lists=True)
    add_action(actions, "rounds", _rounds, "list the committed rounds of a run", "RUN_ID", lists=True)
    add_action(actions, "cancel", _cancel, "ask a run to stop after its present round", "RUN_ID", reason=True)


def _list(backend: Backend, args: argparse.Namespace) -> None:
    print_list(args, backend.store.runs.list_runs(plan=args.plan, status=args.status, limit=args.limit), {
        "id": "run_id", "plan": "plan.name", "status": "status", "rounds": "rounds", "gap": "gap",
        "created": "created_at", "version": "model_version",
    })


def _show(backend: Backend, args: argparse.Namespace) -> None:
    found = backend.store.runs.get_run(args.run_id)
    if args.json:
        print_json(found)
        return
    shown = ("run_id", "status", "reason", "rounds", "gap", "upper", "lower", "fresh_weight", "created_at")
    results = ("cancel_requested", "flow_run_id", "mlflow_run_id", "model_version")
    print_fields([
        ("plan", found.plan.name),
        *((name, getattr(found, name)) for name in shown),
        ("sites", [site.site_id for site in found.sites]),
        ("absentees", [f"{answer.site_id} ({answer.code})" for answer in found.absentees]),
        ("excluded", [f"{each.site_id} in round {each.round} ({each.reason})" for each in found.excluded]),
        *((name, getattr(found, name)) for name in results),
    ])


def _rounds(backend: Backend, args: argparse.Namespace) -> None:
    same = {name: name for name in ("round", "upper", "lower", "gap", "seconds")}
    print_list(args, backend.store.runs.get_rounds(args.run_id), {
        **same,
        "accepted": lambda item: sum(answer.status == "accepted" for answer in item.answers),
        "missing": lambda item: [answer.site_id for answer in item.answers if answer.status != "accepted"],
    })


def _cancel(backend: Backend, args: argparse.Namespace) -> None:
    runs.cancel(backend, local_administrator(), args.run_id, args.reason)
    print(f"run {args.run_id} will stop")
