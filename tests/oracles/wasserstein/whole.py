"""Risk of the whole federation, ``max_{q in Q} sum_g q_g r_g(w)``, by the sites' bounds; a crude minimiser."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
from scipy.optimize import minimize

from tests.oracles.wasserstein.draw import Drawn
from tests.oracles.wasserstein.losses import Array
from tests.oracles.wasserstein.risk import Oracle, OracleRisk


class WholeOracle:
    """The federation's risk at any plane."""

    def __init__(self, drawn: Drawn) -> None:
        self._drawn, self._sites = drawn, [Oracle(site) for site in drawn.sites]
        self._mixtures = Mixtures(drawn.shares, drawn.mixture_norm, drawn.mixture_radius)

    def risk(self, plane: Array, intercept: float) -> OracleRisk:
        """Bounds at a plane, with a subgradient and the size of its terms."""
        found = [site.risk(plane, intercept) for site in self._sites]
        lows, highs = np.array([each.lower for each in found]), np.array([each.upper for each in found])
        (worst, lower), (_, upper) = self._mixtures.worst(lows), self._mixtures.worst(highs)
        gradient = worst @ np.array([each.gradient for each in found])
        return OracleRisk(lower, upper, 0.0, gradient, max(each.size for each in found))

    def tried(self, starts: list[tuple[Array, float]], steps: int) -> Iterator[tuple[OracleRisk, Array]]:
        """Risk at every plane that a descent from the starts comes to, with the plane, the intercept last."""
        drawn, seen = self._drawn, list[tuple[OracleRisk, Array]]()
        p = drawn.sites[0].features.shape[1]
        target = drawn.target_unit if drawn.loss.regression else 1.0
        units = np.append(np.full(p, target / drawn.unit), target)

        def judged(point: Array) -> tuple[float, Array]:
            whole = point * units
            if not drawn.fit_intercept:
                whole[p] = 0.0
            found = self.risk(whole[:p], float(whole[p]))
            seen.append((found, whole))
            slope = found.gradient * units
            slope[p] *= drawn.fit_intercept
            return found.upper / of_risk, slope / of_risk

        of_risk = max(self.risk(np.zeros(p), 0.0).upper, 1e-100)
        for plane, intercept in starts:
            start = np.append(plane, intercept) / units
            if judged(start)[0] < 1e12:
                minimize(judged, start, jac=True, method="L-BFGS-B", options={"maxfun": steps})
        yield from seen


class Mixtures:
    """Mixtures (G,) of a ball around the centre that can be the worst one, by enumeration; for few clients."""

    def __init__(self, centre: Array, norm: str, radius: float) -> None:
        self._centre, self._radius, n = centre, radius, centre.shape[0]
        self._corners, self._faces = centre[None], list[tuple[int, ...]]()
        if radius == 0 or n == 1:
            return
        if norm == "l2":
            self._faces = [face for size in range(1, n + 1) for face in combinations(range(n), size)]
            return
        signs = np.array(list(product((1.0, -1.0), repeat=n))) if norm == "l1" else np.vstack([np.eye(n), -np.eye(n)])
        walls, limits = np.vstack([signs, -np.eye(n)]), np.append(signs @ centre + radius, np.zeros(n))
        found = []
        for chosen in combinations(range(walls.shape[0]), n - 1):
            system = np.vstack([walls[list(chosen)], np.ones(n)])
            if abs(np.linalg.det(system)) > 1e-9:
                found.append(np.linalg.solve(system, np.append(limits[list(chosen)], 1.0)))
        inside = [corner for corner in found if (walls @ corner <= limits + 1e-12).all()]
        self._corners = np.array(inside)

    def worst(self, risks: Array) -> tuple[Array, float]:
        """The mixture that is worst for risks (G,), and how bad it is."""
        members = np.vstack([self._corners, *(self._on_face(list(face), risks) for face in self._faces)])
        at = int(np.argmax(members @ risks))
        return members[at], float(members[at] @ risks)

    def _on_face(self, face: list[int], risks: Array) -> Array:
        """Where a Euclidean ball lets the clients of a face go farthest for the risks; the centre where it does not."""
        start = np.zeros_like(self._centre)
        start[face] = self._centre[face] + (1.0 - self._centre[face].sum()) / len(face)
        rest = self._radius**2 - float(((start - self._centre) ** 2).sum())
        aim = np.zeros_like(start)
        aim[face] = risks[face] - risks[face].mean()
        size = float(np.abs(aim).max())
        if size > 0:
            aim /= size
            # Risks that differ in their last digits alone: what rounding left of the mean is taken off again.
            aim[face] -= aim[face].mean()
            aim /= np.sqrt((aim**2).sum()) or 1.0
        member = start + np.sqrt(max(rest, 0.0)) * aim
        return (member if rest >= -1e-12 and (member >= -1e-12).all() else self._centre)[None]
