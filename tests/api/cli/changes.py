"""What commands change, as the audit trail has it, and the asset type that they add."""

from __future__ import annotations

from typing import Any

from services.contracts.access.identity import Role
from services.plant_simulator.assets import builtin_asset_type_path

PUMP = str(builtin_asset_type_path("triplex-pump"))


def actions(behind: Any) -> list[tuple[str, str, str]]:
    events = behind.store.audit.list_events()
    assert all(event.actor.startswith("cli:") and event.role is Role.ADMINISTRATOR for event in events)
    return [(event.action, event.target, event.reason) for event in events]
