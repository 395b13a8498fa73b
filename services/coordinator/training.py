"""The run of a plan, from the first question to the evaluated model: join, rounds, evaluate."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from models.basics import Arrays, FloatArray
from models.cuts.contradiction import Contradiction
from models.methods.catalogue import check_parameters, get_method
from models.multiclass import OneVsRestServer
from models.problem import ServerProblem, SiteTerms, Status
from services.contracts.asset_type import AssetType
from services.contracts.errors import BallastError
from services.contracts.lift import lifted_size
from services.contracts.plan_problem import check_problem
from services.contracts.run import Exchange, ExcludedSite, RoundRecord, Run, SiteAnswer
from services.contracts.scores import REGRESSION_SUMS
from services.coordinator.evaluation import Evaluation, interval_ends, worst_over_sites
from services.coordinator.poll import Poll, Question, poll
from services.coordinator.ports import RunStore, SiteTransport
from services.coordinator.terms import JOIN_SHAPES, check_asked, exclusions_note, joined_terms, site_specs
from services.coordinator.training_state import TrainedModel, Training
from services.verification.contradiction import write_evidence

LOG = logging.getLogger("ballast.coordinator")
RETRY_SECONDS = 0.5  # a site that comes back is asked at once, one that does not costs two questions a second
Progress = Callable[[RoundRecord], Awaitable[None]]


@dataclass(frozen=True)
class Kept:
    """What is kept of a round beside its record: frames by site, and evidence files against sites."""

    exchanges: Mapping[str, Exchange]
    evidence: Mapping[str, bytes]


class TooFewSitesError(BallastError):
    """Fewer sites than the plan's ``min_sites`` answered for as long as the plan allows."""

    code = "too_few_sites"


class RunCancelledError(BallastError):
    """An operator cancelled the run."""

    code = "cancelled"


