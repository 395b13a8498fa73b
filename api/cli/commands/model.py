"""``ballast model``: models and their versions."""

from __future__ import annotations

import argparse
from functools import partial
from operator import itemgetter
from pathlib import Path

from api.backend.actor import local_administrator
from api.backend.wiring import Backend
from api.cli.common import (
    add_action,
    add_actions,
    add_reason,
    add_yes_or_no,
    checked,
    note_asset_type,
    print_fields,
    print_json,
    print_list,
    print_table,
    run_action,
    tell,
)
from api.models import exports, queries
from api.models import service as models
from api.models.schemas import ChampionChange, Unlearning, VersionDetail
from services.contracts.errors import InvalidInputError
from services.contracts.evaluation.fairness import FairnessIndices
from services.process.private_files import write_whole
from services.reporting.calibration_rows import calibration_rows
from services.reporting.fairness_page import EXPLAINED, index_columns
from services.reporting.undiagnosed import undiagnosed

run = run_action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    listing = add_action(actions, "list", _list, "list models and their champions", lists=True)
    listing.add_argument("--asset-type", metavar="NAME", help="of one kind of machine")
    listing.add_argument("--prefix", default="", help="whose names begin so")
    add_yes_or_no(listing, "--champion", "that have a champion", "that have none")
    show = add_action(actions, "show", _show, "show a model, or one of its versions", "NAME", lists=True)
    show.add_argument("version", metavar="VERSION", nargs="?", help="number or alias; none: the whole model")
    fairness = add_action(
        actions, "fairness", _fairness, "show how unequally a version serves the sites", "NAME", lists=True
    )
    fairness.add_argument("version", metavar="VERSION", nargs="?", default="champion", help="default: champion")
    made = add_action(actions, "export", _export, "write a version as a file that runs elsewhere", "NAME", "VERSION")
    made.add_argument("--format", choices=("onnx", "c99"), required=True, help="an ONNX model, or a C99 header")
    made.add_argument("--precision", choices=("double", "float"), default="double", help="default: double")
    made.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write it")
    promote = add_action(actions, "promote", _promote, "make a version champion", "NAME")
    promote.add_argument("version", metavar="VERSION", nargs="?", default="challenger", help="default: challenger")
    promote.add_argument("--ignore-gates", action="store_true", help="also where a gate of its plan does not hold")
    add_reason(promote, required=True)
    unlearn = add_action(actions, "unlearn", _unlearn, "train without a plant that left, and forget it", "NAME")
    unlearn.add_argument("--site", required=True, metavar="ID", help="the plant; its enrolment ends")
    unlearn.add_argument(
        "--purge", choices=("promotion", "now"), default="promotion",
        help="when older versions go: when one without the plant is champion, or as soon as there is one",
    )
    add_reason(unlearn, required=False)
    rollback = add_action(actions, "rollback", _rollback, "make the champion before this one champion again", "NAME")
    add_reason(rollback, required=True)


def _list(backend: Backend, args: argparse.Namespace) -> None:
    note_asset_type(backend, args.asset_type)
    print_list(args, queries.model_list(backend, args.asset_type, args.prefix, args.champion), {
        "name": "name", "asset type": "asset_type", "champion": "champion", "challenger": "challenger",
        "champion before": "previous_champion",
    })


def _show(backend: Backend, args: argparse.Namespace) -> None:
    if args.version is not None:
        _show_version(backend, args)
        return
    model = queries.model_detail(backend, args.name)
    if args.json:
        print_json(model)
        return
    print_table(model.versions, {
        "version": "version", "aliases": "aliases", "loss": "loss", "rounds": "rounds", "gap": "certified_gap",
        "worst-case risk": "worst_case_risk", "f1": "f1", "mae": "mae", "created": "created_at", "run": "run_id",
    })


def _show_version(backend: Backend, args: argparse.Namespace) -> None:
    found = queries.version_detail(backend, args.name, args.version)
    if args.json:
        print_json(found)
        return
    shown = (
        "name", "version", "aliases", "run_id", "mlflow_run_id", "method", "solvers", "fingerprint", "rounds",
        "mixture_confidence", "worst_case_risk", "objective_name", "objective", "lower_bound", "certified_gap",
        "fresh_weight", "created_at",
    )
    unit = found.asset_type.target.unit if found.task == "regression" and found.asset_type.target else None
    calibrated = calibration_rows(found.calibration_facts, unit)
    told = [name for name in shown if name != "worst_case_risk" or found.spec.loss.has_ball]
    print_fields([*((name, _as_told(found, name)) for name in told), *_scores(found), *calibrated, *_notes(found)])
    print()
    names = ("f1",) if found.task == "classification" else ("mae", "r2", "coverage")
    balls = {"radius": "radius", "worst-case risk": "worst_case_risk"} if found.spec.loss.has_ball else {}
    print_table(found.sites, {
        "site": "site_id", "weight": "weight", "worst weight": "worst_weight", **balls,
        **{name: name for name in names}, "answered last": "fresh",
    })
    if found.freshness:
        print()
        print_table(found.freshness, {
            "site": "site_id", "newest question": "question", "came in round": "came", "at the model": "at_model",
            "at work": "at_work",
        })
    if found.gates:
        print()
        same = {name: name for name in ("wanted", "found", "holds")}
        print_table(found.gates, {"gate": "name", **same, "why": "reason"})


