"""Where a number is wanted, true and false are none: pydantic would take them for 1 and 0."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError


class TrueNumbers(BaseModel):
    """A model none of whose numbers may be given as true or false, nor those of a list or a table in it."""

    @model_validator(mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, told: Any) -> Any:
        """What is ``told`` as it is; ``ValidationError``, at its place, where it has truth in place of a number."""
        numbers = _numbers(cls)
        found = [
            InitErrorDetails(type=PydanticCustomError("no_number", "must be a number"), loc=place, input=each)
            for name, value in (told.items() if isinstance(told, dict) else ()) if name in numbers
            for place, each in _inside(name, value) if isinstance(each, bool)
        ]
        if found:
            raise ValidationError.from_exception_data(cls.__name__, found)
        return told


def _inside(name: str, value: Any) -> Iterator[tuple[tuple[int | str, ...], Any]]:
    """What a field was given, with its place: each of a list or a table by itself."""
    if isinstance(value, dict):
        yield from (((name, str(key)), each) for key, each in value.items())
    elif isinstance(value, list | tuple):
        if bool in set(map(type, value)):  # of long lists a look at the types is quicker
            yield from (((name, number), each) for number, each in enumerate(value))
    else:
        yield (name,), value


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
