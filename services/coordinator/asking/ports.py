"""What the coordinator needs from outside: a way to ask the sites, and a store of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from models.basics import FloatArray
from models.methods.growth import Added
from services.contracts.history.run import Exchange, RoundRecord, Run, RunStart, SiteAnswer, SiteTermsRecord
from services.contracts.plans.plan import Plan


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

    def is_cancelled(self, run_id: str) -> bool:
        """Whether somebody asked that the run stop; raise ``NotFoundError``."""

    def set_doing(self, run_id: str, doing: str) -> None:
        """Say what an unfinished run does now."""

    def begin_run(
        self, run_id: str, sites: Sequence[SiteTermsRecord], absentees: Sequence[SiteAnswer] = (),
        start: RunStart | None = None, digests: Mapping[str, str] | None = None,
    ) -> Run:
        """Set a pending run to running, with the sites' scalars and the sites that did not join.

        ``start``: with what it begins; ``digests``: what each site said of its rows and terms.
        """

    def get_digests(self, run_id: str) -> dict[str, str]:
        """What each site said of its rows and terms when it joined, by site id; {} where nothing was."""

    def load_end(self, run_id: str) -> dict[str, FloatArray] | None:
        """Method state at the end of a completed run; None where it is not kept."""

    def samples_before(self, run_id: str) -> dict[str, int]:
        """Rows that each site said it had in the last completed run of this run's plan; {} where there is none."""

    def completed_before(self, run_id: str, limit: int = 1, *, tunings: bool = False) -> list[Run]:
        """Completed runs of this run's plan, the last one first; ``tunings``: also those that trained nothing."""

    def set_tuned(self, run_id: str, plan: Plan, sites: Sequence[SiteTermsRecord]) -> Run:
        """Give a run that has no round yet the terms that its tuning chose; ``ConflictError`` where it has one."""

    def load_state(self, run_id: str) -> tuple[int, dict[str, FloatArray]] | None:
        """Last committed round and the method state after it; None before the first."""

    def commit_round(
        self, record: RoundRecord, state: Mapping[str, FloatArray], exchanges: Mapping[str, Exchange] | None = None,
        evidence: Mapping[str, bytes] | None = None, added: Mapping[str, Added] | None = None,
    ) -> None:
        """Commit record, site answers, exclusions and method state at once; ``ConflictError`` if it is not the next.

        ``state`` lacks the arrays that grow by the round; of those ``added`` has the rows that are new.
        ``exchanges`` are kept while the run lasts, ``evidence`` for good; both by site.
        """

    def get_exchange(self, run_id: str, round_: int, site_id: str) -> Exchange | None:
        """Task and answer of a committed round; None where there are none."""

    def keep_case(self, run_id: str, cohort: str, case: bytes) -> None:
        """Keep for good what an auditor is to get of a cohort, in the place of an earlier case of it."""

    def finish_run(self, run_id: str, status: str, reason: str, owner: str | None = None) -> Run:
        """Set the final status and drop the method state; with an ``owner``, only while the lease is its own."""

    def renew_lease(self, run_id: str, owner: str, seconds: float) -> bool:
        """Take or prolong the lease on a run; False when another owner holds a lease that has not expired."""

    def prolong_lease(self, run_id: str, owner: str, seconds: float) -> bool:
        """Prolong the owner's own lease; False where it is no more the owner's."""

    def release_lease(self, run_id: str, owner: str) -> None:
        """Give the lease back."""
