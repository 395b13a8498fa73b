"""``ballast plan``: what is trained, and when."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from api.backend.actor import local_administrator
from api.backend.flows_process import flows_at_work
from api.backend.wiring import Backend
from api.cli.common import (
    Column,
    add_action,
    add_actions,
    add_times,
    add_yes_or_no,
    note_asset_type,
    once,
    print_json,
    print_list,
    run_action,
    tell,
)
from api.plans import service as plans
from api.plans.checks import check_plan
from services.contracts.errors import InvalidInputError
from services.contracts.history.run import Run
from services.contracts.plans.overrides import FOR_ONE_RUN
from services.contracts.plans.plan import Plan
from services.contracts.plans.plan_changes import Change, plan_changes
from services.contracts.reading import explain, read_contract
from services.contracts.toml_text import to_toml
from services.process.command_line import whole_number

run = run_action
PLAN_FILE = "file with the plan, TOML or JSON"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    about = "print a new plan as TOML, whose terms are tuned, to be edited"
    init = add_action(actions, "init", _init, about, "NAME")
    init.add_argument("--asset-type", required=True, metavar="NAME", help="kind of machine that it is for")
    create = add_action(actions, "create", _create, "store a new plan")
    create.add_argument("file", type=Path, metavar="FILE", help=PLAN_FILE)
    create.add_argument("--paused", action="store_true", help="do not start it by its schedule yet")
    create.add_argument("--dry-run", action="store_true", help="check it; nothing is stored")
    update = add_action(actions, "update", _update, "give a plan another content; runs keep theirs", reason=True)
    update.add_argument("file", type=Path, metavar="FILE", help=PLAN_FILE)
    update.add_argument("--dry-run", action="store_true", help="check it and show what would change; nothing is stored")
    diff = add_action(actions, "diff", _diff, "show what a file, or the last version, changes of a plan", lists=True)
    diff.add_argument("plan", metavar="FILE_OR_NAME", help="a file: against what is stored; a name: its versions")
    diff.add_argument(
        "--from", dest="before", type=whole_number, metavar="N", help="version (default: the one before --to)"
    )
    diff.add_argument("--to", dest="after", type=whole_number, metavar="N", help="version (default: the present one)")
    listing = add_action(actions, "list", _list, "list plans", lists=True)
    listing.add_argument("--archived", action="store_true", help="the archived ones too")
    listing.add_argument("--asset-type", metavar="NAME", help="of one kind of machine")
    add_yes_or_no(listing, "--paused", "that are paused", "that are not")
    add_action(actions, "show", _show, "show a plan as TOML, or as JSON with --json", "NAME", lists=True)
    history = add_action(actions, "history", _history, "list the versions of a plan and who gave them", "NAME")
    history.add_argument("--actor", help="that one actor gave")
    add_times(history)
    for name, do, about in (
        ("pause", partial(_set_paused, True), "stop starting a plan by its schedule"),
        ("resume", partial(_set_paused, False), "start a plan by its schedule again"),
        ("archive", partial(_set_archived, True), "put a plan away; its model and its runs stay"),
        ("restore", partial(_set_archived, False), "bring an archived plan back"),
        ("delete", _delete, "forget a plan that was never used"),
    ):
        add_action(actions, name, do, about, "NAME", reason=True)
    trigger = add_action(actions, "trigger", _trigger, "ask for a run now and print its id", "NAME", reason=True)
    trigger.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", dest="overrides", type=_override,
                         help=f"for this run alone, again for more; fields: {', '.join(FOR_ONE_RUN)}")
    add_action(actions, "tune", _tune, "choose a plan's terms, train nothing; prints the run's id", "NAME", reason=True)


def _override(text: str) -> tuple[str, bool | int | float | str]:
    """A field and its value, which is written as in a plan; the plan's own check says what does not fit."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"write FIELD=VALUE, such as max_rounds=50, not {text[:60]!r}")
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):  # no JSON, or a number or a depth that is not read
        return name.strip(), value
    return name.strip(), read if isinstance(read, bool | int | float) else value


def _init(backend: Backend, args: argparse.Namespace) -> None:
    asset_type = backend.store.asset_types.get(args.asset_type).asset_type
    of_target = not asset_type.fault_classes
    spec = {"spec": {"loss": "pinball"}} if of_target else {}
    try:
        plan = Plan.model_validate({"name": args.name, "asset_type": asset_type.name, "tuning": "auto", **spec})
    except ValidationError as error:
        raise InvalidInputError(f"plan: {explain(error, Plan)}") from None
    check_plan(backend.store, plan)
    started = "it is triggered"
    terms = "radius and lift" if of_target else "radius, lift, and the loss of rare faults"
    tuned = f"{terms}, by the rows in the plants"
    learnt = "the target by its median; huber and epsilon_insensitive are there too"
    lines = [
        f'name = "{plan.name}"', f'asset_type = "{plan.asset_type}"', f'reveal = "{plan.reveal}"',
        *([f'spec = {{ loss = "pinball" }}    # {learnt}'] if of_target else []),
        f'tuning = "auto"                # {tuned}',
        f'# cron = "0 3 * * 1"           # without it a run begins when {started}',
    ]
    notes = [
        *([f"learnt is {learnt}"] if of_target else []), f"tuning chooses {tuned}",
        f"without a cron a run begins when {started}",
    ]
    tell(args, {"text": "\n".join([*lines, ""]), "plan": plan, "notes": notes}, *lines)


def _create(backend: Backend, args: argparse.Namespace) -> None:
    plan = read_contract(Plan, args.file, "plan")
    made = plans.create(backend, local_administrator(), plan, paused=args.paused, dry_run=args.dry_run)
    head = f"plan {plan.name}: {plan.method} for {plan.asset_type}, schedule {plan.cron or 'none'}"
    tell(args, made, head, *_kept(args))
    _tell_notices(made.notices)


