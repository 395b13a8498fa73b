r"""Site half of all methods that take gradient steps at the site: the exact loss where the server stands, then steps.

    u_0 = point,   u_{j+1} = u_j - step_size (grad f(u_j; batch_j) + correction + proximal (u_j - point) + ridge u_j)

The answer has the exact mean loss and gradient at ``point`` over all rows (a cut of the loss, where it is convex) and
where the steps ended. With ``step_size`` 0 nothing is stepped. Batches are drawn from ``draw``, a number in the
message, so that a repeated message gets the same answer and the site keeps nothing between rounds.

One such half serves FedSGD, FedAvg, FedProx, q-FedAvg, SCAFFOLD and its kin (the correction is their control variate),
DRFA and DRFLM: what differs is in their server halves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import Arrays, FloatArray
from models.methods.answer_arrays import cut_answer, cut_shapes
from models.methods.guard import MOVES, Guard, asked, moved
from models.methods.local_sgd.objectives.base import MeanLoss
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.methods.local_sgd.objectives.softmax import SoftmaxObjective
from models.methods.row_account import Accounted, RowAccount
from models.problem import SiteProblem
from models.worst_case.risk import RiskCut

_ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Share of its terms' sizes by which the rounding of a height may be off."""


@dataclass(frozen=True)
class LocalStepsSite:
    """Message: ``point`` (D,), ``correction`` (D,), and scalars ``step_size``, ``draw``, ``snapshot_step``.

    With ``own_control`` () not 0 the correction is less the site's own gradient at the point, the ridge's included: so
    SCAFFOLD's control variate needs nobody to know the gradient of a single site.

    Answer: ``risk`` () and ``slope`` (D,), mean loss and gradient at the point over all rows, as an exact cut
    (``cut_height`` () is the risk, ``norm_weight`` () 0);
    ``local_point`` (D,) after the steps, ``snapshot`` (D,) after ``snapshot_step`` of them, or after
    all where they are fewer.

    ``parameters`` used: ``local_steps`` (0: count by ``epochs``), ``epochs``, ``batch`` (share of the rows in (0, 1]),
    ``proximal``, ``ridge``. ``objective`` None: the linear model with the problem's loss.
    ``one_step``: a single step, whatever the parameters say (FedSGD). ``tells_cut`` False: an answer has the risk alone
    of the cut, and no gradient is worked out that no step needs (a simulation that keeps no evidence).
    """

    objective: MeanLoss | None = None
    one_step: bool = False
    tells_cut: bool = True

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact loss and gradient at the point, and where local steps from there end."""
        if not (self.tells_cut or bool(message.get("own_control", 0.0))):
            objective = self.descended(problem)
            risk = np.array(objective.loss(message["point"], problem.features, problem.labels))
            ended, snapshot = self._steps(
                objective, problem, message, parameters, np.zeros_like(message["point"]), None
            )
            return {"risk": risk, "local_point": ended, "snapshot": snapshot}
        return self._answered(problem, message, parameters, np.zeros_like(message["point"]))[0]

    def accounted(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], guard: Guard | None = None
    ) -> Accounted:
        """The answer of a linear or softmax model with the rows of its gradient and steps; of others none are known.

        Where a guard lets another answer leave, its gradients are those beside the points that they are of: that at the
        point is a cut of the loss as well, restated at the point, and the steps are steps of the same length.
        """
        nowhere = np.zeros_like(message["point"])
        if type(self) is not LocalStepsSite or not _has_rows(self.descended(problem)):
            return Accounted(self.answer(problem, message, parameters), RowAccount((), False))

        def candidate(number: int, random: np.random.Generator) -> tuple[dict[str, FloatArray], list[FloatArray]]:
            if number > MOVES:
                return self._still(problem, message), [np.zeros(problem.labels.shape[0])]
            aside = moved(message["point"], number, random) - message["point"] if number else nowhere
            return self._answered(problem, message, parameters, aside)

        if guard is None:
            answer, rows = candidate(0, np.random.default_rng(0))
        else:
            numbers = np.array([parameters[name] for name in sorted(parameters)])
            question = asked(problem, *(message[name] for name in sorted(message)), numbers)
            answer, rows = guard.choose(question, candidate, lambda found: found[1])
        return Accounted(answer, RowAccount(tuple(rows)))

    def _answered(
        self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float], aside: FloatArray
    ) -> tuple[dict[str, FloatArray], list[FloatArray]]:
        """Answer with gradients taken ``aside`` (D,) of where they are due; the rows of all, for a linear model."""
        objective, point, features, labels = self.descended(problem), message["point"], problem.features, problem.labels
        loss, gradient = objective.loss_and_gradient(point, features, labels)
        rows, height = list[FloatArray](), loss
        if aside.any():
            there, gradient = objective.loss_and_gradient(point + aside, features, labels)
            height = min(there - float(gradient @ aside), loss)
            height -= _ROUNDING * (abs(there) + float(np.abs(gradient) @ np.abs(aside)))
        slopes = _row_slopes(objective, point + aside, features, labels)
        if slopes is not None:
            rows += _vectors(slopes / labels.shape[0])
        controlled = bool(message.get("own_control", 0.0))
        if controlled:
            own = gradient + parameters.get("ridge", 0.0) * point
            message = {**message, "correction": message["correction"] - own}
        path = None if slopes is None else _Path(slopes / labels.shape[0], controlled)
        ended, snapshot = self._steps(objective, problem, message, parameters, aside, path)
        answer = {**cut_answer(RiskCut(loss, height, gradient, 0.0)), "local_point": ended, "snapshot": snapshot}
        return answer, [*rows, *(path.ends if path is not None else [])]

    def _still(self, problem: SiteProblem, message: Arrays) -> dict[str, FloatArray]:
        """Answer of one who tells the loss and no more."""
        point = message["point"]
        loss = self.descended(problem).loss_and_gradient(point, problem.features, problem.labels)[0]
        cut = cut_answer(RiskCut(loss, 0.0, np.zeros_like(point), 0.0))
        return {**cut, "local_point": point, "snapshot": point}

    def shapes(self, dimension: int, n_swings: int = 0) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer; losses without a ball have no swings."""
        return {**cut_shapes(dimension), "local_point": (dimension,), "snapshot": (dimension,)}

    def descended(self, problem: SiteProblem) -> MeanLoss:
        """What the steps descend on."""
        return self.objective or LinearObjective(problem.spec.loss, problem.spec.fit_intercept)

    def _steps(
        self, objective: MeanLoss, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float],
        aside: FloatArray, path: _Path | None,
    ) -> tuple[FloatArray, FloatArray]:
        point, step_size = message["point"], float(message["step_size"])
        if step_size == 0.0:
            return point, point
        random = np.random.default_rng(int(message["draw"]))
        proximal, ridge = parameters.get("proximal", 0.0), parameters.get("ridge", 0.0)
        taken, snapshot, wanted = point, point, int(message["snapshot_step"])
        for step, chosen in enumerate(self._batches(problem, parameters, random), start=1):
            features, labels = problem.features[chosen], problem.labels[chosen]
            slopes = None if path is None else _row_slopes(objective, taken + aside, features, labels)
            if path is not None and slopes is not None:
                path.step(chosen, slopes, step_size * (proximal + ridge), kept=step == wanted)
            _, gradient = objective.loss_and_gradient(taken + aside, features, labels, random)
            pull = message["correction"] + proximal * (taken - point) + ridge * taken
            taken = taken - step_size * (gradient + pull)
            snapshot = taken if step <= wanted else snapshot
        return taken, snapshot

    def steps(self, count: int, parameters: Mapping[str, float]) -> tuple[int, int]:
        """How many steps the parameters ask for over so many rows, and the rows of a batch."""
        size = max(1, int(parameters.get("least_rows", 1)), round(parameters.get("batch", 1.0) * count))
        steps = 1 if self.one_step else int(parameters.get("local_steps", 0))
        return steps or int(parameters.get("epochs", 1)) * len(_starts(count, size, parameters)), size

    def _batches(
        self, problem: SiteProblem, parameters: Mapping[str, float], random: np.random.Generator
    ) -> Iterator[slice | NDArray[np.intp]]:
        """Rows of batches of a share of the rows: each epoch goes through all rows once, in a drawn order.

        None has fewer than ``least_rows`` rows (1 where not given), which a site sets and no server can: the step of a
        handful would tell of single ones.
        """
        count = problem.features.shape[0]
        left, size = self.steps(count, parameters)
        starts = _starts(count, size, parameters)
        while left:
            order = random.permutation(count) if size < count else None
            for start in starts[:left]:
                part = slice(start, None if start == starts[-1] else start + size)
                yield part if order is None else order[part]
            left -= min(left, len(starts))


