r"""Questions without an honest purpose: steeper than any robust optimum, or next to one that was asked already.

**Steepness.** The optimum w* of a run is no worse than zero weights, ``sum_g a_g r_g(w*) <= sum_g a_g r_g(0)``, and
risks are at or above 0, so at this site ``r(w*) <= F(0) / a`` with a its weight and F(0) the mean risk of zero weights.
From below, whatever the rows are:

- unbounded features: ``r(w) >= radius c ||w||_*``, c the Lipschitz constant of the loss, for the price of transport is
  at least ``c ||w||_*`` and the rest of the dual objective at least 0 (FDR eq. 9; DRFL Corollaries B.1 to B.6); for all
  classes as one problem with ``max_{k, l} ||w_k - w_l||_*`` in its place;
- a box: the adversary may carry the share ``radius / D`` of the mass to any corner, D the box's diameter in the
  transport norm. Scores ``<w, x> + b`` have the range ``R = sum_j |w_j| (high_j - low_j)`` over the box, so for a
  regression some corner has a residual of size R/2 at least, and for a classification the two classes' worst margins
  sum to -R, so one class has ``m <= -R/2``: ``r(w) >= min(share of the smaller class, radius / D) L(-R/2)``, or with
  ``min(1, radius / D) min(L(R/2), L(-R/2))`` for a regression.

A question whose floor is above ``limit r(0)`` is refused; ``limit`` stands for ``1 / a`` and what lies between a trial
point and the optimum. F(0) is known here by r(0) where classes are told apart; of targets r(0) may be next to nothing
at one site alone, so it counts for no less than that of the largest targets. A problem without a ball, and a polytope,
have no such floor.

**Nearness.** A risk changes by at most ``c max_x |<x, d> + d_b| + radius c ||d||_*`` over a step d, x in the box that
holds all rows there can be. Where that is less than a share of the spread of the risks that the run has asked of late,
its progress, the answer could not move a bound by anything that matters: a question so near to an earlier one, and not
the same, is refused.

**A refusal says nothing of the rows,** and nothing of risks that the coordinator was not told: it leaves under no mask
and costs no answer, so halving would find any number that decides it. So the box stands in for the rows, on sums the
least progress for the run's, and what is left of the rows (the risk of zero weights, the share of the smaller class)
is taken to a power of two.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.geometry.norms import dual_norm, dual_norms, vector_norm
from models.geometry.supports import BoxSupport, PolytopeSupport
from models.losses.joint import JointLoss
from models.problem import SiteProblem
from models.worst_case.joint_risk import joint_planes, steepest_pair
from models.worst_case.risk import site_risk
from services.site_agent.rules.policy import Refusal

_RUNS_KEPT = 4  # as many as a plant takes part in at once
_QUESTIONS_KEPT = 32  # of a run: its latest, which say how far it is
_LEAST_SPREAD = 1e-3  # of the risk of zero weights: a run that has asked little has not progressed yet
_LARGEST_SCORE = 1.0  # of a target, or of a margin's own 1
_LARGEST_SUMMED = 2.0**18
"""Of risks in units of the loss: a sixteenth of what ``models.cohorts.fixed_point`` takes, for slopes of squares."""
_VECTORS = ("point", "centre", "correction")  # what of a message moves; its scalars are the method's own


def risk_floor(weights: FloatArray, problem: SiteProblem) -> float:
    """What the risk of any rows is at least at weights (D,); 0 where nothing is known."""
    spec, plane = problem.spec, weights[: problem.features.shape[1]]
    if spec.radius == 0 or isinstance(spec.support, PolytopeSupport):
        return 0.0
    if isinstance(spec.loss, JointLoss):
        return spec.radius * _apart(weights, problem, np.unique(problem.labels).astype(np.intp))
    if spec.support is None:
        return spec.radius * spec.loss.lipschitz * float(dual_norm(plane, spec.transport_norm))
    return _box_floor(plane, spec.support, problem)


def _apart(weights: FloatArray, problem: SiteProblem, from_class: NDArray[np.intp] | None = None) -> float:
    """Largest dual norm of a difference of two planes of all classes."""
    planes, loss = _planes(weights, problem), problem.spec.loss
    assert isinstance(loss, JointLoss)
    among = np.arange(loss.n_classes) if from_class is None else from_class
    return steepest_pair(planes[:, :-1], among, problem)[0]


def _planes(weights: FloatArray, problem: SiteProblem) -> FloatArray:
    """Planes (C, P + 1) of all classes as one problem."""
    loss = problem.spec.loss
    assert isinstance(loss, JointLoss)
    return joint_planes(weights, loss, problem.features.shape[1], problem.spec.fit_intercept)


def _halved(value: float) -> float:
    """The power of two at or below a value above 0; 0 of 0."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1) if value > 0 else 0.0


