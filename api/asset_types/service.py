"""Asset types."""

from __future__ import annotations

from dataclasses import dataclass

from api.backend.actor import Actor, record
from api.backend.trial import changing
from api.backend.wiring import Backend
from services.contracts.history.records import AssetTypeRecord
from services.contracts.machines.asset_type import AssetType


@dataclass(frozen=True)
class Put:
    """A version of an asset type as it is stored, and the one that was the newest before it.

    ``before`` is None where there was none, and where this version was there already.
    """

    stored: AssetTypeRecord
    before: AssetType | None


def put(backend: Backend, actor: Actor, asset_type: AssetType, *, dry_run: bool = False) -> Put:
    """Store a version of an asset type, or with ``dry_run`` only see whether it could be; the same changes nothing.

    ``ConflictError`` when this version is stored with another content, or a newer one is there.
    """
    with changing(backend, dry_run=dry_run) as store:
        versions = [item for item in store.asset_types.list_asset_types() if item.asset_type.name == asset_type.name]
        stored = store.asset_types.add(asset_type)
        if stored in versions:
            return Put(stored, None)
        before = versions[-1].asset_type if versions else None
        record(store, actor, "asset_type.put", f"asset-type:{asset_type.name}", before=before, after=asset_type)
    return Put(stored, before)


@dataclass(frozen=True)
class Concerned:
    """Who has to do with an asset type: names of the plans, not archived, and of the plants that take part in it."""

    plans: tuple[str, ...]
    sites: tuple[str, ...]


def concerned(backend: Backend, name: str) -> Concerned:
    """Plans and plants of an asset type.

    A newer version binds the plans at once, and stops the plants until theirs is the same: until then they answer a
    task with ``contract_mismatch``.
    """
    plans = (each.plan for each in backend.store.plans.list_plans())
    sites = backend.store.sites.list_sites(asset_type=name)
    return Concerned(
        tuple(plan.name for plan in plans if plan.asset_type == name),
        tuple(site.site_id for site in sites if site.status != "removed"),
    )
