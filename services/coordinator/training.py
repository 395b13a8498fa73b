"""The run of a plan, from the first question to the evaluated model: join, rounds, evaluate."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from models.methods.base import ServerHalf
from models.methods.catalogue import check_parameters, get_method
from models.multiclass import OneVsRestServer
from models.problem import Certificate, FloatArray, ServerProblem, SiteTerms, Status
from services.contracts.asset_type import AssetType
from services.contracts.errors import BallastError
from services.contracts.lift import lifted_size
from services.contracts.plan_problem import check_problem, mixture_of
from services.contracts.run import RoundRecord, Run
from services.contracts.scores import REGRESSION_SUMS
from services.coordinator.held_out import Evaluation, interval_ends, risk_bound, scalars
from services.coordinator.poll import Poll, Question, poll
from services.coordinator.ports import RunStore, SiteTransport
from services.coordinator.terms import JOIN_SHAPES, check_asked, joined_terms, site_specs

LOG = logging.getLogger("ballast.coordinator")
RETRY_SECONDS = 0.5
Progress = Callable[[RoundRecord], Awaitable[None]]


class TooFewSitesError(BallastError):
    """Fewer sites than the plan's ``min_sites`` answered for as long as the plan allows."""

    code = "too_few_sites"


class RunCancelledError(BallastError):
    """An operator cancelled the run."""

    code = "cancelled"


@dataclass(frozen=True)
class TrainedModel:
    """What training leaves: weights (K, D), certificate, why it stopped, and each site's worst-case risk.

    ``worst_weights`` is each site's share in the worst mixture there, the mean over the heads. ``risk_bound`` bounds
    the expected loss at the weights in every mixture of the ball: the upper bound, and where the method descends on
    something else than that, the worst mixture of the sites' risks; infinite where neither is known. ``convex_part``:
    bounds of the convex part, for a method whose objective is not convex. ``note``: what the method says of its result.
    """

    weights: FloatArray
    status: Status
    upper: float
    lower: float
    gap: float
    fresh_weight: float
    rounds: int
    site_risks: Mapping[str, float]
    worst_weights: Mapping[str, float]
    risk_bound: float
    convex_part: Certificate | None = None
    note: str = ""


