"""``ballast asset-type``: kinds of machines."""

from __future__ import annotations

import argparse
from pathlib import Path

from api.asset_types import service as asset_types
from api.asset_types.draft import draft_asset_type
from api.asset_types.table import Layout
from api.backend.actor import local_administrator
from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, print_list, run_action, tell
from services.contracts.errors import NotFoundError
from services.contracts.history.records import AssetTypeRecord
from services.contracts.machines.asset_type import AssetType
from services.contracts.plain_words import plain
from services.contracts.toml_text import to_toml
from services.process.command_line import add_json, whole_number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    add = add_action(actions, "add", _add, "store a version of an asset type")
    add.add_argument("file", type=Path, metavar="FILE", help="TOML file with features, and fault classes or a target")
    add.add_argument("--dry-run", action="store_true", help="check it and say whom it concerns; nothing is stored")
    show = add_action(actions, "show", _show, "show a version as TOML, as plants need it", "NAME", lists=True)
    show.add_argument("--version", type=whole_number, metavar="N", help="default: the newest")
    add_action(actions, "list", _list, "list asset types in all their versions", lists=True)
    draft = actions.add_parser("draft", help="print an asset type as TOML, to be edited, from a table of measurements")
    add_json(draft)
    draft.add_argument("file", type=Path, metavar="FILE", help="CSV file with a header line")
    draft.add_argument("--name", required=True, help="what the kind of machine is called")
    draft.add_argument("--label", metavar="COLUMN", help="column of the fault classes (label; with --target none)")
    draft.add_argument("--target", metavar="COLUMN", help="column of a number to be estimated")
    draft.add_argument("--without", metavar="COLUMN", action="append", default=[], help="no feature; repeatable")
    draft.add_argument("--delimiter", default=",", help="what divides the cells (,)")
    draft.add_argument("--decimal", default=".", choices=(".", ","), help="decimal mark (.)")


def run(args: argparse.Namespace) -> int:
    """Do the action; a draft needs no home."""
    if args.action != "draft":
        return run_action(args)
    label = args.label if args.label is not None or args.target is not None else "label"
    layout = Layout(args.delimiter, args.decimal, label, args.target, tuple(args.without))
    drafted = draft_asset_type(args.name, args.file, layout)
    notes = [plain(each) for each in ("drafted from readings: see to units, ranges and severities", *drafted.remarks)]
    lines = [*(f"# {note}" for note in notes), "", *to_toml(drafted.asset_type).removesuffix("\n").split("\n")]
    tell(args, {"text": "\n".join([*lines, ""]), "asset_type": drafted.asset_type, "notes": notes}, *lines)
    return 0


def _add(backend: Backend, args: argparse.Namespace) -> None:
    given = AssetType.from_toml(args.file)
    made = asset_types.put(backend, local_administrator(), given, dry_run=args.dry_run)
    stored, newer = made.stored.asset_type, made.before is not None
    head = f"asset type {stored.name} version {stored.version}: {len(stored.features)} features"
    tell(args, stored, head, *(_whom_it_concerns(backend, stored, args.dry_run) if newer else ()),
         *(["nothing was stored"] if args.dry_run else ()))


def _whom_it_concerns(backend: Backend, asset_type: AssetType, dry_run: bool) -> list[str]:
    """What a newer version asks of plans and plants."""
    found, lines = asset_types.concerned(backend, asset_type.name), []
    if found.plans:
        are = "would be" if dry_run else "are"
        lines.append(f"runs of {', '.join(found.plans)} that begin from now on {are} of it")
    if found.sites:
        lines.append(
            f"{', '.join(found.sites)} {'would take' if dry_run else 'take'} no part in them until the asset type's "
            f"file there is this version (`ballast asset-type show {asset_type.name}`)"
        )
    return lines


def _show(backend: Backend, args: argparse.Namespace) -> None:
    newest = backend.store.asset_types.get(args.name).asset_type.version
    wanted = args.version or newest
    found = {item.asset_type.version: item.asset_type for item in backend.store.asset_types.list_asset_types()
             if item.asset_type.name == args.name}
    if wanted not in found:
        raise NotFoundError(f"asset type {args.name} has no version {wanted}, but {', '.join(map(str, found))}")
    tell(args, found[wanted], to_toml(found[wanted]).rstrip("\n"))


def _list(backend: Backend, args: argparse.Namespace) -> None:
    print_list(args, backend.store.asset_types.list_asset_types(), {
        "name": "asset_type.name", "version": "asset_type.version",
        "features": lambda item: len(item.asset_type.features), "classes": "asset_type.class_names",
        "target": _target, "fingerprint": lambda item: item.fingerprint[:16],
    })


def _target(item: AssetTypeRecord) -> str | None:
    target = item.asset_type.target
    return f"{target.name} [{target.unit}]" if target else None
