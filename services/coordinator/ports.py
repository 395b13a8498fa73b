"""What the coordinator needs from outside: a way to ask the sites, and a store of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from models.basics import FloatArray
from services.contracts.run import Exchange, RoundRecord, Run, SiteAnswer, SiteTermsRecord


@dataclass(frozen=True)
class RawAnswer:
    """What came back from one site: a frame, or the reason why there is none (``absent`` or ``late``)."""

    site_id: str
    frame: bytes | None
    failure: str
    seconds: float


class SiteTransport(Protocol):
    """Asks all sites at once."""

    async def ask(self, frames: Mapping[str, bytes], deadline_seconds: float) -> dict[str, RawAnswer]:
        """Send each site its frame; an answer or a failure for every site, never an exception for one of them."""


class RunStore(Protocol):
    """Runs, rounds and method state. Every method is one transaction."""

    def get_run(self, run_id: str) -> Run:
        """Run by id; raise ``NotFoundError``."""

    def begin_run(
        self, run_id: str, sites: Sequence[SiteTermsRecord], absentees: Sequence[SiteAnswer] = ()
    ) -> Run:
        """Set a pending run to running, with the sites' scalars and the sites that did not join."""

    def load_state(self, run_id: str) -> tuple[int, dict[str, FloatArray]] | None:
        """Last committed round and the method state after it; None before the first."""

    def commit_round(
        self, record: RoundRecord, state: Mapping[str, FloatArray], exchanges: Mapping[str, Exchange] | None = None,
        evidence: Mapping[str, bytes] | None = None,
    ) -> None:
        """Commit record, site answers, exclusions and method state at once; ``ConflictError`` if it is not the next.

        ``exchanges`` are kept while the run lasts, ``evidence`` for good; both by site.
        """

    def get_exchange(self, run_id: str, round_: int, site_id: str) -> Exchange | None:
        """Task and answer of a committed round; None where there are none."""

    def finish_run(self, run_id: str, status: str, reason: str) -> Run:
        """Set the final status and drop the method state."""

    def renew_lease(self, run_id: str, owner: str, seconds: float) -> bool:
        """Take or prolong the lease on a run; False when another owner holds a lease that has not expired."""

    def release_lease(self, run_id: str, owner: str) -> None:
        """Give the lease back."""
