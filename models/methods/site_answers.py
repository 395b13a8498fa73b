"""Site halves that the FDR-SVM methods share: the exact risk at a point, alone or with a cut at a local prox point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.problem import Arrays, FloatArray, SiteProblem
from models.prox import robust_prox
from models.worst_case import site_risk


@dataclass(frozen=True)
class RiskSite:
    """Message: ``point`` (D,). Answer: ``risk`` () and ``subgradient`` (D,) of the worst-case risk there."""

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact worst-case risk and a subgradient: no solver involved."""
        risk = site_risk(message["point"], problem)
        return {"risk": np.array(risk.value), "subgradient": risk.subgradient}

    def shapes(self, dimension: int) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        return {"risk": (), "subgradient": (dimension,)}


@dataclass(frozen=True)
class ProxSite:
    """Risk at a point and the local step ``w_g = argmin r_g(w) + ridge ||w||^2 + penalty/2 ||w - centre||^2``.

    Message: ``point`` (D,), ``centre`` (D,), ``penalty`` (), ``ridge`` (). Answer: as :class:`RiskSite`, and
    ``local_point`` (D,), ``minorant_offset`` (), ``minorant_slope`` (D,) with
    ``offset + <slope, u> <= r_g(u)`` for every u.
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact risk at the point and the minorant that the local step proves."""
        local = robust_prox(
            problem,
            message["centre"],
            float(message["penalty"]),
            ridge=float(message["ridge"]),
            warm_start=message["point"],
        )
        return {
            **RiskSite().answer(problem, message, parameters),
            "local_point": local.point,
            "minorant_offset": np.array(local.offset),
            "minorant_slope": local.slope,
        }

    def shapes(self, dimension: int) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer."""
        return {
            **RiskSite().shapes(dimension),
            "local_point": (dimension,),
            "minorant_offset": (),
            "minorant_slope": (dimension,),
        }