def _doubled(value: float) -> float:
    """The power of two at or above a value, but for rounding; 0 of 0."""
    return 2.0 ** math.ceil(math.log2(value) - 1e-9) if value > 0 else 0.0


def _box_floor(plane: FloatArray, box: BoxSupport, problem: SiteProblem) -> float:
    spec, sides = problem.spec, box.high - box.low
    diameter = float(vector_norm(sides, spec.transport_norm))
    if diameter == 0:
        return 0.0
    half, share = float(np.abs(plane) @ sides) / 2, spec.radius / diameter
    if spec.loss.task == "classification":
        smaller = float(min((problem.labels > 0).mean(), (problem.labels < 0).mean()))
        return min(share, _halved(smaller)) * float(spec.loss.value(np.array([-half]))[0])
    return min(share, 1.0) * float(spec.loss.value(np.array([half, -half])).min())


def asked_weights(message: Mapping[str, FloatArray]) -> list[FloatArray]:
    """Weights (K, D) at which a message asks: its ``point``, or each of its ``points`` (K, q, D); none: []."""
    if "points" in message:
        return list(np.moveaxis(message["points"], 1, 0))
    return [message["point"]] if "point" in message else []


@dataclass(frozen=True)
class Heads:
    """The problems of a task, one a head, and their risks at zero weights, which every question is held against.

    ``box`` holds the (lifted) features of any rows; None: [0, 1]^P.
    """

    problems: tuple[SiteProblem, ...]
    box: BoxSupport | None = None

    @cached_property
    def at_zero(self) -> FloatArray:
        """Risk of zero weights, (K,)."""
        return np.array([site_risk(np.zeros(each.dimension), each).value for each in self.problems])


def check_steepness(points: FloatArray, heads: Heads, limit: float) -> None:
    """Raise :class:`Refusal` where a head's weights (K, D) are steeper than ``limit`` allows."""
    for head, (weights, problem) in enumerate(zip(points, heads.problems, strict=True)):
        floor = risk_floor(weights, problem)
        at_zero = max(float(heads.at_zero[head]), _others_at_zero(problem))
        if floor > 0 and floor > limit * _doubled(at_zero):
            raise Refusal(
                "question_refused",
                f"head {head} is asked at weights whose risk is {floor:.3g} at least for any rows, "
                f"that of zero weights is {at_zero:.3g}: a robust optimum is not that steep",
            )


def _others_at_zero(problem: SiteProblem) -> float:
    """What the risk of zero weights may be at sites with other targets in [-1, 1]; of classes: as here, so 0."""
    if problem.spec.loss.task == "classification":
        return 0.0
    return float(problem.spec.loss.value(np.array([_LARGEST_SCORE, -_LARGEST_SCORE])).max())


def check_sums(weights: Sequence[FloatArray], heads: Heads) -> None:
    """Raise :class:`Refusal` at weights (K, D) where a risk of any rows might be too large for a masked sum.

    It goes by the weights alone: that an answer did not fit would tell how large the site's own is, by halving.
    """
    for each in weights:
        largest = _LARGEST_SCORE + float(_largest_scores(each, heads).sum())
        if not largest <= _LARGEST_SUMMED:
            raise Refusal(
                "question_refused", f"risks up to {largest:.3g} are possible there, and sums hold {_LARGEST_SUMMED:g}"
            )


def _largest_scores(weights: FloatArray, heads: Heads) -> FloatArray:
    """What the scores of any rows in the box may be, by head (K,), and what the ball adds."""
    found = []
    for of_head, problem in zip(weights, heads.problems, strict=True):
        n_features, spec = problem.features.shape[1], problem.spec
        planes = _planes(of_head, problem) if isinstance(spec.loss, JointLoss) else of_head[np.newaxis]
        intercepts = planes[:, -1] if planes.shape[1] > n_features else np.zeros(len(planes))
        scores = _largest(planes[:, :n_features], intercepts, heads.box)
        norms = dual_norms(planes[:, :n_features], spec.transport_norm)
        found.append(2.0 * float((scores + spec.radius * norms).max()))
    return np.array(found)


