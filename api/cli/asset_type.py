"""``ballast asset-type``: kinds of machines."""

from __future__ import annotations

import argparse
from pathlib import Path

from api.asset_types import service as asset_types
from api.asset_types.draft import Layout, draft_asset_type
from api.backend.actor import local_administrator
from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, print_list, run_action, tell
from services.contracts.asset_type import AssetType
from services.contracts.records import AssetTypeRecord
from services.contracts.toml_text import to_toml


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    add = add_action(actions, "add", _add, "store a version of an asset type")
    add.add_argument("file", type=Path, metavar="FILE", help="TOML file with features, and fault classes or a target")
    add_action(actions, "list", _list, "list asset types in all their versions", lists=True)
    draft = actions.add_parser("draft", help="print an asset type as TOML, to be edited, from a table of measurements")
    draft.add_argument("file", type=Path, metavar="FILE", help="CSV file with a header line")
    draft.add_argument("--name", required=True, help="what the kind of machine is called")
    draft.add_argument("--label", metavar="COLUMN", help="column of the fault classes (default: label)")
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
    for remark in ("drafted from readings: see to units, ranges and severities", *drafted.remarks):
        print(f"# {remark}")
    print(f"\n{to_toml(drafted.asset_type)}", end="")
    return 0


def _add(backend: Backend, args: argparse.Namespace) -> None:
    stored = asset_types.put(backend, local_administrator(), AssetType.from_toml(args.file)).asset_type
    tell(args, stored, f"asset type {stored.name} version {stored.version}: {len(stored.features)} features")


def _list(backend: Backend, args: argparse.Namespace) -> None:
    print_list(args, backend.store.asset_types.list_asset_types(), {
        "name": "asset_type.name", "version": "asset_type.version",
        "features": lambda item: len(item.asset_type.features), "classes": "asset_type.class_names",
        "target": _target, "fingerprint": lambda item: item.fingerprint[:16],
    })


def _target(item: AssetTypeRecord) -> str | None:
    target = item.asset_type.target
    return f"{target.name} [{target.unit}]" if target else None
