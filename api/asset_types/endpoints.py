"""Administration of asset types."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from api.asset_types import service
from api.web.auth import Administrator, Engineer
from api.web.dependencies import BackendDep, DryRun, PlainJSON
from api.web.paging import Cursor, WholeList, page_of
from services.contracts.base import Contract
from services.contracts.errors import InvalidInputError
from services.contracts.history.records import AssetTypeRecord
from services.contracts.machines.asset_type import AssetType
from services.round_store.database.queries import MAX_PAGE

router = APIRouter(
    prefix="/v1/admin/asset-types", tags=["administration: asset types"], default_response_class=PlainJSON
)
ROUTERS = (router,)


class AssetTypes(Contract):
    """Asset types by name and version."""

    asset_types: tuple[AssetTypeRecord, ...]


@router.get("")
def list_asset_types(
    _: Engineer,
    backend: BackendDep,
    request: Request,
    response: Response,
    name: str | None = None,
    limit: WholeList = MAX_PAGE,
    cursor: Cursor = None,
) -> AssetTypes:
    """Asset types in all their versions; of one name where asked."""
    found = [each for each in backend.store.asset_types.list_asset_types() if name in (None, each.asset_type.name)]

    def key(each: AssetTypeRecord) -> tuple[str, int]:
        return each.asset_type.name, each.asset_type.version

    return AssetTypes(asset_types=page_of(found, key, (str, int), request, response, limit, cursor))


@router.get("/{name}")
def get_asset_type(name: str, _: Engineer, backend: BackendDep) -> AssetTypeRecord:
    """Newest version of one asset type."""
    return backend.store.asset_types.get(name)


@router.put("/{name}")
def put_asset_type(
    name: str, body: AssetType, caller: Administrator, backend: BackendDep, dry_run: DryRun = False
) -> AssetTypeRecord:
    """Store a version of an asset type. A stored version never changes: give another content the next number.

    Runs that begin from then on are of the newest version, and plants that have another take no part in them.
    """
    if body.name != name:
        raise InvalidInputError(f"the address names the asset type {name[:60]}, the body {body.name}")
    return service.put(backend, caller.actor, body, dry_run=dry_run).stored
