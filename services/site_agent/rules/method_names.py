"""Names of methods and public keys as a plant's people write them: held to what this agent knows, and to their form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from models.methods.catalogue import METHODS
from services.contracts.errors import InvalidInputError
from services.contracts.keys.signing import check_public_key
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


def mistyped_key_lines(auditors: Iterable[str], peers: Mapping[str, str]) -> list[str]:
    """A line for each key in a policy that nobody can have: with it the site would wait in vain to be asked."""
    found = []
    named = [*(("auditors", key) for key in auditors), *((f"peers.{peer}", key) for peer, key in peers.items())]
    for place, key in named:
        try:
            check_public_key(key)
        except InvalidInputError as error:
            found.append(f"take care: policy.toml, {place}, {key[:60]!r}: {error}")
    return found


def _meant(name: str) -> str:
    near = nearest(name[:60], METHODS)
    return f"did you mean {near}?" if near else f"methods are {', '.join(sorted(METHODS))}"
