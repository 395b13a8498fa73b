"""``ballast plan``: what is trained, and when."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from api.backend.actor import local_administrator
from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, print_fields, print_json, print_list, run_action
from api.plans import service as plans
from services.contracts.asset_type import read_toml
from services.contracts.plan import Plan

run = run_action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    create = add_action(actions, "create", _create, "store a new plan")
    create.add_argument("file", type=Path, metavar="FILE", help="TOML file with the plan")
    create.add_argument("--paused", action="store_true", help="do not start it by its schedule yet")
    add_action(actions, "list", _list, "list plans", lists=True)
    add_action(actions, "show", _show, "show a plan", "NAME", lists=True)
    for name, do, about in (
        ("pause", partial(_set_paused, True), "stop starting a plan by its schedule"),
        ("resume", partial(_set_paused, False), "start a plan by its schedule again"),
        ("trigger", _trigger, "ask for a run now and print its id"),
    ):
        add_action(actions, name, do, about, "NAME", reason=True)


def _create(backend: Backend, args: argparse.Namespace) -> None:
    plan = read_toml(Plan, args.file, "plan")
    plans.create(backend, local_administrator(), plan, paused=args.paused)
    print(f"plan {plan.name}: {plan.method} for {plan.asset_type}, schedule {plan.cron or 'none'}")


def _list(backend: Backend, args: argparse.Namespace) -> None:
    print_list(args, backend.store.plans.list_plans(), {
        "name": "plan.name", "asset type": "plan.asset_type", "method": "plan.method", "schedule": "plan.cron",
        "paused": "paused", "sites": lambda item: item.plan.sites or "all",
    })


def _show(backend: Backend, args: argparse.Namespace) -> None:
    found = backend.store.plans.get(args.name)
    if args.json:
        print_json(found)
    else:
        print_fields([*((name, getattr(found.plan, name)) for name in Plan.model_fields), ("paused", found.paused)])


def _set_paused(paused: bool, backend: Backend, args: argparse.Namespace) -> None:
    plans.set_paused(backend, local_administrator(), args.name, paused, args.reason)
    print(f"plan {args.name} is {'paused' if paused else 'not paused'}")


def _trigger(backend: Backend, args: argparse.Namespace) -> None:
    print(plans.trigger(backend, local_administrator(), args.name, args.reason).run_id)
