"""Names of methods as a plant's people write them: held to those that this agent knows."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from models.methods.catalogue import METHODS
from services.contracts.errors import InvalidInputError

_LIKE = 0.7
"""How alike two names must be (0 to 1) for one to be meant by the other."""


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
    near = get_close_matches(name[:60], METHODS, n=1, cutoff=_LIKE)
    return f"did you mean {near[0]}?" if near else f"methods are {', '.join(sorted(METHODS))}"
