"""What the endpoints of asset types give."""

from __future__ import annotations

from services.contracts.base import Contract
from services.contracts.records import AssetTypeRecord


class AssetTypes(Contract):
    """Asset types by name and version."""

    asset_types: tuple[AssetTypeRecord, ...]
