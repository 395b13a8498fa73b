"""Risks, cuts and minorants as the arrays of an answer; and the answers of all sites as one array."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from models.basics import Arrays, FloatArray
from models.methods.guard import Minorant
from models.problem import ServerProblem
from models.worst_case.risk import RiskCut


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


def minorant(
    offset: float, slope: FloatArray, norm_weight: float, swing: FloatArray | None = None
) -> dict[str, FloatArray]:
    """Arrays of ``offset + <slope, u> + norm_weight ||u||_* + <swing, |u|> <= r_g(u)``."""
    return minorant_arrays(Minorant(offset, slope, norm_weight, swing))


def minorant_arrays(found: Minorant) -> dict[str, FloatArray]:
    """Arrays of a minorant."""
    arrays = {
        "minorant_offset": np.array(found.offset),
        "minorant_slope": found.slope,
        "minorant_norm_weight": np.array(found.norm_weight),
    }
    return arrays if found.swing is None else {**arrays, "minorant_swing": found.swing}
