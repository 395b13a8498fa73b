"""``ballast asset-type``: kinds of machines."""

from __future__ import annotations

import argparse
from pathlib import Path

from api.cli.common import add_action, add_actions, opened, print_json, print_table
from api.use_cases import asset_types
from api.use_cases.actor import local_administrator
from services.contracts.asset_type import AssetType


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    add = add_action(actions, "add", _add, "store a version of an asset type")
    add.add_argument("file", type=Path, metavar="FILE", help="TOML file with features, and fault classes or a target")
    add_action(actions, "list", _list, "list asset types in all their versions", lists=True)


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    code: int = args.do(args)
    return code


def _add(args: argparse.Namespace) -> int:
    asset_type = AssetType.from_toml(args.file)
    with opened(args) as backend:
        stored = asset_types.put(backend, local_administrator(), asset_type).asset_type
    print(f"asset type {stored.name} version {stored.version}: {len(stored.features)} features")
    return 0


def _list(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        found = backend.store.asset_types.list_asset_types()
    if args.json:
        print_json(found)
        return 0
    print_table(("name", "version", "features", "classes", "target", "fingerprint"), (
        (
            kind.name, kind.version, len(kind.features), kind.class_names,
            f"{kind.target.name} [{kind.target.unit}]" if kind.target else None, item.fingerprint[:16],
        )
        for item in found for kind in [item.asset_type]
    ))  # fmt: skip
    return 0
