"""After the last round of a run: the planes of several classes, learnt one against the rest, are coupled.

A last exchange or some with every plant, of the kind of a tuning's, none of it stored: a coordinator that is killed
couples again. Where plants do not answer, the planes stay as they were trained, and the version says so.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace

import numpy as np

from models.basics import FloatArray
from models.cohorts.dealing import cohort_problem
from models.tuning.coupling import EXCHANGES, Coupler, Told, coupled_planes, most_exchanges
from services.contracts.history.run import Run
from services.contracts.plain_words import joined
from services.contracts.plans.plan_problem import couples
from services.contracts.problems.coupling import Coupling, CouplingTask
from services.coordinator.beginning.joining import Joining
from services.coordinator.beginning.tuning import cut_shapes_of
from services.coordinator.beginning.tuning_exchange import TuningAnswers, TuningQuestion
from services.coordinator.round_loop.run_parts import RunParts
from services.coordinator.run_state.run_errors import TooFewSitesError
from services.coordinator.run_state.terms import cohorts_of, server_problem
from services.coordinator.run_state.training_state import TrainedModel

LOG = logging.getLogger("ballast.coordinator")
_ROUNDING = 1e-6
"""Relative: by how much a loss may be told below what cuts prove, no lie."""


class PlaneCoupling:
    """Couples the planes of a trained model."""

    def __init__(self, parts: RunParts, joining: Joining) -> None:
        self._parts, self._joining = parts, joining

    async def couple(self, run: Run, trained: TrainedModel) -> TrainedModel:
        """As :meth:`services.coordinator.training.Coordinator.couple` says."""
        if not couples(run.plan, self._parts.asset_type):
            return trained
        coupler, problem = Coupler(len(trained.weights), _kept_for(run)), server_problem(run, self._parts.asset_type)
        if run.plan.reveal == "sums":
            problem = cohort_problem(problem, cohorts_of(run))
        shares = {site.site_id: site.weight for site in problem.sites}
        self._parts.forget_sums()
        try:
            while points := coupler.points():
                asked = _question(trained.weights, points, trained.rounds + coupler.exchanges + 1)
                said = await self._joining.ask_tuning(run, asked)
                coupler.tell([_told(said, shares, j) for j in range(len(points))])
        except TooFewSitesError as error:
            LOG.warning("run %s: its planes are not coupled: %s", run.run_id, error)
            return _uncoupled(trained, "not every plant answered")
        finally:
            self._parts.forget_sums()  # what is asked next counts its rounds anew
        if coupler.objective < coupler.at_least - _ROUNDING * max(1.0, coupler.at_least):
            why = (
                f"a loss of {coupler.objective:.4g} was told where it is {coupler.at_least:.4g} at least, so some "
                "plant lied, or its data changed"
            )
            LOG.warning("run %s: its planes are not coupled: %s", run.run_id, why)
            return _uncoupled(trained, why)
        found = Coupling.of(
            coupler.best, objective=coupler.objective, before=coupler.first, at_least=coupler.at_least,
            rounds=coupler.exchanges,
        )
        LOG.info("run %s: %s", run.run_id, found.words)
        return replace(
            trained, weights=coupled_planes(trained.weights, found.array), coupling=found, risk_bound=math.inf,
            note=joined(trained.note, found.words),
        )


def _uncoupled(trained: TrainedModel, why: str) -> TrainedModel:
    return replace(trained, note=joined(trained.note, f"the planes of the classes are not coupled: {why}"))


def _kept_for(run: Run) -> int:
    """Exchanges that the budget of a run's tuning keeps for the coupling."""
    curve = run.plan.tuned
    return EXCHANGES if curve is None else most_exchanges(int(curve.budget * curve.reference_rounds))


def _question(heads: FloatArray, points: tuple[FloatArray, ...], number: int) -> TuningQuestion:
    arrays = {"heads": heads, **{f"point_{j}": point for j, point in enumerate(points)}}
    return TuningQuestion(
        number, CouplingTask(points=len(points)), arrays, tuple(cut_shapes_of(point, 0) for point in points)
    )


def _told(said: TuningAnswers, shares: dict[str, float], j: int) -> Told:
    """Mean of what sites or cohorts answered at a point, each by its weight."""
    answers = [(shares[name], parts[j]) for name, parts in said.parts.items()]
    loss, height = (sum(share * float(told[name][0]) for share, told in answers) for name in ("risk", "cut_height"))
    return Told(loss, height, np.add.reduce([share * told["slope"][0] for share, told in answers]))
