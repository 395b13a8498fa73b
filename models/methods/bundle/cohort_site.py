r"""Site half of the bundle on cohort sums: several questions in a message, and prox centres that the site makes itself.

A prox cut is worth most where the site looks from its own slope, ``centre_g = w + v_g / penalty``, and a server that
sees sums alone knows no slope of a single site. So it broadcasts how much each past cut of the cohort counted in its
projection (``counted``), and each site takes the same mixture of its own past cuts:

    v_g = sum_j counted_j (slope_gj + sides * swing_gj + norm_weight_gj n) + (1 - sum_j counted_j) floor_g n

with n (``of_norm``) the slope of a unit of the norm in that projection and floor_g the largest norm weight among its
own cuts. A site that does not remember a cut that counts, after a restart, takes the ``centre`` that the cohort shares:
its cut is a cut of its risk from wherever it looks, so nothing but rounds is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError, rounded, stack_arrays
from models.methods.guard import Guard
from models.methods.row_account import Accounted, joined
from models.methods.site_answers import ProxCutSite
from models.problem import SiteProblem

_DIGITS = 1e-6
"""Digits of a centre that are kept, relative to its largest entry: a cut may be made from anywhere."""

UNKNOWN_TO_SITES = -1.0
"""In place of a share: a cut that counts is of an earlier run, of which no site remembers anything."""

_CUTS = (("slope", "minorant_slope"), ("norm_weight", "minorant_norm_weight"), ("swing", "minorant_swing"))


@dataclass(frozen=True)
class CohortSite:
    """Message, for q questions and E exchanges of messages so far, each of 2 q cuts (a question's prox cut second).

    ``points`` (q, D), ``centre`` (q, D), ``penalty`` (q,), ``counted`` (q, 2 q E), ``of_norm`` (q, D), ``sides``
    (q, P). Answer: that of :class:`models.methods.site_answers.ProxCutSite` for each question, with a leading axis q.
    """

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """As a site that remembers nothing: from the shared centres."""
        return self.accounted(problem, message, parameters).arrays

    def accounted(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], guard: Guard | None = None
    ) -> Accounted:
        """The same with the rows of its slopes, question by question."""
        exchanges_before(message)
        return _answers(problem, message, parameters, {}, guard)

    def answer_remembering(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], memory: Arrays,
        guard: Guard | None = None,
    ) -> tuple[Accounted, dict[str, FloatArray]]:
        """Answer from the site's own centres, and what it will remember; ``memory`` {} at the start of a run."""
        exchanges = exchanges_before(message)
        found = _answers(problem, message, parameters, memory, guard)
        return found, remembered(memory, exchanges, found.arrays)


def _answers(
    problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], memory: Arrays, guard: Guard | None
) -> Accounted:
    """Answers to the questions of a message, each from a centre of the site's own where it remembers enough.

    Questions that are the same get one answer, made once: where the best point is at every level already.
    """
    answers, exchange, told = [], np.array(exchanges_before(message)), dict[tuple[bytes, ...], Accounted]()
    for k, point in enumerate(message["points"]):
        centre = own_centre(message, k, memory, problem.features.shape[1])
        asked = {"point": point, "centre": centre, "penalty": message["penalty"][k], "exchange": exchange}
        question = tuple(np.asarray(array).tobytes() for array in asked.values())
        if question not in told:
            told[question] = ProxCutSite().accounted(problem, asked, parameters, guard)
        answers.append(told[question])
    return Accounted(stack_arrays([each.arrays for each in answers]), joined([each.account for each in answers]))


def exchanges_before(message: Arrays) -> int:
    """How many exchanges of messages the run had before this one; ``ProblemError`` where no number fits."""
    places, counted = 2 * message["points"].shape[0], message["counted"].shape[-1]
    if counted % places:
        raise ProblemError(f"counted must hold {places} shares for each exchange, it holds {counted}")
    return int(counted // places)


def own_centre(message: Arrays, k: int, memory: Arrays, n_features: int) -> FloatArray:
    """Prox centre (D,) of question k: the site's own where it remembers all cuts that count, else the shared one."""
    point, penalty, q = message["points"][k], float(message["penalty"][k]), message["points"].shape[0]
    counted = message["counted"][k].reshape(-1, 2 * q)
    known = memory.get("slope", np.zeros((0, *counted.shape[1:], point.shape[0])))
    exchanges, places = np.nonzero(counted)
    if (counted < 0).any() or known.shape[1] != 2 * q or exchanges.max(initial=-1) >= known.shape[0]:
        return np.asarray(message["centre"][k])
    if penalty == 0 or np.isnan(known[exchanges, places]).any():
        return np.asarray(message["centre"][k])
    shares, norm_weight = counted[exchanges, places], memory.get("norm_weight", np.zeros(known.shape[:2]))
    slope = shares @ known[exchanges, places]
    if "swing" in memory:
        slope[:n_features] += message["sides"][k] * (shares @ memory["swing"][exchanges, places])
    floor = float(np.nanmax(norm_weight, initial=0.0))
    carried = float(shares @ norm_weight[exchanges, places]) + max(1.0 - float(shares.sum()), 0.0) * floor
    return rounded(point + (slope + carried * message["of_norm"][k]) / penalty, _DIGITS)


def remembered(memory: Arrays, before: int, answer: Arrays) -> dict[str, FloatArray]:
    """Memory with the cuts of the exchange after ``before`` others; NaN stands for one that is not remembered."""
    grown = {}
    for at_point, at_prox in _CUTS:
        if at_point not in answer:
            continue
        cuts = np.stack([answer[at_point], answer[at_prox]], axis=1).reshape(-1, *answer[at_point].shape[1:])
        known = memory.get(at_point, np.zeros((0, *cuts.shape)))[:before]
        grown[at_point] = np.full((before + 1, *cuts.shape), np.nan)
        if known.shape[1:] == cuts.shape:
            grown[at_point][: known.shape[0]] = known
        grown[at_point][before] = cuts
    return grown
