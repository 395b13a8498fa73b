"""Names for sites that say nothing of the plant, for callers who need not know which plants take part."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

DIGITS = 8  # hexadecimal: two of 200 sites share a name once in 200,000 models
_SITE_FIELDS = frozenset({"site_id", "sites", "missing"})
_KEYED_BY_SITE = frozenset({"site_settings", "sites"})
"""Fields that are a mapping by site, where they are a mapping: ``sites`` of a plan's ``waiting`` is one."""
_TEXT_FIELDS = frozenset({"reason"})
AnyContract = TypeVar("AnyContract", bound=BaseModel)


class Pseudonyms:
    """Pseudonyms by a keyed hash: the same site has one name in all versions of a model, and another in each model.

    Without the key nobody can tell the plant from the name, nor that two models have a plant in common.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def name(self, model: str, site_id: str) -> str:
        """Pseudonym of a site in a model: ``site-`` and eight hexadecimal digits of HMAC-SHA256(key, model, site)."""
        text = f"{model}\x00{site_id}".encode()
        return f"site-{hmac.new(self._key, text, hashlib.sha256).hexdigest()[:DIGITS]}"

    def in_text(self, model: str, text: str, known: Iterable[str]) -> str:
        """Text in which every one of the known sites bears its pseudonym."""
        names = {site_id: self.name(model, site_id) for site_id in known}
        return _in_text(text, names) if names else text

    def applied(self, model: str, contract: AnyContract, known: Iterable[str] = ()) -> AnyContract:
        """Copy of a contract in which the sites bear their pseudonyms: as ids, in lists of ids, and in reasons.

        ``known`` are sites that a reason may name though the contract has them nowhere else.
        """
        plain = contract.model_dump()
        names = {site_id: self.name(model, site_id) for site_id in {*known, *_site_ids(plain)}}
        return type(contract).model_validate(_renamed(plain, names)) if names else contract


def _site_ids(value: Any, field: str = "") -> Iterator[str]:
    """Every site that a contract names in a field for sites."""
    if isinstance(value, Mapping):
        by_site = field in _KEYED_BY_SITE
        for key, item in value.items():
            if by_site:
                yield str(key)
            yield from _site_ids(item, "" if by_site else str(key))
    elif isinstance(value, list | tuple):
        for item in value:  # a table in a list has fields of its own, and is keyed by none of the list's
            yield from _site_ids(item, "" if isinstance(item, Mapping) else field)
    elif isinstance(value, str) and field in _SITE_FIELDS:
        yield value


def _renamed(value: Any, names: Mapping[str, str], field: str = "") -> Any:
    if isinstance(value, Mapping) and field in _KEYED_BY_SITE:
        return dict(sorted((names.get(key, key), _renamed(item, names)) for key, item in value.items()))
    if isinstance(value, Mapping):
        return {key: _renamed(item, names, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_renamed(item, names, "" if isinstance(item, Mapping) else field) for item in value]
        return tuple(_in_new_order(items, field))
    if isinstance(value, str) and field in _SITE_FIELDS:
        return names.get(value, value)
    if isinstance(value, str) and field in _TEXT_FIELDS:
        return _in_text(value, names)
    return value


def _in_new_order(items: list[Any], field: str) -> list[Any]:
    """Sites by their pseudonyms: the order of their real names would tell who is who in two models."""
    if items and all(isinstance(item, Mapping) and "site_id" in item for item in items):
        return sorted(items, key=lambda item: (item.get("round", 0), item["site_id"]))
    return sorted(items) if field in _SITE_FIELDS and all(isinstance(item, str) for item in items) else items


def _in_text(text: str, names: Mapping[str, str]) -> str:
    """Text with every whole site id replaced; an id inside a longer word or id stays."""
    longest_first = "|".join(re.escape(site_id) for site_id in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<![a-z0-9-])(?:{longest_first})(?![a-z0-9-])", lambda found: names[found[0]], text)
