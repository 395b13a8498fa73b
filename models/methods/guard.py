r"""What a plant answers in place of a cut that would isolate one of its rows: another cut of the same risk.

A risk r is convex, so every cut of it is below it everywhere, and so is every mean of two cuts. Where the exact cut at
the point w that was asked may not leave, what leaves is

    (1 - share) cut + share other,

``other`` the minorant that a local step from beside w proves, which several rows enter in parts. Restated at w its
height is at most r(w), so whatever is built on it stays proven, exactly. Where to look from and the share are drawn;
the distance, and at last the share, grow until nothing is isolated, and at the very last the answer is the cut 0 <= r,
which says nothing. Before a mean is looser at w than the tightest cut that left already (:func:`tightest`), that one is
told again: it adds no vector to what is known, so it seldom isolates anything, and in a sum over plants it still says
something. The price is tightness, and so rounds. The share begins small, for a plant may have a single row at
its kink at the optimum: all tight cuts then differ in that row alone, and what hides it must cost little. What
isolates a row, and what is drawn, is the guard's matter (``services.site_agent.vault.isolation.guard``); here is what
may stand in for what.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from models.basics import FloatArray
from models.geometry.norms import dual_norm
from models.problem import SiteProblem
from models.prox.bundle import LocalStep, fast_prox_fits, local_minorant
from models.prox.hinge import robust_prox
from models.prox.solution import ProxSolution
from models.worst_case.risk import RiskCut, site_cut

FIRST_MOVE: Final = 3e-3
"""First distance, in parts of the largest absolute weight or of 1: a nearer one seldom is enough."""
MOVES: Final = 7
"""How often the distance grows, threefold each time, for each costs a solve: to 2, where nearly every row of a scaled
table has changed its part of a hinge."""
LEAST_SHARE: Final = 0.004
"""Of the other cut; twice that at the last distance. One row that it differs in then weighs more than a
five-hundredth of the row that it hides, which is what a guard asks for."""
_STEADY = 6  # moves over which the share stays: a row far from its kink is reached by distance
_LEAST_SLOPE = 1e-6  # of a risk that is flat: its local step ends where it begins
_ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Share of its terms' sizes by which the rounding of a height may be off."""

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True)
class Minorant:
    """``offset + <slope, u> + norm_weight ||u||_* + <swing, |u|> <= r(u)`` for every u, with the rows of the slope.

    ``swing`` (P,) None: nothing. ``rows`` (N,), or (C - 1, N) of all classes; None: not known. ``above``: of one in
    place of an exact cut, the share of what it is too low by, by which the risk is told too high.
    """

    offset: float
    slope: FloatArray
    norm_weight: float
    swing: FloatArray | None = None
    rows: FloatArray | None = None
    above: float = 0.0


@dataclass(frozen=True)
class Near:
    """Where a minorant is to be tight: a point (D,) and its norm ``||w||_*``; ``risk`` tells one risk from another.

    ``risk`` None: cuts of it are not to be told again. ``exchange``: of which exchange of messages the question is, for
    one that is asked again later may be told a tighter cut that left since; a run that asks at one point would stall.
    """

    point: FloatArray
    norm: float
    risk: bytes | None = None
    exchange: int = 0


Other = Callable[[int, np.random.Generator], Minorant]


class Guard(Protocol):
    """Chooses, of the answers to a question, the first that isolates nothing with what has left."""

    def choose(
        self,
        question: bytes,
        candidate: Callable[[int, np.random.Generator], AnswerT],
        vectors: Callable[[AnswerT], Sequence[FloatArray]],
    ) -> AnswerT:
        """The first ``candidate(number, random)``, number 0 to ``MOVES + 1``, that may leave; the last always may.

        ``vectors`` are the coefficients (N,) of a candidate's vectors over the rows. ``question`` says what was asked:
        the same question gets the same answer.
        """
        ...

    def choose_cut(self, question: bytes, near: Near, exact: Minorant, other: Other) -> Minorant:
        """The same of minorants of one risk: the exact one, ``other(number, random)`` from 1 on, or one that left."""
        ...


def asked(problem: SiteProblem, *parts: FloatArray) -> bytes:
    """What tells one question from another: which risk it is about, and the arrays of the message.

    The whole risk: a cut of the unbounded one is above the risk on a box, and would be no bound there.
    """
    found = hashlib.sha256(problem.digest)
    for part in parts:
        found.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    return found.digest()


def guarded_cut(point: FloatArray, problem: SiteProblem, guard: Guard | None, exchange: int = 0) -> RiskCut:
    """The cut of the risk at a point (D,), or what leaves in its place, with a ``risk`` at or above the exact one.

    Exact risks at D + 1 points, where the same rows have a part, would be the very slope that may not leave.
    """
    exact = site_cut(point, problem)
    if guard is None or exact.rows is None:
        return exact
    near = _near(point, problem, exchange)
    known = Minorant(exact.offset(point, near.norm), exact.slope, exact.norm_weight, exact.swing, exact.rows)
    found = guard.choose_cut(asked(problem, point), near, known, partial(mixed, known, point, problem))
    if found is known:
        return exact
    height = min(height_at(found, point, near.norm), exact.height)
    risk = exact.risk + found.above * (exact.risk - height)
    return RiskCut(risk, height, found.slope, found.norm_weight, found.swing, found.rows)


