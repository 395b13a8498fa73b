"""``ballast retention``: forget what the settings say is old."""

from __future__ import annotations

import argparse

from api.backend.actor import local_administrator
from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, print_json, run_action
from services.round_store.tidying import tidy

run = run_action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    adding = add_action(actions, "run", _run, "drop old rounds and events now; the flows process does it daily",
                        lists=True)
    adding.add_argument("--dry-run", action="store_true", help="only say what would be dropped")


def _run(backend: Backend, args: argparse.Namespace) -> None:
    actor = local_administrator()
    done = tidy(
        backend.store, backend.settings.retention, actor=actor.name, role=actor.role, dry_run=args.dry_run
    )
    if args.json:
        print_json(done)
        return
    said = "would be dropped" if args.dry_run else "dropped"
    print(f"{said}: {done.rounds} rounds of {len(done.runs)} runs, {done.events} events")