def _starts(count: int, size: int, parameters: Mapping[str, float]) -> range:
    """Where the batches of an epoch begin: none has fewer than ``least_rows`` rows."""
    return range(0, max(count - int(parameters.get("least_rows", 1)), 0) + 1, size)


def _has_rows(objective: MeanLoss) -> bool:
    """Whether a model's gradient is made of sums over the rows whose coefficients are known."""
    return type(objective) in (LinearObjective, SoftmaxObjective)


def _row_slopes(
    objective: MeanLoss, point: FloatArray, features: FloatArray, labels: FloatArray
) -> FloatArray | None:
    """Slopes of the rows' losses in their score (N,), or scores (N, C); None where they do not make the gradient."""
    if type(objective) is LinearObjective:
        return objective.row_losses(point, features, labels)[1]
    return objective.row_slopes(point, features, labels) if type(objective) is SoftmaxObjective else None


def _vectors(coefficients: FloatArray) -> list[FloatArray]:
    """The coefficients (N,) of each sum over the rows: one, or one a class."""
    return [coefficients] if coefficients.ndim == 1 else list(coefficients.T)


class _Path:
    """Coefficients (N,), or (N, C), of the rows in the sum of the steps' gradients, which says where they end.

    ``(point - local_point) / step_size``, but for what is known without the rows. Sums over the steps, and of batches
    of n rows n / N of them: who asks knows how many there are of both, so what is left between two such sums is a
    difference that anybody can make.
    """

    def __init__(self, own: FloatArray, controlled: bool) -> None:
        """``own`` are those of the site's gradient at the point; ``controlled``: each step takes it off."""
        self._own = own if controlled else np.zeros_like(own)
        self._now, self._snapshot = np.zeros_like(own), np.zeros_like(own)
        self._steps = self._kept = 0
        self._share = 0.0

    def step(self, chosen: slice | NDArray[np.intp], slopes: FloatArray, pull: float, *, kept: bool) -> None:
        """One step on the ``chosen`` rows, ``slopes`` those of their losses in the score; ``pull`` of one step."""
        self._now = (1.0 - pull) * self._now - self._own
        self._now[chosen] += slopes / slopes.shape[0]
        self._share = self._share or slopes.shape[0] / self._own.shape[0]
        self._steps += 1
        if kept:
            self._snapshot, self._kept = self._share * self._now, self._steps

    @property
    def ends(self) -> list[FloatArray]:
        """Of the last step, and of the snapshot where that is another; of several steps their mean, too.

        The mean has the size of a gradient, so that between it and gradients are differences that anybody can make.
        """
        ended = [(self._share * self._now, self._steps)] if self._steps else []
        ended += [(self._snapshot, self._kept)] if 0 < self._kept < self._steps else []
        sums = [each for end, _ in ended for each in _vectors(end)]
        return sums + [each for end, steps in ended if steps > 1 for each in _vectors(end / steps)]
