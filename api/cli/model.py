"""``ballast model``: models and their versions."""

from __future__ import annotations

import argparse

from api.cli.common import add_action, add_actions, add_reason, opened, print_fields, print_json, print_table
from api.reading import fairness_of, model_detail, version_detail
from api.schemas import VersionDetail
from api.use_cases import models
from api.use_cases.actor import local_administrator
from services.contracts.fairness import BASIS_NAMES, FairnessIndices, FairnessReport
from services.reporting.fairness_page import EXPLAINED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    add_action(actions, "list", _list, "list models and their champions", lists=True)
    show = add_action(actions, "show", _show, "show a model, or one of its versions", lists=True)
    show.add_argument("name", metavar="NAME")
    show.add_argument("version", metavar="VERSION", nargs="?", help="number or alias; none: the whole model")
    fairness = add_action(actions, "fairness", _fairness, "show how unequally a version serves the sites", lists=True)
    fairness.add_argument("name", metavar="NAME")
    fairness.add_argument("version", metavar="VERSION", nargs="?", default="champion", help="default: champion")
    promote = add_action(actions, "promote", _promote, "make a version champion")
    promote.add_argument("name", metavar="NAME")
    promote.add_argument("version", metavar="VERSION", nargs="?", default="challenger", help="default: challenger")
    promote.add_argument("--ignore-gates", action="store_true", help="also where a gate of its plan does not hold")
    add_reason(promote, required=True)
    rollback = add_action(actions, "rollback", _rollback, "make the champion before this one champion again")
    rollback.add_argument("name", metavar="NAME")
    add_reason(rollback, required=True)


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    code: int = args.do(args)
    return code


def _list(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        found = backend.registry.models()
    if args.json:
        print_json(found)
        return 0
    print_table(("name", "asset type", "champion", "challenger", "champion before"), (
        (model.name, model.asset_type, model.champion, model.challenger, model.previous_champion) for model in found
    ))  # fmt: skip
    return 0


def _show(args: argparse.Namespace) -> int:
    if args.version is not None:
        return _show_version(args)
    with opened(args) as backend:
        model = model_detail(backend, args.name)
    if args.json:
        print_json(model)
        return 0
    print_table(("version", "aliases", "loss", "rounds", "gap", "worst-case risk", "f1", "mae", "created", "run"), (
        (
            item.version, item.aliases, item.loss, item.rounds, item.certified_gap, item.worst_case_risk, item.f1,
            item.mae, item.created_at, item.run_id,
        )
        for item in model.versions
    ))  # fmt: skip
    return 0


def _show_version(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        found = version_detail(backend, args.name, args.version)
    if args.json:
        print_json(found)
        return 0
    shown = (
        "name", "version", "aliases", "run_id", "mlflow_run_id", "method", "solvers", "fingerprint", "rounds",
        "mixture_confidence", "certified_gap", "worst_case_risk", "lower_bound", "fresh_weight", "created_at",
    )  # fmt: skip
    print_fields([*((name, getattr(found, name)) for name in shown), *_scores(found), *_said(found)])
    print()
    names = ("f1",) if found.task == "classification" else ("mae", "r2", "coverage")
    print_table(("site", "weight", "worst weight", "radius", "worst-case risk", *names, "answered last"), (
        (
            site.site_id, site.weight, site.worst_weight, site.radius, site.worst_case_risk,
            *(getattr(site, name) for name in names), site.fresh,
        )
        for site in found.sites
    ))  # fmt: skip
    if found.gates:
        print()
        print_table(("gate", "wanted", "found", "holds", "why"), (
            (gate.name, gate.wanted, gate.found, gate.holds, gate.reason) for gate in found.gates
        ))  # fmt: skip
    return 0


def _scores(found: VersionDetail) -> list[tuple[str, object]]:
    """What a version is for and how it scored on the held-out parts."""
    mixture = f"{found.mixture.norm}, radius {found.mixture.radius:g}" if found.mixture.radius else "none"
    told: list[tuple[str, object]] = [
        ("task", found.task), ("loss", str(found.spec.loss)), ("ball around the weights", mixture),
    ]  # fmt: skip
    target, interval = found.asset_type.target, found.error_interval
    if found.task == "classification" or target is None:
        return [*told, ("f1", found.f1)]
    told += [("target", f"{target.name} in {target.unit}")]
    told += [(name, getattr(found, name)) for name in ("n_test", "mae", "rmse", "r2", "pinball")]
    if interval is not None:
        ends = f"{interval.below:.4g} below to {interval.above:.4g} above the estimate"
        told += [(f"interval at {interval.confidence:g}", ends), ("coverage, held out", found.coverage)]
    return told


def _said(found: VersionDetail) -> list[tuple[str, object]]:
    """What the method says of its result, where it says something."""
    told: list[tuple[str, object]] = [("the method says", found.note)] if found.note else []
    part = found.convex_part
    return told if part is None else [*told, ("gap of the convex part", part.gap)]


def _fairness(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        report = fairness_of(backend, backend.registry.get(args.name, args.version))
    if args.json:
        print_json(report)
        return 0
    columns = _columns(report)
    if columns:
        print_table(("index", *columns), (
            (text, *(getattr(indices, name) for indices in columns.values())) for name, text in EXPLAINED.items()
        ))  # fmt: skip
        print()
    scored = "f1" if report.unit is None else "mae"
    head = ("site", "weight", "worst weight", "worst-case risk", "held-out loss", scored, "answered last")
    print_table(head, (
        (
            site.site_id, site.weight, site.worst_weight, site.worst_case_risk, site.loss, getattr(site, scored),
            site.fresh,
        )
        for site in report.sites
    ))  # fmt: skip
    for note in report.notes:
        print(f"\n{note}")
    return 0


def _columns(report: FairnessReport) -> dict[str, FairnessIndices]:
    """Indices by what they are over, the champion's beside this version's own."""
    champion = {indices.basis: indices for indices in report.champion_indices}
    columns = {}
    for indices in report.indices:
        what = BASIS_NAMES[indices.basis]
        columns[what] = indices
        if indices.basis in champion:
            columns[f"{what} of champion {report.champion_version}"] = champion[indices.basis]
    return columns


def _promote(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        change = models.promote(
            backend, local_administrator(), args.name, args.version, args.reason, ignore_gates=args.ignore_gates
        )
    before = change.previous_version or "none"
    print(f"version {change.version} of model {change.model} is champion; before it {before}")
    return 0


def _rollback(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        change = models.rollback(backend, local_administrator(), args.name, args.reason)
    print(f"version {change.version} of model {change.model} is champion again; before it {change.previous_version}")
    return 0
