"""Site halves that several methods share: the exact risk at a point, alone or with a cut at a local prox point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.basics import Arrays, FloatArray
from models.geometry.supports import BoxSupport
from models.methods.answer_arrays import cut_answer, cut_shapes, minorant, minorant_arrays
from models.methods.guard import (
    MOVES,
    Guard,
    Minorant,
    asked,
    guarded_cut,
    guarded_minorant,
    moved,
    prox_minorant,
    step_minorant,
)
from models.methods.protocol import SiteHalf
from models.methods.row_account import Accounted, RowAccount, accounted_answer, accounted_remembering
from models.problem import SiteProblem
from models.prox.bundle import fast_prox_fits, local_minorant, local_prox
from models.prox.hinge import robust_prox

_SOFTEST = 1e-12
"""Least penalty of a local step, features and risks being of order one."""


@dataclass(frozen=True)
class RiskSite:
    """Message: ``point`` w (D,). Answer: ``risk`` () there, and ``cut_height`` (), ``slope`` (D,), ``norm_weight`` ().

    On a box ``swing`` (P,) too. The risk at w is at most ``risk``, and for every u
    ``r(u) >= cut_height + <slope, u - w> + norm_weight (||u||_* - ||w||_*) + <swing, |u| - |w|>``.
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact worst-case risk and its cut: no solver involved."""
        return self.accounted(problem, message, parameters).arrays

    def accounted(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], guard: Guard | None = None
    ) -> Accounted:
        """The answer with the rows of its slope."""
        cut = guarded_cut(message["point"], problem, guard, int(message.get("exchange", 0)))
        return Accounted(cut_answer(cut), vector_account(cut.rows, cut.slope, cut.swing, problem))

    def shapes(self, dimension: int, n_swings: int = 0) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        return cut_shapes(dimension, n_swings)


@dataclass(frozen=True)
class ProxCutSite:
    """Risk at a point and one cut at ``argmin r_g(w) + penalty/2 ||w - centre||^2`` (or near it).

    Message: ``point`` (D,), ``centre`` (D,), ``penalty`` (), 0 for Polyak's ``||slope||^2 / risk``. Answer: as
    :class:`RiskSite`, and ``minorant_offset`` (), ``minorant_slope`` (D,), ``minorant_norm_weight`` (), on a box
    ``minorant_swing`` (P,), with ``offset + <slope, u> + norm_weight ||u||_* + <swing, |u|> <= r_g(u)`` for every u.
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact risk at the point and the minorant that the local step proves."""
        return self.accounted(problem, message, parameters).arrays

    def accounted(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], guard: Guard | None = None
    ) -> Accounted:
        """The answer with the rows of its slope and of the minorant's."""
        first = RiskSite().accounted(problem, message, parameters, guard)
        answer = first.arrays
        penalty = asked_penalty(message, float(answer["risk"]), answer["slope"])
        if penalty == 0:
            swing = np.zeros_like(answer["swing"]) if "swing" in answer else None
            return Accounted({**answer, **minorant(0.0, np.zeros_like(answer["slope"]), 0.0, swing)}, first.account)
        centre = message["centre"]
        if fast_prox_fits(problem):
            local = robust_prox(problem, centre, penalty, warm_start=message["point"])
            found, near = prox_minorant(local), local.point
        else:
            step = local_minorant(problem, centre, penalty)
            found, near = step_minorant(step), step.point
        question = asked(problem, message["point"], centre, np.array(penalty))
        found = guarded_minorant(found, near, problem, guard, question, int(message.get("exchange", 0)))
        account = vector_account(found.rows, found.slope, found.swing, problem, first.account)
        return Accounted({**answer, **minorant_arrays(found)}, account)

    def shapes(self, dimension: int, n_swings: int = 0) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        minorant: dict[str, tuple[int, ...]] = {
            "minorant_offset": (),
            "minorant_slope": (dimension,),
            "minorant_norm_weight": (),
        }
        if n_swings:
            minorant["minorant_swing"] = (n_swings,)
        return {**RiskSite().shapes(dimension, n_swings), **minorant}


def asked_penalty(message: Arrays, risk: float, slope: FloatArray) -> float:
    """Penalty of the message, or where it asks 0 that of Polyak's step, ``||slope||^2 / risk``; 0 on a flat risk.

    One below 1e-12 counts as 0: a step that long ends nowhere, and its digits are lost in the solver.
    """
    for penalty in (float(message["penalty"]), float(slope @ slope) / max(risk, 1e-9)):
        if penalty >= _SOFTEST:
            return penalty
    return 0.0


