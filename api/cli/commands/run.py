"""``ballast run``: runs of plans."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from typing import get_args

from api.backend.actor import local_administrator
from api.backend.flows_process import flows_at_work
from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, note_unknown, print_fields, print_json, print_list, run_action, tell
from api.runs import service as runs
from models.losses.catalogue import LossName
from services.contracts.documents import to_plain
from services.contracts.history.run import RunStatus
from services.contracts.problems.tuning_curve import TuningCurve, candidate_words, score_words
from services.process.command_line import seconds, whole_number

run = run_action
SHOWN = 24
"""Plants that are named on a line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    listing = add_action(actions, "list", _list, "list runs, newest first", lists=True)
    listing.add_argument("--plan", metavar="NAME", help="of one plan")
    listing.add_argument("--status", choices=get_args(RunStatus), help="of one status")
    listing.add_argument("--limit", type=whole_number, default=20, help="most runs (default 20)")
    add_action(actions, "show", _show, "show a run", "RUN_ID", lists=True)
    add_action(actions, "rounds", _rounds, "list the committed rounds of a run", "RUN_ID", lists=True)
    watch = add_action(actions, "watch", _watch, "follow a run; 0 where it completes", "RUN_ID", lists=True)
    watch.add_argument("--every", type=seconds, default=1.0, metavar="SECONDS", help="between two looks (default 1)")
    add_action(actions, "cancel", _cancel, "ask a run to stop after its present round", "RUN_ID", reason=True)


def _list(backend: Backend, args: argparse.Namespace) -> None:
    if args.plan is not None:
        note_unknown("plan", args.plan, (each.plan.name for each in backend.store.plans.list_plans(archived=True)))
    print_list(args, backend.store.runs.list_runs(plan=args.plan, status=args.status, limit=args.limit), {
        "id": "run_id", "plan": "plan.name", "status": "status", "rounds": "rounds", "gap": "gap",
        "created": "created_at", "version": "model_version",
    })


def _show(backend: Backend, args: argparse.Namespace) -> None:
    found = backend.store.runs.get_run(args.run_id)
    if args.json:
        print_json(found)
        return
    shown = ("run_id", "status", "doing", "reason", "rounds", "gap", "upper", "lower", "fresh_weight", "created_at")
    last = backend.store.runs.get_rounds(args.run_id, after=max(0, found.rounds - 1))
    results = ("cancel_requested", "flow_run_id", "mlflow_run_id", "model_version")
    print_fields([
        ("plan", found.plan.name),
        *([("for this run alone", _pairs(found.plan.overrides))] if found.plan.overrides else []),
        *((name, getattr(found, name)) for name in shown),
        *_tuning(found.plan.tuned, found.plan.spec.loss.name),
        ("sites", _first([site.site_id for site in found.sites])),
        ("absentees", _first([f"{answer.site_id} ({answer.code})" for answer in found.absentees])),
        ("at work", [
            f"{answer.site_id} (question of round {answer.question or record.round}, {answer.seconds:.1f} s)"
            for record in last for answer in record.answers if answer.status == "open"
        ]),
        ("excluded", [f"{each.site_id} in round {each.round} ({each.reason})" for each in found.excluded]),
        *((name, getattr(found, name)) for name in results),
    ])


def _first(names: list[str]) -> list[str]:
    """The first of hundreds of plants, and how many there are besides; ``--json`` names all."""
    more = len(names) - SHOWN
    return names if more <= 0 else [*names[:SHOWN], f"and {more} more (--json names all)"]


def _tuning(curve: TuningCurve | None, loss: LossName) -> list[tuple[str, object]]:
    """What a tuning chose, cost and tried (radius by factor, cost of a flip, lift); nothing where there was none."""
    if curve is None:
        return []
    tried = [
        f"{candidate_words(each)} {'not scored' if each.score is None else format(each.score, '.4g')}"
        for each in curve.candidates
    ]
    return [
        ("terms of run", curve.reused_from or "this one"),
        ("terms chosen", candidate_words(curve.terms)),
        ("why", curve.why),
        ("tuning cost", f"{curve.rounds} rounds, {curve.bytes_sent} bytes to the plants, {curve.bytes_received} back"),
        ("candidates", "; ".join(tried)),
        ("scores", score_words(loss)),
    ]


def _pairs(overrides: Mapping[str, object]) -> list[str]:
    return [f"{name} = {json.dumps(value)}" for name, value in overrides.items()]


def _rounds(backend: Backend, args: argparse.Namespace) -> None:
    same = {name: name for name in ("round", "upper", "lower", "gap", "seconds")}
    print_list(args, backend.store.runs.get_rounds(args.run_id), {
        **same,
        "accepted": lambda item: sum(answer.status == "accepted" for answer in item.answers),
        "at work": lambda item: [answer.site_id for answer in item.answers if answer.status == "open"],
        "missing": lambda item: [
            answer.site_id for answer in item.answers if answer.status not in ("accepted", "open")
        ],
    })


def _watch(backend: Backend, args: argparse.Namespace) -> int:
    """Print what it does, each round when it is committed, and its end; on stderr that nobody drives it.

    As JSON the rounds alone: what it ended with is on stderr then, where it was not completed.
    """
    seen, said, alone = 0, "", False
    while True:
        found = backend.store.runs.get_run(args.run_id)
        goes_on, because = found.status in ("pending", "running"), found.reason or found.doing
        state = f"{found.status}{': ' if because else ''}{because}"
        if goes_on and state != said and not args.json:
            said = state
            print(state, flush=True)
        for each in backend.store.runs.get_rounds(args.run_id, after=seen):
            seen = each.round
            if args.json:
                print(json.dumps(to_plain(each), allow_nan=False), flush=True)
            else:
                there = sum(answer.status == "accepted" for answer in each.answers)
                print(f"round {seen}: gap {each.gap:.2e}, at most {each.upper:.5g}, {there} sites", flush=True)
        if not goes_on:
            if not args.json:
                print(state, flush=True)
            elif found.status != "completed":
                print(f"ballast: run {args.run_id} {state}", file=sys.stderr)
            return 0 if found.status == "completed" else 1
        before, alone = alone, flows_at_work(backend.settings) is False
        if alone and not before:
            where = backend.settings.home
            print(
                f"ballast: run {args.run_id} waits: no flows process runs on {where}; `ballast up` starts one",
                file=sys.stderr, flush=True,
            )
        time.sleep(max(0.05, args.every))


def _cancel(backend: Backend, args: argparse.Namespace) -> None:
    found = runs.cancel(backend, local_administrator(), args.run_id, args.reason)
    tell(args, found, f"run {args.run_id} will stop")
    if flows_at_work(backend.settings) is False:
        where = backend.settings.home
        print(
            f"ballast: run {args.run_id} is not ended yet: no flows process runs on {where}; `ballast up` starts one",
            file=sys.stderr,
        )
