"""Another name for a plant in stored documents, only where plants are named.

A plant may be called as a term of a plan is (``l2``), as a field of one (``radius``), or as the plan itself: what says
something else is left as it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

NAMED_BY = ("site_id",)
"""Fields whose text is a plant's name."""
NAMES_IN = ("sites", "site_settings")
"""Fields whose keys, or whose texts where they are a list, are names of plants."""
SENTENCES = ("reason",)
"""Fields with sentences, in which a plant may be a word."""


@dataclass(frozen=True)
class Renaming:
    """From the name ``site_id`` to ``pseudonym``."""

    site_id: str
    pseudonym: str

    @cached_property
    def _word(self) -> re.Pattern[str]:
        return re.compile(rf"(?<![a-z0-9-]){re.escape(self.site_id)}(?![a-z0-9-])")

    def stands_in(self, text: str) -> bool:
        """Whether the name stands in a text as a word."""
        return self._word.search(text) is not None

    def sentence(self, text: str) -> str:
        """A sentence, with the pseudonym wherever the name stands as a word."""
        return self._word.sub(self.pseudonym, text)

    def document(self, value: Any) -> Any:
        """A document of objects and lists, as it is but for the name."""
        if isinstance(value, dict):
            return {name: self._field(name, item) for name, item in value.items()}
        return [self.document(item) for item in value] if isinstance(value, list) else value

    def _field(self, name: str, value: Any) -> Any:
        if name in SENTENCES and isinstance(value, str):
            return self.sentence(value)
        if name in NAMED_BY:
            return self._name(value)
        if name in NAMES_IN and isinstance(value, dict):
            return {self._name(site): self.document(own) for site, own in value.items()}
        if name in NAMES_IN and isinstance(value, list):
            return [self._name(each) if isinstance(each, str) else self.document(each) for each in value]
        return self.document(value)

    def _name(self, value: Any) -> Any:
        return self.pseudonym if value == self.site_id else value
