"""Asset types."""

from __future__ import annotations

from api.backend.actor import Actor, record
from api.backend.wiring import Backend
from services.contracts.asset_type import AssetType
from services.contracts.records import AssetTypeRecord


def put(backend: Backend, actor: Actor, asset_type: AssetType) -> AssetTypeRecord:
    """Store a version of an asset type; the same again changes nothing.

    ``ConflictError`` when this version is stored with another content, or a newer one is there.
    """
    with backend.store.atomic() as store:
        versions = [item for item in store.asset_types.list_asset_types() if item.asset_type.name == asset_type.name]
        stored = store.asset_types.add(asset_type)
        if stored not in versions:
            before = versions[-1].asset_type if versions else None
            record(store, actor, "asset_type.put", f"asset-type:{asset_type.name}", before=before, after=asset_type)
    return stored
