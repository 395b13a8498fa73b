"""``ballast asset-type``: kinds of machines."""

from __future__ import annotations

import argparse
from pathlib import Path

from api.asset_types import service as asset_types
from api.backend.actor import local_administrator
from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, print_list, run_action, tell
from services.contracts.asset_type import AssetType
from services.contracts.records import AssetTypeRecord

run = run_action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    add = add_action(actions, "add", _add, "store a version of an asset type")
    add.add_argument("file", type=Path, metavar="FILE", help="TOML file with features, and fault classes or a target")
    add_action(actions, "list", _list, "list asset types in all their versions", lists=True)


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
