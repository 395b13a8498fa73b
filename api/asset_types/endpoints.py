"""Administration of asset types."""

from __future__ import annotations

from fastapi import APIRouter

from api.auth import Administrator, Operator
from api.dependencies import Office, PlainJSON, actor_of
from api.schemas import AssetTypes
from api.use_cases import asset_types
from services.contracts.asset_type import AssetType
from services.contracts.errors import InvalidInputError
from services.contracts.records import AssetTypeRecord

router = APIRouter(
    prefix="/v1/admin/asset-types", tags=["administration: asset types"], default_response_class=PlainJSON
)


@router.get("")
def list_asset_types(_: Operator, backend: Office) -> AssetTypes:
    """Asset types in all their versions."""
    return AssetTypes(asset_types=tuple(backend.store.asset_types.list_asset_types()))


@router.get("/{name}")
def get_asset_type(name: str, _: Operator, backend: Office) -> AssetTypeRecord:
    """Newest version of one asset type."""
    return backend.store.asset_types.get(name)


@router.put("/{name}")
def put_asset_type(name: str, body: AssetType, caller: Administrator, backend: Office) -> AssetTypeRecord:
    """Store a version of an asset type. A stored version never changes: give another content the next number."""
    if body.name != name:
        raise InvalidInputError(f"the address names the asset type {name[:60]}, the body {body.name}")
    return asset_types.put(backend, actor_of(caller), body)
