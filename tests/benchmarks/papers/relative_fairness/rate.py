"""Rate of Scaff-PD-IA with full gradients on a strongly convex problem (Theorem 3): distance to the exact solution.

``python -m tests.benchmarks.papers.relative_fairness.rate``

Least squares of three clients whose curvatures lie within 1 +- 0.1, phi = 0.1, A = B = the simplex, for which the
condition of Theorem 3 holds. The steps follow the schedule of Assumption 8, begun at tau0 = 0.1 and gamma0 = 0.5, which
is more than the assumption allows: its 1 / (1200 M ||Lambda||) makes steps more than a hundred times shorter.
"""

from __future__ import annotations

import argparse

import numpy as np

from models.basics import FloatArray
from models.fairness.ambiguity_set import RelativeSet
from models.fairness.quadratic import QuadraticLosses, solve_relative
from models.losses.regression import Squared
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.methods.local_sgd.scaff_steps import convexity_report
from models.simulation.local_training import train_local

PHI, SPREAD, ROUNDS = 0.1, 0.1, (25, 50, 100, 200, 400)
PARAMETERS = {
    "alpha": 1 / 3, "beta": 1 / 3, "phi": PHI, "local_steps": 2.0, "strong_convexity": 1 - SPREAD,
    "smoothness": 1 + SPREAD, "tau0": 0.1, "gamma0": 0.5,
}
WANTED = -1.8


def problem(seed: int) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Rows of three clients with three weights."""
    random, sites = np.random.default_rng(seed), {}
    for g in range(3):
        turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
        features = np.sqrt(1.5 * random.uniform(1 - SPREAD, 1 + SPREAD, 3))[:, None] * turn
        sites[f"client-{g}"] = (features, features @ random.normal(size=3) + 0.3 * random.normal(size=3))
    return sites


def squared_distances(seed: int) -> list[float]:
    """``||theta_R - theta*||^2`` after each of :data:`ROUNDS`."""
    sites = problem(seed)
    rows = list(sites.values())
    quadratics = QuadraticLosses.of_squares([x for x, _ in rows], [y for _, y in rows], mean=True)
    exact = solve_relative(quadratics, RelativeSet.of_shares(3, PHI, 1 / 3, 1 / 3))
    objective, found = LinearObjective(Squared(), fit_intercept=False), []
    for rounds in ROUNDS:
        run = train_local(objective, sites, method="scaff-pd-ia", parameters=PARAMETERS, rounds=rounds)
        found.append(float(np.sum(np.square(run.weights - exact.point))))
    return found


def main() -> int:
    """Print distances and log-log slopes; 1 where a slope is above -1.8."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(convexity_report(PARAMETERS, RelativeSet.of_shares(3, PHI, 1 / 3, 1 / 3)))
    slopes = []
    for seed in range(3):
        errors = squared_distances(seed)
        slopes.append(float(np.polyfit(np.log(ROUNDS), np.log(errors), 1)[0]))
        text = ", ".join(f"{error:.1e} after {rounds}" for rounds, error in zip(ROUNDS, errors, strict=True))
        print(f"problem {seed}: slope {slopes[-1]:.2f} ({text})")
    return int(max(slopes) > WANTED)


if __name__ == "__main__":
    raise SystemExit(main())