@dataclass(frozen=True)
class AdmmSite:
    """Risk at a point and the client step ``w_g = argmin r_g(w) + ridge ||w||^2 + penalty/2 ||w - centre||^2``.

    Message: as :class:`ProxCutSite`, and ``ridge`` (). Answer: as there, and ``local_point`` w_g (D,).
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact risk at the point, the local weights, and the minorant that the local step proves."""
        return self.accounted(problem, message, parameters).arrays

    def accounted(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], guard: Guard | None = None
    ) -> Accounted:
        """The answer with the rows of its slope and of the minorant's.

        The weights add no rows of their own: the minorant's slope says where its step ends. Where a guard lets another
        answer leave it is the step from a centre beside the one that was asked.
        """
        first = RiskSite().accounted(problem, message, parameters, guard)
        centre, point = message["centre"], message["point"]
        penalty, ridge = float(message["penalty"]), float(message["ridge"])

        def stepped(beside: FloatArray) -> tuple[FloatArray, Minorant]:
            if fast_prox_fits(problem):
                local = robust_prox(problem, beside, penalty, ridge=ridge, warm_start=point)
                return local.point, prox_minorant(local)
            step = local_prox(problem, beside, penalty, ridge=ridge, start=point)
            return np.asarray(step.proven_point), step_minorant(step)

        unmoved = centre * (penalty / (penalty + 2.0 * ridge))
        stiffness = np.array([penalty, ridge])
        local_point, found = guarded_step(stepped, centre, unmoved, problem, guard, point, centre, stiffness)
        account = vector_account(found.rows, found.slope, found.swing, problem, first.account)
        return Accounted({**first.arrays, "local_point": local_point, **minorant_arrays(found)}, account)

    def answer_remembering(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], memory: Arrays,
        guard: Guard | None = None,
    ) -> tuple[Accounted, dict[str, FloatArray]]:
        """As a plant of a cohort, with a multiplier of its own where the server knows the cohort's mean alone.

        That mean is ``m = point - centre``; the plant's is ``mu <- mu + w_g - point`` from its last round, m without
        one. ``local_point`` is ``w_g + mu - m``: its mean and m give the server ``w_g + mu`` on the mean, whatever
        the plants' multipliers are, and its own step then makes m their mean again.
        """
        point = message["point"]
        shared = point - message["centre"]
        dual = memory["dual"] + memory["local_point"] - point if memory else shared
        found = self.accounted(problem, {**message, "centre": point - dual}, parameters, guard)
        local_point = found.arrays["local_point"]
        told = {**found.arrays, "local_point": local_point + dual - shared}
        return Accounted(told, found.account), {"dual": dual, "local_point": local_point}

    def shapes(self, dimension: int, n_swings: int = 0) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        return {**ProxCutSite().shapes(dimension, n_swings), "local_point": (dimension,)}


@dataclass(frozen=True)
class RestatedSite:
    """Another half on the same rows, some of whose specification is changed: ``changes`` by field."""

    half: SiteHalf
    changes: Mapping[str, Any]

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """As the half answers to the problem so restated."""
        return self.half.answer(self._restated(problem), message, parameters)

    def accounted(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], guard: Guard | None = None
    ) -> Accounted:
        """As the half accounts for it."""
        return accounted_answer(self.half, self._restated(problem), message, parameters, guard)

    def answer_remembering(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], memory: Arrays,
        guard: Guard | None = None,
    ) -> tuple[Accounted, dict[str, FloatArray]]:
        """The same from a memory, where the half has one."""
        return accounted_remembering(self.half, self._restated(problem), message, parameters, memory, guard)

    def _restated(self, problem: SiteProblem) -> SiteProblem:
        return replace(problem, spec=replace(problem.spec, **self.changes))


def guarded_step(
    stepped: Callable[[FloatArray], tuple[FloatArray, Minorant]], centre: FloatArray, unmoved: FloatArray,
    problem: SiteProblem, guard: Guard | None, *question: FloatArray,
) -> tuple[FloatArray, Minorant]:
    """End (D,) of a local step from ``centre`` (D,) with what proves it, or of one from beside it that may leave.

    ``unmoved`` (D,) is the end for one who knows nothing of the risk but that it is not negative: the last resort.
    ``question``: what tells this step from others about the same risk.
    """
    if guard is None:
        return stepped(centre)

    def candidate(number: int, random: np.random.Generator) -> tuple[FloatArray, Minorant]:
        if number > MOVES:
            swing = np.zeros(problem.features.shape[1]) if isinstance(problem.spec.support, BoxSupport) else None
            return unmoved, Minorant(0.0, np.zeros_like(unmoved), 0.0, swing, np.zeros(problem.labels.shape[0]))
        return stepped(moved(centre, number, random) if number else centre)

    return guard.choose(
        asked(problem, *question), candidate, lambda step: [] if step[1].rows is None else [step[1].rows]
    )


def vector_account(
    rows: FloatArray | None,
    slope: FloatArray,
    swing: FloatArray | None,
    problem: SiteProblem,
    before: RowAccount | None = None,
) -> RowAccount:
    """Account of a slope and its swing after those of ``before``; what moves in a box add is no sum of whole rows."""
    unmoved = swing is None or not swing.any()
    return (before or RowAccount()).with_vector(rows, slope, problem.labels.shape[0], whole=unmoved)
