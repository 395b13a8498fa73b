r"""The level bundle over sites: few rounds, and a certificate from the method itself.

Each round the server asks every site for its exact risk and a subgradient at one point: a cut of that site's risk that
holds for ever. The server keeps the cuts of each site apart, takes the lower bound from the minimum m of the weighted
cut model, the upper bound U from the best point, and asks next at the projection of the best point on the level set
``{model <= m + level (U - m)}`` (Lemarechal, Nemirovskii, Nesterov 1995, with one model a site).

Prefer it to ADMM wherever rounds are dear; it needs no step size. Absent sites enter by their cuts (MATH section 7).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.cut_model import project
from models.methods.certified import CertifiedServer
from models.methods.evidence import Evidence, cut_model, no_evidence, raise_lower, record, unpack_evidence
from models.methods.site_answers import RiskSite
from models.problem import Arrays, FloatArray, ServerProblem, Status

_STILL = 1e-14


@dataclass(frozen=True)
class BundleState:
    """Evidence and the point (D,) that is asked next; ``still`` once that point no longer moves."""

    evidence: Evidence
    point: FloatArray
    still: bool = False


@dataclass(frozen=True)
class PlainBundleServer(CertifiedServer[BundleState]):
    """Server half of the level bundle without prox cuts."""

    def init(self, problem: ServerProblem) -> BundleState:
        """Nothing known; the first point is zero."""
        return BundleState(no_evidence(problem), np.zeros(problem.dimension))

    def messages(self, state: BundleState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """The same point for every site."""
        return {site.site_id: {"point": state.point} for site in problem.sites}

    def step(self, state: BundleState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> BundleState:
        """Add the cuts, bound the optimum, project the best point on the level set."""
        evidence = record(state.evidence, problem, state.point, answers)
        evidence, bottom = raise_lower(evidence, problem)
        model, best = cut_model(evidence, problem), evidence.best_point
        lowest = model.value(bottom.point)
        height = evidence.upper if math.isfinite(evidence.upper) else model.value(best)
        level = lowest + problem.parameters["level"] * max(height - lowest, 0.0)
        point = project(model, best, level).point
        moved = float(np.abs(point - best).max())
        return BundleState(evidence, point, moved <= _STILL * (1.0 + float(np.abs(best).max())))

    def answer_shapes(self, problem: ServerProblem) -> dict[str, tuple[int, ...]]:
        """Risk and its cut."""
        return RiskSite().shapes(problem.dimension)

    def status(self, state: BundleState, problem: ServerProblem) -> Status:
        """Certified at the wanted gap; stalled where the next point is the best one again."""
        status = super().status(state, problem)
        return Status.STALLED if status is Status.CONTINUE and state.still else status

    def pack(self, state: BundleState) -> dict[str, FloatArray]:
        """Evidence and next point."""
        return {**state.evidence.pack(), "point": state.point, "still": np.array(float(state.still))}

    def unpack(self, arrays: Arrays) -> BundleState:
        """State from :meth:`pack`."""
        return BundleState(unpack_evidence(arrays), np.asarray(arrays["point"]), bool(arrays["still"]))
