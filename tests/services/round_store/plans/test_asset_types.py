"""A stored version of an asset type never changes, and numbers only grow."""

from __future__ import annotations

import pytest

from services.contracts.errors import ConflictError, NotFoundError
from services.contracts.machines.asset_type import AssetType
from services.round_store.store import RoundStore


def numbered(asset_type: AssetType, version: int, text: str = "") -> AssetType:
    return asset_type.model_copy(update={"version": version, "description": text})


def test_a_version_is_stored_once_and_never_changed(store: RoundStore, asset_type: AssetType) -> None:
    first = store.asset_types.add(numbered(asset_type, 1, "as it was"))
    assert store.asset_types.add(numbered(asset_type, 1, "as it was")) == first
    with pytest.raises(ConflictError, match="version 1 is stored with another content; give it the next version"):
        store.asset_types.add(numbered(asset_type, 1, "another"))
    assert store.asset_types.get(asset_type.name) == first and first.asset_type.description == "as it was"


def test_numbers_only_grow_and_old_ones_stay(store: RoundStore, asset_type: AssetType) -> None:
    for version in (1, 3, 12):
        store.asset_types.add(numbered(asset_type, version))
    store.asset_types.add(numbered(asset_type, 3))
    with pytest.raises(ConflictError, match="is at version 12 already; 2 is older"):
        store.asset_types.add(numbered(asset_type, 2))
    store.asset_types.add(numbered(asset_type.model_copy(update={"name": "other"}), 2))
    assert store.asset_types.get(asset_type.name).asset_type.version == 12
    assert store.asset_types.get(asset_type.name, 3).asset_type.version == 3
    found = [(each.asset_type.name, each.asset_type.version) for each in store.asset_types.list_asset_types()]
    assert found == [("other", 2), ("pump", 1), ("pump", 3), ("pump", 12)]
    for name, number in (("pump", 2), ("nobody", None)):
        with pytest.raises(NotFoundError, match=f"no asset type {name}"):
            store.asset_types.get(name, number)
