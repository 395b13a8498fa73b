"""``ballast plan``: what is trained, and when."""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

from pydantic import ValidationError

from api.cli.common import add_action, add_actions, add_reason, opened, print_fields, print_json, print_table
from api.use_cases import plans
from api.use_cases.actor import local_administrator
from services.contracts.asset_type import explain
from services.contracts.errors import InvalidInputError
from services.contracts.plan import Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    create = add_action(actions, "create", _create, "store a new plan")
    create.add_argument("file", type=Path, metavar="FILE", help="TOML file with the plan")
    create.add_argument("--paused", action="store_true", help="do not start it by its schedule yet")
    add_action(actions, "list", _list, "list plans", lists=True)
    show = add_action(actions, "show", _show, "show a plan", lists=True)
    show.add_argument("name", metavar="NAME")
    for name, do, about in (
        ("pause", _pause, "stop starting a plan by its schedule"),
        ("resume", _resume, "start a plan by its schedule again"),
        ("trigger", _trigger, "ask for a run now and print its id"),
    ):
        action = add_action(actions, name, do, about)
        action.add_argument("name", metavar="NAME")
        add_reason(action)


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    code: int = args.do(args)
    return code


def read_plan(path: Path) -> Plan:
    """Plan of a TOML file; raise :class:`InvalidInputError` with one line of what does not fit."""
    try:
        return Plan.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidInputError(f"no plan file can be read at {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path} is not TOML: {error}") from None
    except ValidationError as error:
        raise InvalidInputError(f"{path}: {explain(error)}") from None


def _create(args: argparse.Namespace) -> int:
    plan = read_plan(args.file)
    with opened(args) as backend:
        plans.create(backend, local_administrator(), plan, paused=args.paused)
    print(f"plan {plan.name}: {plan.method} for {plan.asset_type}, schedule {plan.cron or 'none'}")
    return 0


def _list(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        found = backend.store.plans.list_plans()
    if args.json:
        print_json(found)
        return 0
    print_table(("name", "asset type", "method", "schedule", "paused", "sites"), (
        (plan.name, plan.asset_type, plan.method, plan.cron, item.paused, plan.sites or "all")
        for item in found for plan in [item.plan]
    ))  # fmt: skip
    return 0


def _show(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        found = backend.store.plans.get(args.name)
    if args.json:
        print_json(found)
        return 0
    print_fields([*((name, getattr(found.plan, name)) for name in Plan.model_fields), ("paused", found.paused)])
    return 0


def _pause(args: argparse.Namespace) -> int:
    return _set_paused(args, True)


def _resume(args: argparse.Namespace) -> int:
    return _set_paused(args, False)


def _set_paused(args: argparse.Namespace, paused: bool) -> int:
    with opened(args) as backend:
        plans.set_paused(backend, local_administrator(), args.name, paused, args.reason)
    print(f"plan {args.name} is {'paused' if paused else 'not paused'}")
    return 0


def _trigger(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        run = plans.trigger(backend, local_administrator(), args.name, args.reason)
    print(run.run_id)
    return 0
