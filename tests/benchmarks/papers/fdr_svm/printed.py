"""The paper's two algorithms as printed, with what is wrong in them, and the values it prints. No certificates here.

Sources: FDR-SVM paper, Algorithms 1 and 2, section 6 and appendix C; the authors' published code where the text is
silent. The mended forms are in ``models``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.problem import RobustSpec, SiteProblem
from models.prox.hinge import robust_prox

ROUNDS = (5, 10, 20, 60, 100, 140, 180, 220)
ROUNDS_SM = (100, 140, 180, 220)
_TIED = 1e-12
"""Share by which rates differ that are one: that of a flip with a move, just below the move's, counts as below it."""

PRINTED_TABLE_1 = {
    "Central (DR-SVM)": ((0.950, 0.011), (0.964, 0.013), (0.773, 0.052), (0.792, 0.017), (0.904, 0.025), (0.938, 0.005), (0.845, 0.027)),  # noqa: E501 - a row of the table
    "FedSGD": ((0.950, 0.011), (0.914, 0.019), (0.765, 0.045), (0.624, 0.161), (0.752, 0.204), (0.856, 0.013), (0.808, 0.019)),  # noqa: E501 - a row of the table
    "FedAvg": ((0.950, 0.011), (0.929, 0.016), (0.788, 0.051), (0.787, 0.024), (0.816, 0.132), (0.936, 0.006), (0.847, 0.027)),  # noqa: E501 - a row of the table
    "FedProx": ((0.950, 0.011), (0.929, 0.019), (0.780, 0.075), (0.782, 0.052), (0.735, 0.210), (0.931, 0.006), (0.847, 0.028)),  # noqa: E501 - a row of the table
    "FedDRO (KL)": ((0.945, 0.011), (0.925, 0.019), (0.738, 0.036), (0.783, 0.019), (0.864, 0.025), (0.859, 0.009), (0.718, 0.001)),  # noqa: E501 - a row of the table
    "SM": ((0.855, 0.017), (0.957, 0.015), (0.769, 0.054), (0.797, 0.023), (0.920, 0.023), (0.936, 0.006), (0.840, 0.031)),  # noqa: E501 - a row of the table
    "ADMM": ((0.950, 0.011), (0.967, 0.014), (0.792, 0.047), (0.798, 0.017), (0.911, 0.021), (0.938, 0.005), (0.848, 0.027)),  # noqa: E501 - a row of the table
    "ADMM-SC": ((0.950, 0.011), (0.966, 0.014), (0.765, 0.048), (0.797, 0.019), (0.902, 0.026), (0.938, 0.005), (0.846, 0.027)),  # noqa: E501 - a row of the table
    "ADMM-REG": ((0.951, 0.012), (0.964, 0.010), (0.784, 0.051), (0.800, 0.020), (0.912, 0.016), (0.938, 0.004), (0.850, 0.022)),  # noqa: E501 - a row of the table
}
"""F-1 mean and deviation by model; the sets in the order Banknote, BCW, CB, MM, Parkinson's, Rice, UKM.

ADMM-REG stands in the paper's first version only: peak F-1 over its rho and rounds.
"""

PRINTED_TABLE_5 = {
    "FedSGD": (False, True, True, True, True, True, True),
    "FedAvg": (False, True, False, True, True, False, False),
    "FedProx": (False, True, False, True, True, True, False),
    "FedDRO (KL)": (True, True, True, True, True, True, True),
}
"""Whether the paper's test rejects that its best model is no better than the rival, at 0.05; sets as above."""

PRINTED_TABLE_2 = {
    "Central (DR-SVM)": ((0.939, 0.004), (0.930, 0.012), (0.903, 0.012), (0.901, 0.017), (0.908, 0.011)),
    "FedSGD": ((0.886, 0.008), (0.887, 0.007), (0.675, 0.014), (0.685, 0.030), (0.861, 0.009)),
    "FedAvg": ((0.923, 0.006), (0.919, 0.010), (0.866, 0.018), (0.845, 0.059), (0.894, 0.017)),
    "FedProx": ((0.926, 0.010), (0.919, 0.011), (0.862, 0.019), (0.842, 0.058), (0.894, 0.019)),
    "FedDRO (KL)": ((0.913, 0.007), (0.914, 0.010), (0.858, 0.014), (0.835, 0.052), (0.883, 0.012)),
    "SM": ((0.942, 0.006), (0.930, 0.010), (0.883, 0.022), (0.879, 0.035), (0.894, 0.015)),
    "ADMM": ((0.918, 0.010), (0.910, 0.028), (0.868, 0.018), (0.855, 0.025), (0.903, 0.011)),
    "ADMM-SC": ((0.817, 0.009), (0.819, 0.011), (0.638, 0.020), (0.627, 0.028), (0.806, 0.013)),
}
"""F-1 mean and deviation by model; settings nominal, client imbalance, class imbalance, both, noisy labels."""