class Coordinator:
    """Runs plans. It holds nothing between calls but its parts: all that a run needs to go on is in the store.

    ``keys`` are the public keys of the sites that may take part, by site id.
    """

    def __init__(
        self, store: RunStore, transport: SiteTransport, keys: Mapping[str, str], asset_type: AssetType
    ) -> None:
        self._store = store
        self._transport = transport
        self._keys = dict(keys)
        self._asset_type = asset_type

    async def join(self, run: Run) -> Run:
        """Ask who takes part and fix the sites of the run with their scalars; a run that has them goes on as it is.

        Raises
        ------
        TooFewSitesError, RunCancelledError
            Nobody to train with, or nobody wants it.
        InvalidInputError
            The plan's loss does not fit the asset type, or the plan weighs some of the sites that are asked, or its
            weights do not sum to 1.
        LiftsDifferError
            Sites lift their features differently.
        """
        if run.status != "pending":
            return run
        check_problem(run.plan, self._asset_type)
        check_asked(run.plan, self._keys)
        question = self._question(run, "join", 0, {}, JOIN_SHAPES)
        outcome = await self._until_enough(run, question, self._keys)
        joined = {site: update.arrays for site, update in outcome.updates.items()}
        check_problem(run.plan, self._asset_type, len(joined))
        terms = joined_terms(run.plan, self._asset_type, joined)
        absentees = [answer for answer in outcome.answers if answer.status != "accepted"]
        return self._store.begin_run(run.run_id, terms, absentees)

    async def train(self, run: Run, progress: Progress | None = None) -> TrainedModel:
        """Run rounds from the last committed one until the method says stop or the plan's round limit is reached."""
        server, problem = self._server(run)
        saved = self._store.load_state(run.run_id)
        number, state = (saved[0], server.unpack(saved[1])) if saved else (0, server.init(problem))
        if saved:
            LOG.info("run %s goes on after round %d", run.run_id, number)
        keys = {site.site_id: self._keys[site.site_id] for site in run.sites if site.site_id in self._keys}
        status = server.status(state, problem) if saved else Status.CONTINUE
        while status is Status.CONTINUE and number < run.plan.max_rounds:
            self._check_cancelled(run)
            started = time.perf_counter()
            began = datetime.now(UTC)
            number += 1
            question = self._question(
                run, "round", number, server.messages(state, problem), server.answer_shapes(problem)
            )
            outcome = await self._until_enough(run, question, keys)
            state = server.step(state, problem, {site: update.arrays for site, update in outcome.updates.items()})
            record = _record(run, number, began, started, outcome, server, state)
            self._store.commit_round(record, server.pack(state))
            status = server.status(state, problem)
            if progress is not None:
                await progress(record)
        certificate = server.certificate(state)
        return TrainedModel(
            weights=server.weights(state), status=Status.ROUND_LIMIT if status is Status.CONTINUE else status,
            upper=certificate.upper, lower=certificate.lower, gap=certificate.gap,
            fresh_weight=certificate.fresh_weight, rounds=number, site_risks=server.site_risks(state, problem),
            worst_weights=server.mixture_weights(state, problem),
            risk_bound=risk_bound(certificate.upper, server.site_risks(state, problem), problem),
            convex_part=server.convex_part(state), note=server.note(state, problem),
        )

    async def evaluate(self, run: Run, weights: FloatArray, risk_bound: float = math.inf) -> Evaluation:
        """Ask each site for its held-out scores under the weights, shape (K, P + 1).

        ``risk_bound`` is that of the weights; it gives the interval whose coverage the sites of a regression count.
        """
        keys = {site.site_id: self._keys[site.site_id] for site in run.sites if site.site_id in self._keys}
        arrays = {"weights": weights}
        shapes: dict[str, tuple[int, ...]] = {"risk": (weights.shape[0],), "loss": ()}
        if run.plan.spec.loss.task == "regression":
            arrays["interval"] = interval_ends(run.plan, risk_bound)
            shapes |= dict.fromkeys(REGRESSION_SUMS, ())
        else:
            shapes["confusion"] = (len(self._asset_type.fault_classes),) * 2
        question = self._question(run, "evaluate", 0, dict.fromkeys(keys, arrays), shapes)
        outcome = await poll(question, keys, self._transport, run.plan.round_deadline_seconds)
        found = {site: update.arrays for site, update in outcome.updates.items()}
        return Evaluation(
            confusion={site: each["confusion"] for site, each in found.items() if "confusion" in each},
            sums={site: scalars(each) for site, each in found.items() if REGRESSION_SUMS[0] in each},
            loss={site: float(each["loss"]) for site, each in found.items()},
            answers=outcome.answers,
        )

    def _server(self, run: Run) -> tuple[OneVsRestServer, ServerProblem]:
        plan = run.plan
        method = get_method(plan.method)
        specs = site_specs(run, self._asset_type, [site.site_id for site in run.sites])
        problem = ServerProblem(
            n_features=lifted_size(plan.spec.lift, len(self._asset_type.features)),
            sites=tuple(
                SiteTerms(site.site_id, site.weight, site.radius, specs[site.site_id].label_flip_cost)
                for site in run.sites
            ),
            transport_norm=plan.spec.transport_norm, fit_intercept=plan.spec.fit_intercept, feature_bound=1.0,
            gap=plan.gap, parameters=check_parameters(method, plan.parameters), mixture=mixture_of(plan).ball,
        )
        return OneVsRestServer(method.server, self._asset_type.heads(plan.spec.loss.task)), problem

    def _question(
        self, run: Run, kind: Any, number: int, arrays: Mapping[str, Mapping[str, FloatArray]],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> Question:
        parameters = check_parameters(get_method(run.plan.method), run.plan.parameters)
        specs = site_specs(run, self._asset_type, self._keys)
        return Question(
            kind, run.run_id, number, run.plan, self._asset_type.fingerprint, specs, parameters, arrays, shapes
        )

    async def _until_enough(self, run: Run, question: Question, keys: Mapping[str, str]) -> Poll:
        """Ask, and ask again while fewer than ``min_sites`` answer, for as long as the plan's patience lasts."""
        deadline = time.monotonic() + run.plan.absence_patience_seconds
        while True:
            outcome = await poll(question, keys, self._transport, run.plan.round_deadline_seconds)
            if len(outcome.updates) >= run.plan.min_sites:
                return outcome
            if time.monotonic() >= deadline:
                raise TooFewSitesError(_shortage(run, question, outcome))
            self._check_cancelled(run)
            await asyncio.sleep(RETRY_SECONDS)

    def _check_cancelled(self, run: Run) -> None:
        if self._store.get_run(run.run_id).cancel_requested:
            raise RunCancelledError("an operator cancelled the run")


def full_weights(weights: FloatArray, *, fit_intercept: bool) -> FloatArray:
    """Weights with an intercept column, shape (K, P + 1): 0 where the model has none."""
    if fit_intercept:
        return weights
    return np.concatenate([weights, np.zeros((weights.shape[0], 1))], axis=1)


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
    run: Run, number: int, began: datetime, started: float, outcome: Poll, server: ServerHalf[Any], state: object
) -> RoundRecord:
    certificate = server.certificate(state)
    elapsed = time.perf_counter() - started
    return RoundRecord(
        run_id=run.run_id, round=number, started_at=began, seconds=elapsed,
        overhead_seconds=max(0.0, elapsed - outcome.slowest_seconds), upper=certificate.upper,
        lower=certificate.lower, gap=certificate.gap, fresh_weight=certificate.fresh_weight, answers=outcome.answers,
    )

