"""Names of plants as a reader may see them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from api.backend.wiring import Backend

FLEET = "fleet"
"""Stands for the model in pseudonyms of plants where no model is chosen."""


@dataclass(frozen=True)
class Names:
    """Real names, or the pseudonyms of the plants in a model, in ids and in sentences."""

    backend: Backend
    model: str
    real: bool
    known: Collection[str]

    def site(self, site_id: str) -> str:
        """Name of a plant."""
        return site_id if self.real else self.backend.pseudonyms.name(self.model, site_id)

    def text(self, text: str) -> str:
        """Sentence that may name plants."""
        return text if self.real else self.backend.pseudonyms.in_text(self.model, text, self.known)
