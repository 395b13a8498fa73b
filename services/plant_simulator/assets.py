"""The built-in asset types: TOML files beside this module, loaded by name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from services.contracts.errors import NotFoundError
from services.contracts.machines.asset_type import AssetType

_FOLDER: Final = Path(__file__).parent / "asset_types"


def builtin_asset_type_names() -> tuple[str, ...]:
    """Names of the built-in asset types."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def builtin_asset_type_path(name: str) -> Path:
    """TOML file of a built-in asset type; raise :class:`NotFoundError` when there is none of this name."""
    if name not in builtin_asset_type_names():
        raise NotFoundError(f"no built-in asset type {name!r}: there are {', '.join(builtin_asset_type_names())}")
    return _FOLDER / f"{name}.toml"


def builtin_asset_type(name: str) -> AssetType:
    """Load a built-in asset type.

    ``triplex-pump`` (healthy, leak), ``triplex-pump-faults`` (all combinations), or ``triplex-pump-severity`` (healthy,
    leak, and as a target the leak's area).
    """
    return AssetType.from_toml(builtin_asset_type_path(name))