FEDERATED = ("FedSGD", "FedAvg", "FedProx", "FedDRO (KL)", "SM", "ADMM", "ADMM-SC")


@dataclass(frozen=True)
class Site:
    """Rows of a site with its radius and label flip cost."""

    features: FloatArray
    labels: FloatArray
    radius: float
    label_flip_cost: float


def sm_points(sites: Sequence[Site], step: float, power: float, rounds: int) -> Iterator[FloatArray]:
    """Algorithm 1: the point after each round; step ``step / t^power`` (1 in the text, 0.5 in the code)."""
    weights = np.zeros(sites[0].features.shape[1])
    for t in range(1, rounds + 1):
        slope = np.mean([printed_subgradient(weights, site) for site in sites], axis=0)
        weights = weights - step / t**power * slope
        yield weights


def admm_points(sites: Sequence[Site], rho: float, tau: float, rounds: int) -> Iterator[FloatArray]:
    """Algorithm 2 on the unbounded support with transport norm linf: the consensus point after each round."""
    problems = [
        SiteProblem(
            site.features, site.labels, RobustSpec(site.radius, site.label_flip_cost, "linf", fit_intercept=False)
        )
        for site in sites
    ]
    shape = (len(sites), sites[0].features.shape[1])
    weights, local, dual = np.zeros(shape[1]), np.zeros(shape), np.ones(shape)
    for t in range(rounds):
        for g, problem in enumerate(problems):
            start = local[g] if t else None
            local[g] = robust_prox(problem, weights - dual[g], rho, ridge=tau, warm_start=start).point
        weights = (local + dual).mean(axis=0)
        dual += local - weights
        yield weights


@dataclass(frozen=True)
class PrintedAtoms:
    """What the printed LP picks: where each row is put (N, P), the flipped share of each (N,), what the LP credits.

    ``apart``: the one row, if there is one, whose flipped share is put elsewhere, and where (P,).
    """

    points: FloatArray
    flipped: FloatArray
    credited: float
    apart: tuple[int, FloatArray] | None = None


def printed_atoms(weights: FloatArray, site: Site) -> PrintedAtoms:
    """Solve the printed LP (eq. 7) on the box [0, 1] with transport norm linf.

    The LP credits a move q of the features with the loss that the move -q would bring, and leaves out hinge's zero
    piece. It is an LP with one budget: what a row is credited for its share of it is the concave hull of two functions,
    of the row under its label and of the row flipped, moved further and further. So the budget goes along the hulls,
    always where the rate is highest; it runs out within one row at most, on the way along a move or from one label to
    the other.
    """
    rows = _PrintedRows(weights, site)
    level, other = np.zeros(rows.count), np.zeros(rows.count, dtype=bool)
    move_rate = np.asarray((rows.rooms > 0) @ rows.size)
    flip_rate = rows.flip_bounds(float(move_rate.max()))
    flip_to = np.where(flip_rate == rows.flip_alone, 0.0, np.nan)  # not a number: the rate is a bound of it yet
    share, apart, budget = np.zeros(rows.count), None, rows.count * site.radius
    while budget > 1e-12:
        i, j = int(np.argmax(move_rate)), int(np.argmax(flip_rate))
        rate = max(move_rate[i], flip_rate[j])
        if rate <= 0:
            break
        if move_rate[i] > flip_rate[j]:
            row, length = i, min(budget, rows.next_stop(i, level[i], other[i]) - level[i])
            level[i] += length
            budget -= length
        elif np.isnan(flip_to[j]):
            flip_rate[j], flip_to[j] = rows.flip_rate(j, level[j], other[j])
            continue
        else:
            row = j
            length = rows.cost(flip_to[j], not other[j]) - rows.cost(level[j], other[j])
            part, goal = min(1.0, budget / length), flip_to[j]
            budget -= part * length
            if part < 1.0:
                share[j] = 1.0 - part if other[j] else part
                levels = (goal, level[j]) if other[j] else (level[j], goal)
                level[j], other[j], apart = levels[0], False, (j, levels[1])
                break
            level[j], other[j] = goal, not other[j]
        move_rate[row] = rows.move_rate(row, level[row], other[row])
        flip_rate[row], flip_to[row] = (1.0 - _TIED) * rate, np.nan  # on a hull, what comes next is credited less
    share[other] = 1.0
    moved = np.minimum(rows.rooms, level[:, None])
    side = np.sign(rows.push)
    if other.any():
        moved[other], side[other] = np.minimum(1.0 - rows.rooms[other], level[other, None]), -side[other]
    points = site.features - side * moved
    gained = (2.0 * share - 1.0) * rows.margins
    if apart is None:
        return PrintedAtoms(points, share, float(np.mean(gained + moved @ rows.size)))
    row, far = apart[0], np.minimum(1.0 - rows.rooms[apart[0]], apart[1])
    found = moved @ rows.size
    found[row] = (1.0 - share[row]) * found[row] + share[row] * (far @ rows.size)
    place = site.features[row] + np.sign(rows.push[row]) * far
    same = not level[row] and not apart[1]
    return PrintedAtoms(points, share, float(np.mean(gained + found)), None if same else (row, place))


