"""Site halves that several methods share: the exact risk at a point, alone or with a cut at a local prox point.

And what all server halves do with answers first: put those of all sites into one array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.basics import Arrays, FloatArray
from models.methods.protocol import RemembersAnswers, SiteHalf
from models.methods.row_account import Accounted, RowAccount, accounted_answer
from models.problem import ProxSolution, ServerProblem, SiteProblem
from models.prox.bundle import LocalStep, fast_prox_fits, local_minorant, local_prox
from models.prox.hinge import robust_prox
from models.worst_case.risk import RiskCut, site_cut


def cut_answer(cut: RiskCut) -> dict[str, FloatArray]:
    """Arrays of a risk and its cut (see :class:`models.worst_case.risk.RiskCut`)."""
    answer = {
        "risk": np.array(cut.risk), "cut_height": np.array(cut.height), "slope": cut.slope,
        "norm_weight": np.array(cut.norm_weight),
    }
    return answer if cut.swing is None else {**answer, "swing": cut.swing}


def cut_shapes(dimension: int, n_swings: int = 0) -> dict[str, tuple[int, ...]]:
    """Shapes of :func:`cut_answer`; ``n_swings`` is the length of a swing, 0 where there is none."""
    shapes: dict[str, tuple[int, ...]] = {"risk": (), "cut_height": (), "slope": (dimension,), "norm_weight": ()}
    return {**shapes, "swing": (n_swings,)} if n_swings else shapes


def stacked(
    problem: ServerProblem, answers: Mapping[str, Arrays], name: str, absent: FloatArray | None = None
) -> FloatArray:
    """One array of all sites' answers under a name, (G, ..); the rows of absent sites from ``absent``, None: 0."""
    rows = np.zeros(len(problem.sites)) if absent is None else absent
    ids = [site.site_id for site in problem.sites]
    return np.array([answers[each][name] if each in answers else row for each, row in zip(ids, rows, strict=True)])


def present(problem: ServerProblem, answers: Mapping[str, Arrays]) -> NDArray[np.bool_]:
    """Which of the sites answered, (G,)."""
    return np.array([site.site_id in answers for site in problem.sites])