def guarded_minorant(
    found: Minorant, near: FloatArray, problem: SiteProblem, guard: Guard | None, question: bytes, exchange: int = 0
) -> Minorant:
    """A minorant of the risk, tight near the point ``near`` (D,), or what leaves in its place."""
    if guard is None or found.rows is None:
        return found
    return guard.choose_cut(question, _near(near, problem, exchange), found, partial(mixed, found, near, problem))


def mixed(
    known: Minorant, near: FloatArray, problem: SiteProblem, number: int, random: np.random.Generator
) -> Minorant:
    """Mean of a minorant and the one of a local step from beside ``near`` (D,); beyond ``MOVES`` the zero."""
    swing = None if known.swing is None else np.zeros_like(known.swing)
    if number > MOVES:
        return Minorant(0.0, np.zeros_like(known.slope), 0.0, swing, np.zeros_like(known.rows))
    centre = moved(near, number, random)
    penalty = max(float(np.linalg.norm(known.slope)), _LEAST_SLOPE) / float(np.linalg.norm(centre - near))
    if fast_prox_fits(problem):
        other = prox_minorant(robust_prox(problem, centre, penalty, warm_start=near))
    else:
        other = step_minorant(local_minorant(problem, centre, penalty))
    if other.rows is None:
        return mixed(known, near, problem, MOVES + 1, random)
    share = min(LEAST_SHARE * 2.0 ** max(number - _STEADY, 0), 1.0) * (1.0 - 0.25 * random.uniform())
    return Minorant(
        _mean(known.offset, other.offset, share), _mean(known.slope, other.slope, share),
        _mean(known.norm_weight, other.norm_weight, share),
        None if swing is None else _mean(known.swing, other.swing, share), _mean(known.rows, other.rows, share),
    )


def step_minorant(step: LocalStep) -> Minorant:
    """Minorant of a bundle step."""
    return Minorant(step.offset, step.slope, step.norm_weight, step.swing, step.rows)


def prox_minorant(solution: ProxSolution) -> Minorant:
    """Minorant of a prox solution, its norm part apart where the solver knows it."""
    if solution.norm_slope is None:
        return Minorant(solution.offset, solution.slope, 0.0, None, solution.rows)
    slope = solution.slope - solution.norm_slope
    return Minorant(solution.offset, slope, solution.norm_weight, None, solution.rows)


def moved(point: FloatArray, number: int, random: np.random.Generator) -> FloatArray:
    """Point (D,) beside another, the farther the higher ``number``, from 1 to ``MOVES``."""
    size = max(1.0, float(np.abs(point).max(initial=0.0)))
    direction = random.standard_normal(point.shape)
    return np.asarray(point + FIRST_MOVE * 3.0 ** (number - 1) * size / np.abs(direction).max() * direction)


def height_at(below: Minorant, point: FloatArray, norm: float) -> float:
    """Height of a minorant at weights (D,) with norm ``||w||_*``, less what rounding may have added."""
    parts = [below.offset, float(below.slope @ point), below.norm_weight * norm]
    sizes = [abs(below.offset), float(np.abs(below.slope) @ np.abs(point)), abs(parts[2])]
    if below.swing is not None:
        parts.append(float(below.swing @ np.abs(point[: below.swing.shape[0]])))
        sizes.append(abs(parts[-1]))
    return sum(parts) - _ROUNDING * sum(sizes)


def tightest(cuts: Sequence[Minorant], near: Near) -> Minorant | None:
    """The highest of minorants of one unbounded risk at a point; None of none."""
    return cuts[int(np.argmax(_heights(cuts, near)))] if cuts else None


def highest_first(cuts: Sequence[Minorant], near: Near) -> list[Minorant]:
    """Minorants of one unbounded risk by height at a point, the highest first, without those that say nothing there."""
    if not cuts:
        return []
    heights = _heights(cuts, near)
    return [cuts[place] for place in np.argsort(-heights, kind="stable") if heights[place] > 0]


def _heights(cuts: Sequence[Minorant], near: Near) -> FloatArray:
    slopes = np.array([each.slope for each in cuts])
    levels = np.array([each.offset + near.norm * each.norm_weight for each in cuts])
    return np.asarray(levels + slopes @ near.point)


def _near(point: FloatArray, problem: SiteProblem, exchange: int) -> Near:
    """A point, and of which risk: that of these rows, labels, row weights and terms."""
    norm = float(dual_norm(point[: problem.features.shape[1]], problem.spec.transport_norm))
    if problem.spec.support is not None:
        return Near(point, norm)
    return Near(point, norm, problem.digest, exchange)


def _mean(first: Any, second: Any, share: float) -> Any:
    return (1.0 - share) * first + share * second
