"""What the endpoints of health give."""

from __future__ import annotations

from pydantic import Field

from services.contracts.base import Contract


class Health(Contract):
    """The process answers."""

    status: str = "ok"
    version: str


class Readiness(Contract):
    """Whether every server that is needed answers; ``missing`` says what does not, and what to do."""

    ready: bool
    missing: dict[str, str] = Field(default_factory=dict)
    notices: dict[str, str] = Field(default_factory=dict, description="what works, and somebody should look at")
