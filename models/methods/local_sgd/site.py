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

from models.basics import Arrays, FloatArray
from models.methods.local_sgd.objectives.base import MeanLoss
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.methods.row_account import Accounted, RowAccount
from models.methods.site_answers import cut_answer, cut_shapes
from models.problem import SiteProblem
from models.worst_case.risk import RiskCut

Rows = tuple[FloatArray, FloatArray]


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
    ``one_step``: a single step, whatever the parameters say (FedSGD).
    """

    objective: MeanLoss | None = None
    one_step: bool = False

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact loss and gradient at the point, and where local steps from there end."""
        objective, point = self.descended(problem), message["point"]
        loss, gradient = objective.loss_and_gradient(point, problem.features, problem.labels)
        if message.get("own_control", 0.0):
            own = gradient + parameters.get("ridge", 0.0) * point
            message = {**message, "correction": message["correction"] - own}
        ended, snapshot = self._steps(objective, problem, message, parameters)
        return {**cut_answer(RiskCut(loss, loss, gradient, 0.0)), "local_point": ended, "snapshot": snapshot}

    def accounted(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> Accounted:
        """The answer with the rows of a linear model's gradient; where steps end is accounted for by none."""
        answer, objective = self.answer(problem, message, parameters), self.descended(problem)
        if type(self) is not LocalStepsSite or type(objective) is not LinearObjective:
            return Accounted(answer, RowAccount((), False))
        _, slopes = objective.row_losses(message["point"], problem.features, problem.labels)
        account = RowAccount((slopes / slopes.shape[0],))
        return Accounted(answer, account if float(message["step_size"]) == 0.0 else account.partial())

    def shapes(self, dimension: int, n_swings: int = 0) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer; losses without a ball have no swings."""
        return {**cut_shapes(dimension), "local_point": (dimension,), "snapshot": (dimension,)}

    def descended(self, problem: SiteProblem) -> MeanLoss:
        """What the steps descend on."""
        return self.objective or LinearObjective(problem.spec.loss, problem.spec.fit_intercept)

    def _steps(
        self, objective: MeanLoss, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]
    ) -> tuple[FloatArray, FloatArray]:
        point, step_size = message["point"], float(message["step_size"])
        if step_size == 0.0:
            return point, point
        random = np.random.default_rng(int(message["draw"]))
        proximal, ridge = parameters.get("proximal", 0.0), parameters.get("ridge", 0.0)
        taken, snapshot, wanted = point, point, int(message["snapshot_step"])
        for step, (features, labels) in enumerate(self._batches(problem, parameters, random), start=1):
            _, gradient = objective.loss_and_gradient(taken, features, labels, random)
            pull = message["correction"] + proximal * (taken - point) + ridge * taken
            taken = taken - step_size * (gradient + pull)
            snapshot = taken if step <= wanted else snapshot
        return taken, snapshot

    def _batches(
        self, problem: SiteProblem, parameters: Mapping[str, float], random: np.random.Generator
    ) -> Iterator[Rows]:
        """Batches of a share of the rows: each epoch goes through all rows once, in a drawn order.

        None has fewer than ``least_rows`` rows (1 where not given), which a site sets and no server can: the step of a
        handful would tell of single ones.
        """
        count, least = problem.features.shape[0], int(parameters.get("least_rows", 1))
        size = max(1, least, round(parameters.get("batch", 1.0) * count))
        starts = list(range(0, max(count - least, 0) + 1, size))
        steps = 1 if self.one_step else int(parameters.get("local_steps", 0))
        left = steps or int(parameters.get("epochs", 1)) * len(starts)
        while left:
            features, labels = problem.features, problem.labels
            if size < count:
                order = random.permutation(count)  # gathered once an epoch: a batch is then a view
                features, labels = features[order], labels[order]
            for start in starts[:left]:
                end = None if start == starts[-1] else start + size
                yield features[start:end], labels[start:end]
            left -= min(left, len(starts))
