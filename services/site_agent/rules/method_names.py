"""Names of methods as a plant's people write them: held to those that this agent knows."""

from __future__ import annotations

from collections.abc import Iterable

from models.methods.catalogue import METHODS
from services.contracts.errors import InvalidInputError
from services.contracts.unknown_keys import nearest


def check_method_names(names: Iterable[str]) -> None:
    """Raise ``InvalidInputError`` at the first name that is no method's: a new policy that lists it allows nothing."""
    for name in names:
        if name not in METHODS:
            raise InvalidInputError(f"there is no method {name[:60]!r}; {_meant(name)}")


def unknown_method_lines(names: Iterable[str]) -> list[str]:
    """A line for each name in a policy that is no method's here; no mistake where the OEM has a newer release."""
    return [
        f"take care: policy.toml allows the method {name}, which this agent does not know; {_meant(name)}"
        for name in names if name not in METHODS
    ]


def _meant(name: str) -> str:
    near = nearest(name[:60], METHODS)
    return f"did you mean {near}?" if near else f"methods are {', '.join(sorted(METHODS))}"