def _update(backend: Backend, args: argparse.Namespace) -> None:
    plan = read_contract(Plan, args.file, "plan")
    before = backend.store.plans.get(plan.name)
    after = plans.update(backend, local_administrator(), plan, args.reason, dry_run=args.dry_run)
    changes = plan_changes(before.plan, after.plan)
    head = f"plan {plan.name} version {after.version}" + ("" if changes else ": nothing changes")
    tell(args, {"record": after, "changes": _as_plain(changes)}, head, *_change_lines(changes), *_kept(args))
    _tell_notices(after.notices)


def _kept(args: argparse.Namespace) -> list[str]:
    return ["nothing was stored"] if args.dry_run else []


def _tell_notices(notices: Iterable[str]) -> None:
    """What a plan says that is allowed and seldom meant, to stderr: the result stays what it is."""
    for notice in notices:
        print(f"ballast: note: {notice}", file=sys.stderr)


def _diff(backend: Backend, args: argparse.Namespace) -> None:
    before, after = _compared(backend, args)
    changes = plan_changes(before, after)
    tell(args, _as_plain(changes), *_change_lines(changes))


def _compared(backend: Backend, args: argparse.Namespace) -> tuple[Plan, Plan]:
    path = Path(args.plan)
    if path.suffix in (".toml", ".json"):
        if args.before is not None or args.after is not None:
            raise InvalidInputError("--from and --to are of a plan's versions: give its name, not a file")
        plan = read_contract(Plan, path, "plan")
        return backend.store.plans.get(plan.name).plan, plan
    versions = {each.version: each.plan for each in backend.store.plans.versions(args.plan)}
    last = args.after or max(versions)
    first = args.before or max(1, last - 1)
    for number in (first, last):
        if number not in versions:
            raise InvalidInputError(f"plan {args.plan} has no version {number}, but 1 to {max(versions)}")
    return versions[first], versions[last]


def _as_plain(changes: Mapping[str, Change]) -> dict[str, dict[str, object]]:
    return {path: {"before": old, "after": new} for path, (old, new) in changes.items()}


def _change_lines(changes: Mapping[str, Change]) -> list[str]:
    return [
        f"{path}: {json.dumps(old, ensure_ascii=False)} -> {json.dumps(new, ensure_ascii=False)}"
        for path, (old, new) in changes.items()
    ]


def _list(backend: Backend, args: argparse.Namespace) -> None:
    columns: dict[str, Column] = {
        "name": "plan.name", "asset type": "plan.asset_type", "method": "plan.method", "schedule": "plan.cron",
        "paused": "paused", "sites": lambda item: item.plan.sites or "all", "version": "version",
    }
    note_asset_type(backend, args.asset_type)
    if args.archived:
        columns["archived"] = "archived"
    print_list(args, plans.listed(backend, args.archived, args.asset_type, args.paused), columns)


def _show(backend: Backend, args: argparse.Namespace) -> None:
    found = backend.store.plans.get(args.name)
    if args.json:
        print_json(found)
        return
    state = ", ".join(word for word, holds in (("paused", found.paused), ("archived", found.archived)) if holds)
    print(f"# version {found.version} of {found.updated_at:%Y-%m-%d %H:%M:%S} UTC{state and ', ' + state}")
    print(to_toml(found.plan), end="")
    if found.plan.gates.max_gap is None:
        print("# gates.max_gap is not asked: TOML cannot say so, see --json")


def _history(backend: Backend, args: argparse.Namespace) -> None:
    every = backend.store.plans.versions(args.name)
    earlier = dict(zip([each.version for each in every[1:]], every, strict=False))
    print_list(args, plans.given_by(every, args.actor, args.since, args.until), {
        "version": "version", "at": "created_at", "by": "actor", "reason": "reason",
        "changes": lambda item: [*plan_changes(earlier[item.version].plan, item.plan)] if item.version > 1 else None,
    })


def _set_paused(paused: bool, backend: Backend, args: argparse.Namespace) -> None:
    found = plans.set_paused(backend, local_administrator(), args.name, paused, args.reason)
    tell(args, found, f"plan {args.name} is {'paused' if paused else 'not paused'}")


def _set_archived(archived: bool, backend: Backend, args: argparse.Namespace) -> None:
    found = plans.set_archived(backend, local_administrator(), args.name, archived, args.reason)
    tell(args, found, f"plan {args.name} is {'archived' if archived else 'not archived'}")


def _delete(backend: Backend, args: argparse.Namespace) -> None:
    gone = plans.delete(backend, local_administrator(), args.name, args.reason)
    tell(args, gone, f"plan {args.name} is deleted")


def _trigger(backend: Backend, args: argparse.Namespace) -> None:
    run = plans.trigger(backend, local_administrator(), args.name, args.reason, once("--set", args.overrides))
    _tell_order(backend, args, run)
    _tell_notices(run.notices)


def _tune(backend: Backend, args: argparse.Namespace) -> None:
    _tell_order(backend, args, plans.tune(backend, local_administrator(), args.name, args.reason))


def _tell_order(backend: Backend, args: argparse.Namespace, run: Run) -> None:
    """Print the id of a run that was asked for, and to stderr where nobody is there to start it."""
    run_id = run.run_id
    tell(args, run, run_id)
    if flows_at_work(backend.settings) is False:
        print(
            f"ballast: run {run_id} waits: no flows process runs on {backend.settings.home}; `ballast up` starts one",
            file=sys.stderr,
        )
