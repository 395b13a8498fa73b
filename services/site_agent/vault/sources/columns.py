"""The columns of a table, by the names and units that the contract and the plant's settings give them."""

from __future__ import annotations

from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.same_unit import same_unit
from services.contracts.toml_text import quoted
from services.site_agent.settings import TableSource
from services.site_agent.vault.errors import VaultError

_TOLD = 30
"""Columns that an error names: a historian's export may have some thousand."""


def check_units(units: dict[str, str], asset_type: AssetType, where: str) -> None:
    """Hold units of features and target to the contract; :class:`VaultError` for an unknown name or another unit."""
    wanted = {feature.name: feature.unit for feature in asset_type.features}
    goal = asset_type.target
    for name, unit in units.items():
        is_target = goal is not None and name == goal.name
        if name not in wanted and not is_target:
            raise VaultError(f"{where}: the unit of {name!r} is given, but the contract has no such feature")
        right = goal.unit if goal is not None and is_target else wanted[name]
        if not same_unit(unit, right):
            what = "target" if is_target else "feature"
            raise VaultError(f"{where}: {what} {name} is in {unit!r}, the contract wants {right!r}")


def resolve_columns(header: list[str], source: TableSource, asset_type: AssetType) -> list[int | None]:
    """Position of each feature's column; a header may carry the unit, as in ``pressure_mean [bar]``.

    None stands for an optional feature whose column is not there; :class:`VaultError` where another one is missing.
    """
    unknown = sorted(set(source.columns) - set(asset_type.feature_names))
    if unknown:
        raise VaultError(f"settings map a column to {unknown[0]!r}, but the contract has no such feature")
    check_units(source.units, asset_type, "settings")
    positions: list[int | None] = []
    for feature in asset_type.features:
        column = source.columns.get(feature.name, feature.name)
        position, unit = _find(header, column)
        if unit is not None:
            check_units({feature.name: unit}, asset_type, source.path.name)
        if position is None and (feature.required or feature.name in source.columns):
            raise _missing(header, column, source, f"feature {feature.name}")
        if position is not None and position in positions:
            other = asset_type.feature_names[positions.index(position)]
            raise VaultError(f"column {header[position]!r} would be both {other} and {feature.name}: [data.columns]")
        positions.append(position)
    return positions


def find_column(header: list[str], column: str, source: TableSource, purpose: str) -> int:
    """Position of a column that must be there, or :class:`VaultError`."""
    position, _ = _find(header, column)
    if position is None:
        raise _missing(header, column, source, purpose)
    return position


def _missing(header: list[str], column: str, source: TableSource, purpose: str) -> VaultError:
    near = _near(header, column)
    first = sorted(header, key=lambda text: text != near)  # what may be it
    return VaultError(f"{source.path.name} has no column {column!r} for {purpose}; it has: {_named(first)}")


def _named(header: list[str]) -> str:
    """The first columns, and how many more there are."""
    more = f" and {len(header) - _TOLD} more" if len(header) > _TOLD else ""
    return ", ".join(text if text.isprintable() else repr(text) for text in header[:_TOLD]) + more


def unread_lines(header: list[str], source: TableSource, asset_type: AssetType) -> tuple[str, ...]:
    """Columns that read much like an optional feature, or the target, that the table seems not to have.

    None is taken for it: it may be in another unit.
    """
    wanted = {
        feature.name: ("[data.columns]", feature.name) for feature in asset_type.features
        if not feature.required and feature.name not in source.columns
    }
    if asset_type.target is not None and asset_type.fault_classes and source.target_column is None:
        wanted[asset_type.target.name] = ("[data]", "target_column")
    lines = []
    for name, (place, key) in wanted.items():
        near = _near(header, name) if _find(header, name)[0] is None else None
        if near is not None and near not in source.columns.values():
            said = f"{key} = {quoted(near)}"
            what = f"if it is {name}, in the contract's unit"
            lines.append(f"column {near!r} is not read: {what}, say {said} under {place}")
    return tuple(lines)


def _near(header: list[str], column: str) -> str | None:
    """A column that differs from a name in capitals, blanks, dashes, or the way in which its unit is written alone."""
    letters = _letters(column)
    return next((text for text in header if letters and _letters(text) == letters), None)


def _letters(text: str) -> str:
    return "".join(sign for sign in text.partition("[")[0].partition("(")[0].casefold() if sign.isalnum())


def find_outcomes(header: list[str], source: TableSource, asset_type: AssetType) -> tuple[int | None, int | None]:
    """Positions of the columns of class names and of the target; :class:`VaultError` where neither is there."""
    label_at, target_at = _find_label(header, source, asset_type), _find_target(header, source, asset_type)
    if label_at is None and target_at is None and asset_type.target is not None:
        raise VaultError(
            f"{source.path.name} has neither a column {source.label_column!r} for the class nor a column "
            f"{asset_type.target.name!r} for the target; it has: {_named(header)}"
        )
    return label_at, target_at


def _find_label(header: list[str], source: TableSource, asset_type: AssetType) -> int | None:
    """Position of the column of class names; None where the asset type, or a source with targets, has no classes."""
    if not asset_type.fault_classes:
        return None
    if asset_type.target is not None and _find(header, source.label_column)[0] is None:
        return None
    return find_column(header, source.label_column, source, "the label")


def _find_target(header: list[str], source: TableSource, asset_type: AssetType) -> int | None:
    """Position of the column of the target, its unit checked; None where there is no target to read.

    The column must be there where the settings name it, and where the asset type has no fault classes.
    """
    goal = asset_type.target
    if goal is None:
        if source.target_column is not None:
            raise VaultError(f"settings name a target_column, but asset type {asset_type.name} has no target")
        return None
    column = source.target_column or goal.name
    position, unit = _find(header, column)
    if unit is not None:
        check_units({goal.name: unit}, asset_type, source.path.name)
    if position is None and (source.target_column is not None or not asset_type.fault_classes):
        return find_column(header, column, source, f"the target {goal.name}")
    return position


def _find(header: list[str], column: str) -> tuple[int | None, str | None]:
    """Position of a column and the unit in its heading; the column is called with that unit or without it."""
    whole = [position for position, text in enumerate(header) if text == column]
    found = whole or [position for position, text in enumerate(header) if _heading(text)[0] == column]
    if len(found) > 1:
        raise VaultError(f"column {column!r} is there {len(found)} times; which one is meant?")
    return (found[0], _heading(header[found[0]])[1]) if found else (None, None)


def _heading(text: str) -> tuple[str, str | None]:
    """``flow_mean [L/min]`` as a name and a unit, None where it has none."""
    name, bracket, rest = text.rpartition(" [")
    return (name, rest[:-1]) if bracket and rest.endswith("]") else (text, None)