class Coordinator:
    """Runs plans. It holds nothing between calls but its parts: all that a run needs to go on is in the store.

    ``keys`` are the public keys of the sites that may take part, by site id.
    """

    def __init__(
        self, store: RunStore, transport: SiteTransport, keys: Mapping[str, str], asset_type: AssetType
    ) -> None:
        self._store = store
        self._transport = transport
        self._keys = keys  # not a copy: a key may be changed or taken away while a run goes on
        self._asset_type = asset_type

    async def join(self, run: Run) -> Run:
        """Ask who takes part and fix the sites of the run with their scalars; a run that has them goes on as it is.

        ``TooFewSitesError`` or ``RunCancelledError`` where there is nobody to train with, or nobody wants it;
        ``InvalidInputError`` where the plan's loss does not fit the asset type, or the plan weighs some of the sites
        that are asked, or its weights do not sum to 1.
        """
        if run.status != "pending":
            return run
        check_problem(run.plan, self._asset_type)
        check_asked(run.plan, self._keys)
        question = self._question(run, "join", 0, {}, JOIN_SHAPES)
        outcome = await self._until_enough(run, question, dict(self._keys))
        joined = {site: update.arrays for site, update in outcome.updates.items()}
        check_problem(run.plan, self._asset_type, len(joined))
        terms = joined_terms(run.plan, self._asset_type, joined)
        absentees = [answer for answer in outcome.answers if answer.status != "accepted"]
        return self._store.begin_run(run.run_id, terms, absentees)

    async def train(self, run: Run, progress: Progress | None = None) -> TrainedModel:
        """Run rounds from the last committed one until the method says stop or the plan's round limit is reached.

        A site whose answers cannot be true is excluded: its cuts leave the bounds, and the run goes on without it, also
        after a resume. The store's record of the run then names it.

        ``TooFewSitesError`` or ``RunCancelledError`` where fewer sites than the plan needs answer or are left, or
        nobody wants the model; ``ContradictingAnswersError`` where the answers contradict one another, and no site's
        contradict themselves.
        """
        at = self._training(run)
        saved = self._store.load_state(run.run_id)
        if saved:
            at = replace(at, number=saved[0], state=at.server.unpack(saved[1]))
            LOG.info("run %s goes on after round %d", run.run_id, at.number)
        status = at.status() if saved else Status.CONTINUE
        while status is Status.CONTINUE and at.number < run.plan.max_rounds:
            self._check_cancelled(run)
            at, record, kept = await self._round(replace(at, number=at.number + 1))
            self._store.commit_round(record, at.server.pack(at.state), kept.exchanges, kept.evidence)
            status = at.status()
            if progress is not None:
                await progress(record)
        return at.trained(status)

    async def evaluate(self, run: Run, weights: FloatArray, risk_bound: float = math.inf) -> Evaluation:
        """Ask each site for its worst-case risk and its held-out scores under the weights, shape (K, P + 1).

        ``risk_bound`` stands in for the worst-case risk where a site does not tell its own. A regression asks twice:
        the interval whose coverage the sites count follows from the risk.
        """
        keys = self._keys_of(run)
        arrays = {"weights": weights}
        shapes: dict[str, tuple[int, ...]] = {"risk": (weights.shape[0],), "loss": ()}
        if run.plan.spec.loss.task == "regression":
            arrays["interval"] = interval_ends(run.plan, math.inf)
            shapes |= dict.fromkeys(REGRESSION_SUMS, ())
        else:
            shapes["confusion"] = (len(self._asset_type.fault_classes),) * 2
        found, answers = await self._evaluated(run, keys, arrays, shapes)
        risks = {site: each["risk"] for site, each in found.items()}
        risk, mixture = worst_over_sites(run, risks, risk_bound)
        if "interval" in arrays and math.isfinite(risk):
            arrays["interval"] = interval_ends(run.plan, risk)
            found, answers = await self._evaluated(run, keys, arrays, shapes)
        return Evaluation(
            confusion={site: each["confusion"] for site, each in found.items() if "confusion" in each},
            sums={
                site: {name: float(each[name]) for name in REGRESSION_SUMS}
                for site, each in found.items() if REGRESSION_SUMS[0] in each
            },
            loss={site: float(each["loss"]) for site, each in found.items()},
            risk={site: float(each.sum()) for site, each in risks.items()},
            worst_case_risk=risk, worst_weights=mixture, answers=answers,
        )

    async def _evaluated(
        self, run: Run, keys: Mapping[str, str], arrays: Arrays, shapes: Mapping[str, tuple[int, ...]]
    ) -> tuple[dict[str, Arrays], tuple[SiteAnswer, ...]]:
        question = self._question(run, "evaluate", 0, dict.fromkeys(keys, arrays), shapes)
        outcome = await poll(question, keys, self._transport, run.plan.round_deadline_seconds)
        return {site: update.arrays for site, update in outcome.updates.items()}, outcome.answers

    async def _round(self, at: Training) -> tuple[Training, RoundRecord, Kept]:
        """One round: asked until it has enough answers and none that cannot be true; nothing is committed yet."""
        started, began = time.perf_counter(), datetime.now(UTC)
        excluded: list[SiteAnswer] = []
        evidence: dict[str, bytes] = {}
        while True:
            messages = at.server.messages(at.state, at.problem)
            shapes = at.server.answer_shapes(at.problem.dimension, at.problem.n_swings, at.problem.parameters)
            question = self._question(at.run, "round", at.number, messages, shapes)
            outcome = await self._until_enough(at.run, question, self._keys_of(at.run))
            answers = {site: update.arrays for site, update in outcome.updates.items()}
            contradictions = at.contradictions(answers)
            found = at.convicted(outcome, contradictions)
            if not found:
                break
            evidence |= self._evidence(at, outcome, contradictions)
            excluded += found
            at = self._without(at, found)
        at = at.stepped(answers)
        return at, _record(at, began, started, outcome, excluded), Kept(outcome.exchanges, evidence)

    def _evidence(self, at: Training, outcome: Poll, found: Mapping[str, Contradiction]) -> dict[str, bytes]:
        """Evidence file against each site of a contradiction; none where an answer is of before frames were kept."""
        files: dict[str, bytes] = {}
        for site, each in found.items():
            frames = [
                outcome.exchanges.get(site) if number == at.number
                else self._store.get_exchange(at.run.run_id, number, site)
                for number in dict.fromkeys((each.risk_round, each.cut_round))
            ]
            kept = [frame for frame in frames if frame is not None]
            if len(kept) == len(frames):
                files[site] = write_evidence(at.run.run_id, site, self._keys[site], kept)
        return files

    def _without(self, at: Training, convicted: Sequence[SiteAnswer]) -> Training:
        """Training that goes on without these sites; :class:`TooFewSitesError` where too few are left."""
        for answer in convicted:
            LOG.warning("run %s goes on without site %s: %s", at.run.run_id, answer.site_id, answer.reason)
        left_out = [ExcludedSite.of_record(answer, round=at.number) for answer in convicted]
        run = at.run.model_copy(update={"excluded": (*at.run.excluded, *left_out)})
        if len(run.members) < run.plan.min_sites:
            needs = f"{len(run.members)} of the {run.plan.min_sites} sites that the plan needs are left"
            raise TooFewSitesError(f"{needs}: {exclusions_note(run)}")
        check_problem(run.plan, self._asset_type, len(run.members))
        fewer = self._training(run)
        places = {site.site_id: place for place, site in enumerate(at.run.members)}
        kept = [places[site.site_id] for site in run.members]
        return replace(fewer, number=at.number, state=at.server.of_sites(at.state, fewer.problem, kept))

    def _keys_of(self, run: Run) -> dict[str, str]:
        keys = dict(self._keys)
        return {site.site_id: keys[site.site_id] for site in run.members if site.site_id in keys}

    def _training(self, run: Run) -> Training:
        """A run before its first round."""
        plan = run.plan
        method = get_method(plan.method)
        specs = site_specs(run, self._asset_type, [site.site_id for site in run.members])
        problem = ServerProblem(
            n_features=lifted_size(plan.spec.lift, len(self._asset_type.features)),
            sites=tuple(
                SiteTerms(site.site_id, site.weight, site.radius, specs[site.site_id].label_flip_cost)
                for site in run.members
            ),
            transport_norm=plan.spec.transport_norm, fit_intercept=plan.spec.fit_intercept,
            gap=plan.gap, absolute_gap=plan.absolute_gap, parameters=check_parameters(method, plan.parameters),
            mixture=plan.mixture.ball, box=method.place(plan.spec.support_kind) == "box",
        )
        server = OneVsRestServer(method.server, self._asset_type.heads(plan.spec.loss.task))
        return Training(run, server, problem, server.init(problem))

    def _question(
        self, run: Run, kind: Any, number: int, arrays: Mapping[str, Mapping[str, FloatArray]],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> Question:
        parameters = check_parameters(get_method(run.plan.method), run.plan.parameters)
        specs = site_specs(run, self._asset_type, self._keys)
        return Question(
            kind, run.run_id, number, run.plan, self._asset_type, specs, parameters, arrays, shapes
        )

    async def _until_enough(self, run: Run, question: Question, keys: Mapping[str, str]) -> Poll:
        """Ask, and ask again while fewer than ``min_sites`` answer, for as long as the plan's patience lasts.

        An outcome with a site to exclude is enough as it is: the question is asked of fewer sites then.
        """
        deadline = time.monotonic() + run.plan.absence_patience_seconds
        while True:
            outcome = await poll(question, keys, self._transport, run.plan.round_deadline_seconds)
            if len(outcome.updates) >= run.plan.min_sites or outcome.excluded:
                return outcome
            if time.monotonic() >= deadline:
                raise TooFewSitesError(_shortage(run, question, outcome))
            self._check_cancelled(run)
            await asyncio.sleep(RETRY_SECONDS)

    def _check_cancelled(self, run: Run) -> None:
        if self._store.get_run(run.run_id).cancel_requested:
            raise RunCancelledError("an operator cancelled the run")


def _shortage(run: Run, question: Question, outcome: Poll) -> str:
    missing = "; ".join(
        f"{answer.site_id}: {answer.reason}" for answer in outcome.answers if answer.status != "accepted"
    )
    where = "to join" if question.kind == "join" else f"in round {question.round}"
    return (
        f"{len(outcome.updates)} of the {run.plan.min_sites} sites that the plan needs answered {where} "
        f"within {run.plan.absence_patience_seconds:g} s ({missing or 'no site is enrolled for it'})"
    )


def _record(
    at: Training, began: datetime, started: float, outcome: Poll, excluded: Sequence[SiteAnswer]
) -> RoundRecord:
    certificate = at.server.certificate(at.state)
    elapsed = time.perf_counter() - started
    return RoundRecord.of_record(
        certificate, run_id=at.run.run_id, round=at.number, started_at=began, seconds=elapsed,
        overhead_seconds=max(0.0, elapsed - outcome.slowest_seconds), answers=(*excluded, *outcome.answers),
    )
