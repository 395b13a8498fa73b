"""Site halves that the FDR-SVM methods share: the exact risk at a point, alone or with a cut at a local prox point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.methods.local_bundle import local_minorant
from models.problem import Arrays, FloatArray, ProxSolution, SiteProblem
from models.prox import robust_prox
from models.worst_case import site_cut


@dataclass(frozen=True)
class RiskSite:
    """Message: ``point`` w (D,). Answer: ``risk`` () there, ``slope`` (D,) and ``norm_weight`` () of its cut.

    ``r(u) >= risk + <slope, u - w> + norm_weight (||u||_* - ||w||_*)`` for every u.
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact worst-case risk and its cut: no solver involved."""
        cut = site_cut(message["point"], problem)
        return {"risk": np.array(cut.value), "slope": cut.slope, "norm_weight": np.array(cut.norm_weight)}

    def shapes(self, dimension: int) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        return {"risk": (), "slope": (dimension,), "norm_weight": ()}


@dataclass(frozen=True)
class ProxCutSite:
    """Risk at a point and one cut at ``argmin r_g(w) + penalty/2 ||w - centre||^2`` (roughly so on a box).

    Message: ``point`` (D,), ``centre`` (D,), ``penalty`` (), 0 for Polyak's ``||slope||^2 / risk``. Answer: as
    :class:`RiskSite`, and ``minorant_offset`` (), ``minorant_slope`` (D,), ``minorant_norm_weight`` () with
    ``offset + <slope, u> + norm_weight ||u||_* <= r_g(u)`` for every u.
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact risk at the point and the minorant that the local step proves."""
        answer = RiskSite().answer(problem, message, parameters)
        penalty = float(message["penalty"]) or float(answer["slope"] @ answer["slope"]) / max(
            float(answer["risk"]), 1e-9
        )
        if penalty == 0:
            return {**answer, **_flat(0.0, np.zeros_like(answer["slope"]))}
        centre = message["centre"]
        if problem.spec.support is not None:
            return {**answer, **_flat(*local_minorant(problem, centre, penalty))}
        return {**answer, **_minorant(robust_prox(problem, centre, penalty, warm_start=message["point"]))}

    def shapes(self, dimension: int) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        minorant: dict[str, tuple[int, ...]] = {
            "minorant_offset": (),
            "minorant_slope": (dimension,),
            "minorant_norm_weight": (),
        }
        return {**RiskSite().shapes(dimension), **minorant}


@dataclass(frozen=True)
class AdmmSite:
    """Risk at a point and the client step ``w_g = argmin r_g(w) + ridge ||w||^2 + penalty/2 ||w - centre||^2``.

    Message: as :class:`ProxCutSite`, and ``ridge`` (). Answer: as there, and ``local_point`` w_g (D,).
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact risk at the point, the local weights, and the minorant that the local step proves."""
        local = robust_prox(
            problem,
            message["centre"],
            float(message["penalty"]),
            ridge=float(message["ridge"]),
            warm_start=message["point"],
        )
        return {**RiskSite().answer(problem, message, parameters), "local_point": local.point, **_minorant(local)}

    def shapes(self, dimension: int) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        return {**ProxCutSite().shapes(dimension), "local_point": (dimension,)}


def _flat(offset: float, slope: FloatArray) -> dict[str, FloatArray]:
    """Minorant without a norm part."""
    return {"minorant_offset": np.array(offset), "minorant_slope": slope, "minorant_norm_weight": np.array(0.0)}


def _minorant(solution: ProxSolution) -> dict[str, FloatArray]:
    """Minorant of a prox solution, its norm part apart where the solver knows it."""
    apart = solution.norm_slope is not None
    return {
        "minorant_offset": np.array(solution.offset),
        "minorant_slope": solution.slope if solution.norm_slope is None else solution.slope - solution.norm_slope,
        "minorant_norm_weight": np.array(solution.norm_weight if apart else 0.0),
    }