@dataclass(frozen=True)
class RiskSite:
    """Message: ``point`` w (D,). Answer: ``risk`` () there, and ``cut_height`` (), ``slope`` (D,), ``norm_weight`` ().

    On a box ``swing`` (P,) too. The risk at w is at most ``risk``, and for every u
    ``r(u) >= cut_height + <slope, u - w> + norm_weight (||u||_* - ||w||_*) + <swing, |u| - |w|>``.
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact worst-case risk and its cut: no solver involved."""
        return self.accounted(problem, message, parameters).arrays

    def accounted(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> Accounted:
        """The answer with the rows of its slope."""
        cut = site_cut(message["point"], problem)
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

    def accounted(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> Accounted:
        """The answer with the rows of its slope and of the minorant's."""
        asked = RiskSite().accounted(problem, message, parameters)
        answer = asked.arrays
        penalty = asked_penalty(message, float(answer["risk"]), answer["slope"])
        if penalty == 0:
            swing = np.zeros_like(answer["swing"]) if "swing" in answer else None
            return Accounted({**answer, **minorant(0.0, np.zeros_like(answer["slope"]), 0.0, swing)}, asked.account)
        centre = message["centre"]
        if not fast_prox_fits(problem):
            step = local_minorant(problem, centre, penalty)
            account = vector_account(step.rows, step.slope, step.swing, problem, asked.account)
            return Accounted({**answer, **step_minorant(step)}, account)
        local = robust_prox(problem, centre, penalty, warm_start=message["point"])
        account = vector_account(local.rows, local.slope, None, problem, asked.account)
        return Accounted({**answer, **_minorant(local)}, account)

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
    """Penalty of the message, or where it asks 0 that of Polyak's step, ``||slope||^2 / risk``; 0 on a flat risk."""
    return float(message["penalty"]) or float(slope @ slope) / max(risk, 1e-9)


@dataclass(frozen=True)
class AdmmSite:
    """Risk at a point and the client step ``w_g = argmin r_g(w) + ridge ||w||^2 + penalty/2 ||w - centre||^2``.

    Message: as :class:`ProxCutSite`, and ``ridge`` (). Answer: as there, and ``local_point`` w_g (D,).
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact risk at the point, the local weights, and the minorant that the local step proves."""
        return self.accounted(problem, message, parameters).arrays

    def accounted(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> Accounted:
        """The answer with the rows of its slope and of the minorant's.

        At the optimum of the local step the minorant's slope says where the weights are, so these add no rows of their
        own where the step is solved to the end; after a bundle of cuts they may.
        """
        asked = RiskSite().accounted(problem, message, parameters)
        answer = asked.arrays
        centre, point = message["centre"], message["point"]
        penalty, ridge = float(message["penalty"]), float(message["ridge"])
        if fast_prox_fits(problem):
            local = robust_prox(problem, centre, penalty, ridge=ridge, warm_start=point)
            account = vector_account(local.rows, local.slope, None, problem, asked.account)
            return Accounted({**answer, "local_point": local.point, **_minorant(local)}, account)
        step = local_prox(problem, centre, penalty, ridge=ridge, start=point)
        account = vector_account(step.rows, step.slope, step.swing, problem, asked.account).partial()
        return Accounted({**answer, "local_point": step.point, **step_minorant(step)}, account)

    def answer_remembering(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], memory: Arrays
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """As a plant of a cohort, with a multiplier of its own where the server knows the cohort's mean alone.

        That mean is ``m = point - centre``; the plant's is ``mu <- mu + w_g - point`` from its last round, m without
        one. ``local_point`` is ``w_g + mu - m``: its mean and m give the server ``w_g + mu`` on the mean, whatever
        the plants' multipliers are, and its own step then makes m their mean again.
        """
        point = message["point"]
        shared = point - message["centre"]
        dual = memory["dual"] + memory["local_point"] - point if memory else shared
        answer = self.answer(problem, {**message, "centre": point - dual}, parameters)
        kept = {"dual": dual, "local_point": answer["local_point"]}
        return {**answer, "local_point": answer["local_point"] + dual - shared}, kept

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

    def accounted(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> Accounted:
        """As the half accounts for it."""
        return accounted_answer(self.half, self._restated(problem), message, parameters)

    def answer_remembering(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], memory: Arrays
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """The same from a memory, where the half has one."""
        if isinstance(self.half, RemembersAnswers):
            return self.half.answer_remembering(self._restated(problem), message, parameters, memory)
        return self.answer(problem, message, parameters), {}

    def _restated(self, problem: SiteProblem) -> SiteProblem:
        return replace(problem, spec=replace(problem.spec, **self.changes))


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


def minorant(
    offset: float, slope: FloatArray, norm_weight: float, swing: FloatArray | None = None
) -> dict[str, FloatArray]:
    """Arrays of ``offset + <slope, u> + norm_weight ||u||_* + <swing, |u|> <= r_g(u)``."""
    found = {
        "minorant_offset": np.array(offset),
        "minorant_slope": slope,
        "minorant_norm_weight": np.array(norm_weight),
    }
    return found if swing is None else {**found, "minorant_swing": swing}


def step_minorant(step: LocalStep) -> dict[str, FloatArray]:
    """Minorant of a bundle step."""
    return minorant(step.offset, step.slope, step.norm_weight, step.swing)


def _minorant(solution: ProxSolution) -> dict[str, FloatArray]:
    """Minorant of a prox solution, its norm part apart where the solver knows it."""
    if solution.norm_slope is None:
        return minorant(solution.offset, solution.slope, 0.0)
    return minorant(solution.offset, solution.slope - solution.norm_slope, solution.norm_weight)
