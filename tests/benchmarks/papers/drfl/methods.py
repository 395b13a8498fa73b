r"""The five methods, all as cases of one problem, ``min_w max_{q in Q} sum_s q_s r_s(w)``.

- DRFL: r_s the worst risk over client s's ball, Q the l1 ball of radius theta around the clients' shares of the rows;
- AFL: radius 0, theta tuned (Mohri et al. 2019, as section 4.1 places it);
- DRFA: radius 0, Q the whole simplex (Deng et al. 2020);
- WAFL: one ball around the mixture of the clients. With shares by rows the mixture is the pooled rows, so it is one
  client that has them all, solved exactly and not by the approximation of Nguyen et al. 2022;
- standard: radius 0, theta 0.

The paper's planes go through the origin of the scaled features. All five methods have an intercept here, with infinite
transport cost: it is left out of every norm. Transport norm l1; hinge on a box, or Huber with threshold 1.35 on
unbounded features. The box is [-1, 1], made wider where the noise in client 1's training rows leaves it: a support must
hold the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from models.basics import FloatArray
from models.centralised.bundle import train_at_hand
from models.geometry.supports import BoxSupport
from models.losses.classification import Hinge
from models.losses.regression import Huber
from models.problem import RobustSpec, SiteProblem
from models.site_ambiguity.ball import MixtureBall
from tests.benchmarks.papers.drfl.huber_fits import HuberFits
from tests.benchmarks.papers.drfl.linear_program import HingeProgram
from tests.benchmarks.papers.drfl.settings import THRESHOLD, Fitted, Grid, Setting
from tests.benchmarks.papers.drfl.tables import N_CLIENTS, Rows, Task

FIT_GAP = 5e-5
"""Of a Huber fit that is only compared; one that was made for another setting serves within twice that."""
WHOLE = 2.0
"""An l1 radius that reaches the whole simplex from anywhere in it."""


Settings = Callable[[Grid], Iterator[Setting]]
METHODS: dict[str, Settings] = {
    "DRFL": lambda grid: (Setting(r, t, k) for r, t, k in product(grid.radii, grid.thetas, grid.flip_costs)),
    "DRFA": lambda grid: iter([Setting(theta=WHOLE)]),
    "AFL": lambda grid: (Setting(theta=t) for t in grid.thetas),
    "WAFL": lambda grid: (Setting(r, 0.0, k) for r, k in product(grid.radii, grid.flip_costs)),
    "standard": lambda grid: iter([Setting()]),
}
RIVALS = tuple(name for name in METHODS if name != "DRFL")


def problems(rows: Rows, method: str, setting: Setting, task: Task) -> tuple[dict[str, SiteProblem], FloatArray]:
    """The sites of a method and their shares."""
    box = None
    if task == "classification":
        low, high = rows.features.min(axis=0), rows.features.max(axis=0)
        box = BoxSupport(np.minimum(low, -1.0), np.maximum(high, 1.0))
    loss = Hinge() if task == "classification" else Huber(THRESHOLD)
    spec = RobustSpec(setting.radius, setting.label_flip_cost, "l1", support=box, loss=loss)
    groups = [np.ones_like(rows.client, dtype=bool)] if method == "WAFL" else [
        rows.client == s for s in range(N_CLIENTS)]
    sites = {f"client-{s + 1}": SiteProblem(rows.features[own], rows.labels[own], spec) for s, own in enumerate(groups)}
    counts = np.array([own.sum() for own in groups], dtype=np.float64)
    return sites, counts / counts.sum()


def fit(rows: Rows, method: str, setting: Setting, task: Task, gap: float) -> Fitted:
    """A certified fit by Ballast."""
    sites, shares = problems(rows, method, setting, task)
    found = train_at_hand(
        sites, weights=dict(zip(sites, shares.tolist(), strict=True)), mixture=MixtureBall("l1", setting.theta), gap=gap
    )
    return Fitted(found.weights, found.certificate.upper, found.certificate.gap)


def tuner(rows: Rows, method: str, task: Task) -> Callable[[Setting], Fitted]:
    """Fits that are only compared: the linear program for the hinge, a certified gap of 1e-4 for Huber."""
    if task == "regression":
        return HuberFits(lambda setting: fit(rows, method, setting, task, FIT_GAP), 2 * FIT_GAP)
    sites, shares = problems(rows, method, Setting(), task)
    program = HingeProgram(list(sites.values()), shares)

    def solved(setting: Setting) -> Fitted:
        found = program.solve(setting.radius, setting.label_flip_cost, setting.theta)
        return Fitted(found.weights, found.value, 0.0)

    return solved


def score(weights: FloatArray, rows: Rows, task: Task) -> float:
    """Mean over the clients of the accuracy (a score of 0 counts as positive) or of minus the mean squared error."""
    found = rows.features @ weights[:-1] + weights[-1]
    if task == "classification":
        right = (np.where(found < 0, -1.0, 1.0) == rows.labels).astype(np.float64)
    else:
        right = -np.square(found - rows.labels)
    return float(np.mean([right[rows.client == s].mean() for s in range(N_CLIENTS)]))
