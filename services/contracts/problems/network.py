"""The network of a training problem."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from services.contracts.base import Contract


class NetworkSpec(Contract):
    """A layer of ``hidden`` units between the scaled features and the classes (``objectives.network``).

    ``dropout`` is the share of units that a step of training leaves out; diagnoses use all. ``seed`` draws where the
    training starts, alike for every resume.
    """

    hidden: int = Field(default=32, ge=1, le=1024)
    activation: Literal["relu"] = "relu"
    dropout: float = Field(default=0.0, ge=0, lt=1, allow_inf_nan=False)
    seed: int = Field(default=0, ge=0, le=2**53)

    @property
    def words(self) -> str:
        """The network on one line."""
        dropped = f", dropout {self.dropout:g}" if self.dropout else ""
        return f"a network of two layers, {self.hidden} hidden units ({self.activation}{dropped}, seed {self.seed})"