def _as_told(found: VersionDetail, name: str) -> object:
    """A field; of a worst-case risk that plants tell from above that it is a bound."""
    value = getattr(found, name)
    return f"at most {value:.4g}" if name == "worst_case_risk" and found.risk_is_from_above else value


def _scores(found: VersionDetail) -> list[tuple[str, object]]:
    """What a version is for and how it scored on the held-out parts."""
    seen = "masked sums over cohorts of sites" if found.reveal == "sums" else "the answers of each site"
    shown: list[tuple[str, object]] = [
        ("task", found.task), ("loss", str(found.spec.loss)), ("the coordinator saw", seen),
        ("ball around the weights", found.mixture.words),
    ]
    if found.noise is not None:
        promised = ("epsilon", "delta", "confidence", "within")
        shown += [(f"noise {name}", getattr(found.noise, name)) for name in promised]
    target, interval = found.asset_type.target, found.error_interval
    if found.task == "classification" or target is None:
        return [*shown, ("f1", found.f1)]
    shown += [("target", f"{target.name} in {target.unit}")]
    shown += [(name, getattr(found, name)) for name in ("n_test", "mae", "rmse", "r2", "pinball")]
    if interval is not None:
        ends = f"{interval.below:.4g} below to {interval.above:.4g} above the estimate"
        shown += [(f"interval at {interval.confidence:g}", ends), ("coverage, held out", found.coverage)]
    return shown


def _notes(found: VersionDetail) -> list[tuple[str, object]]:
    """What the method says of its result, where it says something, and classes that the version never says."""
    shown: list[tuple[str, object]] = [("the method says", found.note)] if found.note else []
    shown += [("take care", each) for each in undiagnosed(found.asset_type.class_names, found.confusion)]
    part = found.convex_part
    return shown if part is None else [*shown, ("gap of the convex part", part.gap)]


def _fairness(backend: Backend, args: argparse.Namespace) -> None:
    report = queries.fairness(backend, args.name, args.version)
    if args.json:
        print_json(report)
        return
    columns = {title: partial(_index, indices) for title, indices in index_columns(report).items()}
    if columns:
        print_table(EXPLAINED.items(), {"index": itemgetter(1), **columns})
        print()
    scored = "f1" if report.unit is None else "mae"
    print_table(report.sites, {
        "site": "site_id", "weight": "weight", "worst weight": "worst_weight", "worst-case risk": "worst_case_risk",
        "held-out loss": "loss", scored: scored, "answered last": "fresh",
    })
    for note in report.notes:
        print(f"\n{note}")


def _index(indices: FairnessIndices, explained: tuple[str, str]) -> object:
    return getattr(indices, explained[0])


def _export(backend: Backend, args: argparse.Namespace) -> None:
    made = exports.export(backend, local_administrator(), args.name, args.version, args.format, args.precision)
    try:
        write_whole(args.out, made.data)
    except OSError as error:
        raise InvalidInputError(f"{args.out} cannot be written: {error.strerror}") from None
    told = {"model": args.name, "version": made.version, "file": str(args.out), "bytes": len(made.data)}
    tell(args, told, f"version {made.version} of model {args.name}: {len(made.data)} bytes in {args.out}")


def _promote(backend: Backend, args: argparse.Namespace) -> None:
    change = models.promote(
        backend, local_administrator(), args.name, args.version, args.reason, ignore_gates=args.ignore_gates
    )
    tell(args, change, f"version {change.version} of model {change.model} is champion{_instead(change)}")


def _unlearn(backend: Backend, args: argparse.Namespace) -> None:
    from api.models import unlearning

    reason = args.reason or "the plant left"
    wanted = checked(Unlearning, "unlearning", site=args.site, reason=reason, purge=args.purge)
    found = unlearning.unlearn(backend, local_administrator(), args.name, wanted)
    if args.json:
        print_json(found)
        return
    print_fields({
        "run": found.run_id, "versions that go": ", ".join(found.versions) or "none",
        "runs renamed in": str(len(found.runs)), "when": found.purge,
        "other models with it": ", ".join(found.other_models) or "none",
        "backups with it": ", ".join(found.backups) or "none", "what stays": found.stays,
    }.items())


def _rollback(backend: Backend, args: argparse.Namespace) -> None:
    change = models.rollback(backend, local_administrator(), args.name, args.reason)
    tell(args, change, f"version {change.version} of model {change.model} is champion again{_instead(change)}")


def _instead(change: ChampionChange) -> str:
    """What it took the place of; "before it" would be the champion that a rollback goes back to."""
    return "" if change.previous_version is None else f" instead of {change.previous_version}"
