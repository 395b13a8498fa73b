"""Figures 1 and 2 of the paper on relative fairness, which illustrate the idea: a fair point, and the set Lambda.

    python -m tests.benchmarks.papers.relative_fairness.figures12 [--json FILE] [--out DIR]

Figure 1 (appendix A): eight points of the plane; the point whose largest distance to them is least, and the point whose
largest and least distance differ least; bars of the distances from each. Both are found on a grid of the square around
the points and then by a simplex search. Figure 2: Lambda_phi(A, B) of three clients, A = B = the simplex capped at
1 / (0.5 n), for phi 0, 0.2 and 0.5.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from scipy.optimize import minimize

from models.basics import FloatArray
from models.fairness.ambiguity_set import RelativeSet
from tests.benchmarks.papers.drfl.plots import save
from tests.benchmarks.papers.fdr_svm.command import markdown, write_json

_HALF = 1.0 / np.sqrt(2.0)
POINTS = np.array(
    [(1, 0), (-1, 0), (_HALF, _HALF / 2), (-_HALF, _HALF / 2), (0, 0.5), (_HALF, -_HALF), (-_HALF, -_HALF), (0, -1)]
)
PRINTED_SUMS = {"least largest distance": 7.081, "least difference": 7.105}
PHIS, SHARE, N_CLIENTS = (0.0, 0.2, 0.5), 0.5, 3
_GRID = 401


def distances(point: FloatArray) -> FloatArray:
    """From a point (2,), or points (K, 2), to the eight: (8,) or (K, 8)."""
    return np.asarray(np.linalg.norm(np.asarray(point)[..., None, :] - POINTS, axis=-1))


OBJECTIVES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "least largest distance": lambda point: np.asarray(distances(point).max(axis=-1)),
    "least difference": lambda point: np.asarray(distances(point).max(axis=-1) - distances(point).min(axis=-1)),
}


def solve(name: str) -> FloatArray:
    """The best point (2,) of the plane: best of a grid, then a simplex search from there."""
    axis = np.linspace(-1.0, 1.0, _GRID)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    near = grid[int(np.argmin(OBJECTIVES[name](grid)))]
    polished = minimize(lambda point: float(OBJECTIVES[name](point)), near, method="Nelder-Mead",
                        options={"xatol": 1e-10, "fatol": 1e-12})
    return np.asarray(polished.x if polished.fun < OBJECTIVES[name](near) else near)


def corners(phi: float) -> FloatArray:
    """Corners (K, 3) of Lambda_phi in the order of a walk around it: what losses in all directions single out."""
    ambiguity = RelativeSet.of_shares(N_CLIENTS, phi, SHARE, SHARE)
    turns = np.linspace(0.0, 2.0 * np.pi, 360, endpoint=False) + 1e-3
    losses = np.cos(turns[:, None] - 2.0 * np.pi / N_CLIENTS * np.arange(N_CLIENTS))
    found: list[FloatArray] = []
    for each in losses:
        corner = ambiguity.member(each)
        if not any(np.allclose(corner, other) for other in found):
            found.append(corner)
    return np.array(found)


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """Figure 1 on the left three panels, Figure 2 on the right one."""
    figure, (left, *bars, right) = plt.subplots(1, 4, figsize=(14, 3.4))
    left.scatter(*POINTS.T, color="grey", label="data")
    for row, axes, colour in zip(found, bars, ("C3", "C0"), strict=True):
        left.scatter(row["x"], row["y"], marker="s", color=colour, label=row["name"])
        axes.bar(range(len(POINTS)), row["distances"], color=colour)
        axes.set(title=row["name"], xlabel="data point", ylabel="distance", ylim=(0.0, 1.35))
    left.legend(fontsize=6)
    left.set_aspect("equal")
    for phi in PHIS:
        ring = np.vstack([corners(phi), corners(phi)[:1]])
        right.plot(ring[:, 0], ring[:, 1], linewidth=1, label=f"phi {phi:g}")
    right.set(title="Lambda", xlabel="lambda of client 1", ylabel="lambda of client 2")
    right.legend(fontsize=6)
    save(figure, path)


def main() -> int:
    """Solve, draw, print; 1 where a sum of distances is not the printed one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the points as JSON, too")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("benchmark-results") / "relative_fairness" / "figures12",
        help="folder of the plot and the table (default %(default)s)",
    )
    args = parser.parse_args()
    found: list[dict[str, Any]] = []
    for name in OBJECTIVES:
        point = solve(name)
        away = distances(point)
        found.append({"name": name, "x": float(point[0]), "y": float(point[1]), "distances": away.tolist(),
                      "sum": float(away.sum()), "printed": PRINTED_SUMS[name]})
    args.out.mkdir(parents=True, exist_ok=True)
    draw(found, args.out / "figures12.png")
    write_json(args.json, found)
    lines = [
        [row["name"], f"({row['x']:.4f}, {row['y']:.4f})", f"{max(row['distances']):.4f}",
         f"{min(row['distances']):.4f}", f"{row['sum']:.3f}", f"{row['printed']:.3f}"]
        for row in found
    ]
    text = markdown(["point of", "where", "largest distance", "least", "sum", "printed sum"], lines)
    (args.out / "figures12.md").write_text(text, encoding="utf-8")
    print(text)
    return int(any(round(row["sum"], 3) != row["printed"] for row in found))


if __name__ == "__main__":
    raise SystemExit(main())
