"""A small problem of five sites, and the answers that they are to have given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from models.basics import Arrays
from models.methods.answer_arrays import cut_answer
from models.problem import ServerProblem, SiteTerms
from models.site_ambiguity.ball import MixtureBall, MixtureNorm
from models.worst_case.risk import RiskCut

NAMES = ("a", "b", "c", "d", "e")


def problem_of(norm: MixtureNorm = "l2", radius: float = 0.0, **changes: Any) -> ServerProblem:
    """Five sites of equal weight on two features, with a ball of this radius around the weights."""
    sites = tuple(SiteTerms(name, 0.2, 0.1, 1.0) for name in NAMES)
    return replace(ServerProblem(2, sites, "l2", True, mixture=MixtureBall(norm, radius)), **changes)


def answer_of(risk: float, slope: Any = (0.0, 0.0, 0.0), norm_weight: float = 0.0) -> Arrays:
    """A risk at a point, whose cut has this slope and norm weight."""
    return cut_answer(RiskCut(risk, risk, np.array(slope, dtype=float), norm_weight))
