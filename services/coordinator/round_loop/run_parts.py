"""What every step of a run needs: who may be asked, where the run stands, a question and enough answers to it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from models.basics import FloatArray
from models.cohorts.dealing import cohort_problem
from models.methods.catalogue import check_parameters, get_method
from models.one_vs_rest import OneVsRestServer
from services.contracts.history.run import Exchange, Run, SiteAnswer, SiteTermsRecord
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.contracts.problems.all_scores import trained_heads
from services.contracts.problems.training_spec import TrainingSpec
from services.coordinator.asking.poll import Poll, Question, poll
from services.coordinator.asking.ports import RunStore, SiteTransport
from services.coordinator.round_loop.summed_rounds import RETRY_SECONDS, SummedRounds
from services.coordinator.run_state.doing import tell_doing
from services.coordinator.run_state.noisy_sums import noise_plan, server_half
from services.coordinator.run_state.refusals import is_final, who_and_why
from services.coordinator.run_state.run_errors import RunCancelledError, TooFewSitesError
from services.coordinator.run_state.terms import cohorts_of, server_problem, site_specs
from services.coordinator.run_state.training_state import Training
from services.coordinator.run_state.warm_start import Earlier, may_reuse, warmed

LOG = logging.getLogger("ballast.coordinator")


@dataclass(frozen=True)
class Kept:
    """What is kept of a round beside its record: frames by site, and evidence files against sites."""

    exchanges: Mapping[str, Exchange]
    evidence: Mapping[str, bytes]


class RunParts:
    """The coordinator's ports and what they say of a run.

    It keeps nothing of a run but the masks of one on sums, and what its plan makes of each site.

    ``keys`` are the public keys of the sites that may take part, by site id.
    """

    def __init__(
        self, store: RunStore, transport: SiteTransport, keys: Mapping[str, str], asset_type: AssetType
    ) -> None:
        self.store = store
        self.transport = transport
        self.keys = keys  # not a copy: a key may be changed or taken away while a run goes on
        self.asset_type = asset_type
        self._sums: tuple[str, dict[str, str], SummedRounds] | None = None
        self._last_keys: dict[str, str] = {}
        self._specs: tuple[Plan, tuple[SiteTermsRecord, ...], dict[str, TrainingSpec]] | None = None

    def earlier(self, run: Run) -> Earlier | None:
        """The last completed run of the plan with what is kept of its end; None where there is nothing."""
        named = None if run.start is None else run.start.after
        last = [self.store.get_run(named)] if named else self.store.completed_before(run.run_id)
        if not may_reuse(run.plan) or not last or (run.start is not None and named is None):
            return None
        state = self.store.load_end(last[0].run_id)
        return None if state is None else Earlier(last[0], self.store.get_digests(last[0].run_id), state)

    def keys_of(self, run: Run) -> dict[str, str]:
        """Public keys of the run's members that still have one, by site id."""
        keys = dict(self.keys)
        return {site.site_id: keys[site.site_id] for site in run.members if site.site_id in keys}

    def gone(self, run: Run) -> tuple[SiteAnswer, ...]:
        """Accounts of sites whose key was taken away: a run on sums goes on without them at once."""
        without_key = [site.site_id for site in run.members if site.site_id not in self.keys]
        reason = "its key was taken away"
        return tuple(SiteAnswer(site_id=site, status="excluded", code="absent", reason=reason) for site in without_key)

    def summed(self, run: Run) -> SummedRounds:
        """The sums of a run over the plants that it has now, by the keys that they have now, or had last."""
        keys = {site: key or self._last_keys.get(site, "") for site, key in self.keys_of(run).items()}
        self._last_keys = keys
        if self._sums is None or self._sums[:2] != (run.run_id, keys):
            problem = server_problem(run, self.asset_type)
            noise = noise_plan(run, self.asset_type)
            rounds = SummedRounds(
                run, problem, keys, self.transport, self.check_cancelled, self.store.keep_case, noise, self.keys
            )
            self._sums = (run.run_id, keys, rounds)
        return self._sums[2]

    def forget_sums(self) -> None:
        """Agree on the keys of a run on sums anew."""
        self._sums = None

    def committed(self, run: Run) -> Training:
        """A run after its last committed round; before the first one its number is 0."""
        at, saved = self.training(run), self.store.load_state(run.run_id)
        if saved:
            return replace(at, number=saved[0], state=at.server.unpack(saved[1]))
        earlier = self.earlier(run)
        return at if earlier is None else warmed(at, self.store.get_digests(run.run_id), self.asset_type, earlier)

    def training(self, run: Run) -> Training:
        """A run before its first round; on sums its cohorts stand where the sites stood."""
        problem, server = server_problem(run, self.asset_type), server_half(run.plan, self.asset_type)
        if run.plan.reveal == "sums":
            problem = cohort_problem(problem, cohorts_of(run))
        heads = OneVsRestServer(server, trained_heads(run.plan.spec, self.asset_type))
        return Training(run, heads, problem, heads.init(problem), self.asset_type)

    def question(
        self, run: Run, kind: Any, number: int, arrays: Mapping[str, Mapping[str, FloatArray]],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> Question:
        """A question to the members of a run; ``arrays`` by site or cohort, ``shapes`` of a valid answer."""
        parameters = check_parameters(get_method(run.plan.method), run.plan.parameters)
        return Question(
            kind, run.run_id, number, run.plan, self.asset_type, self._specs_of(run), parameters, arrays, shapes
        )

    def _specs_of(self, run: Run) -> dict[str, TrainingSpec]:
        """The problem of each site that has a key: made once for all rounds between which nothing of it changes."""
        made = self._specs
        if made is None or made[0] is not run.plan or made[1] is not run.sites or made[2].keys() != self.keys.keys():
            made = self._specs = (run.plan, run.sites, site_specs(run, self.asset_type, self.keys))
        return made[2]

    async def ask(self, run: Run, question: Question, keys: Mapping[str, str]) -> Poll:
        """One question to the sites whose keys are given, within the plan's deadline."""
        return await poll(question, keys, self.transport, run.plan.round_deadline_seconds, self.keys)

    async def until_enough(self, run: Run, question: Question, keys: Mapping[str, str]) -> Poll:
        """Ask, and ask again while fewer than ``min_sites`` answer, for as long as the plan's patience lasts.

        An outcome with a site to exclude is enough as it is: the question is asked of fewer sites then. Where so many
        refuse for good that the rest are too few, nobody is asked again.

        :class:`TooFewSitesError` where it ends so.
        """
        deadline = time.monotonic() + run.plan.absence_patience_seconds
        while True:
            outcome = await self.ask(run, question, keys)
            if len(outcome.updates) >= sites_needed(run.plan) or outcome.excluded:
                return outcome
            final = not _enough_may_answer(run.plan, outcome)
            if final or time.monotonic() >= deadline:
                raise TooFewSitesError(shortage(run, question, outcome, final=final))
            self.check_cancelled(run)
            await asyncio.sleep(RETRY_SECONDS)

    def check_cancelled(self, run: Run) -> None:
        """Raise :class:`RunCancelledError` where nobody wants the run any more."""
        if self.store.is_cancelled(run.run_id):
            raise RunCancelledError("an operator cancelled the run")

    def tell(self, run: Run, doing: str) -> None:
        """Say what the run does now, to who looks at it, and in the log."""
        LOG.info("run %s: %s", run.run_id, doing)
        tell_doing(self.store, run.run_id, doing)


def sites_needed(plan: Plan) -> int:
    """Sites without which there is no round."""
    return max(plan.min_sites, plan.min_cohort) if plan.reveal == "sums" else plan.min_sites


def _enough_may_answer(plan: Plan, outcome: Poll) -> bool:
    """Whether sites that have not refused for good are as many as the plan needs."""
    return sum(not is_final(answer) for answer in outcome.answers) >= sites_needed(plan)


def shortage(run: Run, question: Question, outcome: Poll, *, final: bool = False) -> str:
    """Who was missing where too few answered, on one line; ``final``: nobody waited, for they refused for good."""
    where = "to join" if question.kind == "join" else f"in round {question.round}"
    waited = "and no more will" if final else f"within {run.plan.absence_patience_seconds:g} s"
    return (
        f"{len(outcome.updates)} of the {sites_needed(run.plan)} sites that the plan needs answered {where} {waited} "
        f"({who_and_why(outcome.answers) or 'no active site is enrolled for it'})"
    )
