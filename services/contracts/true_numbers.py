"""Where a number is wanted, true and false are none: pydantic would take them for 1 and 0."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, model_validator


class TrueNumbers(BaseModel):
    """A model none of whose numbers may be given as true or false, nor those of a list or a table in it."""

    @model_validator(mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, told: Any) -> Any:
        """What is ``told`` as it is; ``ValueError`` where it has true or false in place of a number."""
        for name, value in told.items() if isinstance(told, dict) else ():
            if not isinstance(value, bool | dict | list | tuple) or name not in _numbers(cls):
                continue
            inside = value.items() if isinstance(value, dict) else ((None, each) for each in _listed(value))
            for key, each in inside:
                if isinstance(each, bool):
                    place = name if key is None else f"{name}.{key}"
                    raise ValueError(f"{place} must be a number, and {str(each).lower()} is none")
        return told


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


@cache
def _numbers(model: type[BaseModel]) -> frozenset[str]:
    """Fields that take numbers, and neither truth values nor tables of their own, which look for themselves."""
    return frozenset(name for name, field in model.model_fields.items() if _is_number(_kinds(field.annotation)))


def _is_number(kinds: list[Any]) -> bool:
    others = (each in (bool, Any, object) or (isinstance(each, type) and issubclass(each, BaseModel)) for each in kinds)
    return any(each in (int, float) for each in kinds) and not any(others)


def _kinds(annotation: Any) -> list[Any]:
    """All types that an annotation names."""
    parts = get_args(annotation)
    return [each for part in parts for each in _kinds(part)] if parts else [annotation]