@dataclass(frozen=True)
class _Question:
    vectors: dict[str, FloatArray]
    scalars: dict[str, bytes]
    risk: float


class Questions:
    """The latest questions of each run, of ``kept`` runs, in memory; not thread-safe."""

    def __init__(self, kept: int = _RUNS_KEPT) -> None:
        self._kept = kept
        self._by_run: OrderedDict[str, deque[_Question]] = OrderedDict()

    def check_nearness(
        self, run_id: str, message: Mapping[str, FloatArray], heads: Heads, limit: float, *, hidden: bool = False
    ) -> None:
        """Raise :class:`Refusal` where the question is nearer to an earlier one than the run's progress explains.

        ``hidden``: the coordinator is not told the risks.
        """
        asked = self._by_run.get(run_id)
        if not asked or limit == 0:
            return
        vectors, scalars = _parts(message)
        risks = [0.0] if hidden else [each.risk for each in asked]
        progress = max(max(risks) - min(risks), _LEAST_SPREAD * _doubled(float(heads.at_zero.sum())))
        alike = [each for each in asked if each.scalars == scalars and each.vectors.keys() == vectors.keys()]
        if not alike or not vectors:
            return
        steps = {name: vector - np.stack([each.vectors[name] for each in alike]) for name, vector in vectors.items()}
        moved = np.any([each.any(axis=(1, 2)) for each in steps.values()], axis=0)
        changed = np.max([_changes(each, heads.problems, heads.box) for each in steps.values()], axis=0)
        if (moved & (changed < limit * progress)).any():
            raise Refusal("question_refused", "the question is nearer to an earlier one than the run's progress")

    def note(self, run_id: str, message: Mapping[str, FloatArray], risk: FloatArray | None) -> None:
        """Keep a question that was answered with ``risk`` (K,)."""
        if "point" not in message or risk is None:
            return
        vectors, scalars = _parts(message)
        asked = self._by_run.setdefault(run_id, deque(maxlen=_QUESTIONS_KEPT))
        self._by_run.move_to_end(run_id)
        asked.append(_Question(vectors, scalars, float(risk.sum())))
        if len(self._by_run) > self._kept:
            self._by_run.popitem(last=False)


def _parts(message: Mapping[str, FloatArray]) -> tuple[dict[str, FloatArray], dict[str, bytes]]:
    vectors = {name: message[name] for name in _VECTORS if name in message}
    return vectors, {name: array.tobytes() for name, array in message.items() if name not in vectors}


def _changes(steps: FloatArray, problems: Sequence[SiteProblem], box: BoxSupport | None = None) -> FloatArray:
    """What the heads' risks can change by over each of n steps (n, K, D), summed over the heads: (n,).

    For any rows in the ``box``; None: [0, 1]^P.
    """
    total = np.zeros(len(steps))
    for head, problem in enumerate(problems):
        moving = np.flatnonzero(steps[:, head].any(axis=1))
        of_head, spec, n_features = steps[moving, head], problem.spec, problem.features.shape[1]
        if isinstance(spec.loss, JointLoss):
            total[moving] += [_joint_change(step, problem, box) for step in of_head]
            continue
        intercepts = of_head[:, -1] if spec.fit_intercept else np.zeros(len(of_head))
        scores = _largest(of_head[:, :n_features], intercepts, box)
        norms = dual_norms(of_head[:, :n_features], spec.transport_norm)
        steep = spec.loss.lipschitz if np.isfinite(spec.loss.lipschitz) else np.inf
        total[moving] += steep * (scores + spec.radius * norms)
    return total


def _largest(slopes: FloatArray, intercepts: FloatArray, box: BoxSupport | None) -> FloatArray:
    """``max_x |<x, s> + b|`` over a box, of slopes (n, P) and intercepts (n,): (n,)."""
    low, high = (0.0, 1.0) if box is None else (box.low, box.high)
    middle, half = (np.broadcast_to(each, slopes.shape[1:]) for each in ((low + high) / 2, (high - low) / 2))
    return np.asarray(np.abs(slopes @ middle + intercepts) + np.abs(slopes) @ half)


def _joint_change(step: FloatArray, problem: SiteProblem, box: BoxSupport | None) -> float:
    """The same of one step (D,) of all classes as one problem: no score moves further from another one."""
    planes = _planes(step, problem)
    pairs = (planes[:, np.newaxis] - planes).reshape(-1, planes.shape[1])
    return float(_largest(pairs[:, :-1], pairs[:, -1], box).max()) + problem.spec.radius * _apart(step, problem)