class _PrintedRows:
    """Rows as the printed LP sees them: the credited direction ``push`` and the ``rooms`` (N, P) to the wall in it.

    A flipped row is pushed the other way, where its rooms are the rest of the box.
    """

    def __init__(self, weights: FloatArray, site: Site) -> None:
        self.count, self.flip_cost = site.labels.shape[0], site.label_flip_cost
        self.push, self.size = -site.labels[:, None] * weights, np.abs(weights)
        self.rooms = np.where(self.push > 0, site.features, 1.0 - site.features)
        self.margins = site.labels * (site.features @ weights)
        self.flip_alone = 2.0 * self.margins / self.flip_cost

    def cost(self, level: float, flipped: bool) -> float:
        """What a row spends that is moved so far."""
        return level + (self.flip_cost if flipped else 0.0)

    def move_rate(self, row: int, level: float, flipped: bool) -> float:
        """Credit of one row for a unit of moving further."""
        return float((self._rooms(row, flipped) > level) @ self.size)

    def next_stop(self, row: int, level: float, flipped: bool) -> float:
        """Level of the next wall that a feature with a weight meets."""
        rooms = self._rooms(row, flipped)
        return float(rooms[(rooms > level) & (self.size > 0)].min())

    def flip_bounds(self, fastest: float) -> FloatArray:
        """What giving the other label is credited a unit at most, (N,), in rows that are neither moved nor flipped.

        ``flip_alone`` where that is at least what any move of the flipped row is credited: no move goes with it. Else
        the rate lies between the two and does not reach that of the move. ``fastest``: the rate of the fastest move
        under the labels; where that is a move of all features, nobody needs to know which features can be moved.
        """
        moves = np.full(self.count, (1.0 - _TIED) * float(self.size.sum()))
        if fastest < moves[0]:
            moves = (1.0 - _TIED) * ((self.rooms < 1.0) @ self.size)
        return np.maximum(moves, self.flip_alone)

    def flip_rate(self, row: int, level: float, flipped: bool) -> tuple[float, float]:
        """The best rate of giving a row its other label, moved as far as is best then; (0, 0) where nothing is won."""
        stops = np.concatenate([[0.0], np.sort(self._rooms(row, not flipped)[self.size > 0])])
        won = self._credit(row, stops, not flipped) - self._credit(row, np.array([level]), flipped)
        spent = self.cost(0.0, not flipped) + stops - self.cost(level, flipped)
        rates = np.divide(won, spent, out=np.zeros_like(won), where=(spent > 0) & (won > 0))
        best = int(np.argmax(rates))
        return float(rates[best]), float(stops[best])

    def _rooms(self, row: int, flipped: bool) -> FloatArray:
        return np.asarray(1.0 - self.rooms[row] if flipped else self.rooms[row])

    def _credit(self, row: int, levels: FloatArray, flipped: bool) -> FloatArray:
        moved = np.minimum(self._rooms(row, flipped)[None], levels[:, None]) @ self.size
        return np.asarray(moved + (self.margins[row] if flipped else -self.margins[row]))


def printed_subgradient(weights: FloatArray, site: Site) -> FloatArray:
    """Subgradient at the distribution that the printed LP picks: of every atom whose hinge loss is above zero."""
    atoms, y = printed_atoms(weights, site), site.labels
    scores = y * (atoms.points @ weights)
    kept = np.where(1.0 - scores > 0, 1.0 - atoms.flipped, 0.0)
    turned = np.where(1.0 + scores > 0, atoms.flipped, 0.0)
    if atoms.apart is None:
        return np.asarray(((turned - kept) * y) @ atoms.points / y.shape[0])
    row, place = atoms.apart
    turned[row] = 0.0
    slope = ((turned - kept) * y) @ atoms.points
    if 1.0 + y[row] * float(place @ weights) > 0:
        slope = slope + atoms.flipped[row] * y[row] * place
    return np.asarray(slope / y.shape[0])
