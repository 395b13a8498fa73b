"""Columns in the settings of the authors' published code; ``authors`` says where that differs from the text.

Features by set, FedDRO's temperature by set, steps gamma / sqrt. ADMM-SC is judged in cross-validation with
tau = 18 rho, and fitted on the UCI sets with tau = 0, which is plain ADMM; on the pump the code keeps 18 rho.
On the pump it tunes more of the rivals: gamma out of .01, .1 and 1, the ridge's beta out of 10 and 100, FedProx's mu
out of .1 and 1, FedDRO's tracking out of .01 and .1 gamma, always at 220 rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from models.basics import FloatArray
from tests.benchmarks.papers.fdr_svm.authors import IN_UNIT_BOX, TEMPERATURES, TRACKING, fedavg, feddro, fedsgd
from tests.benchmarks.papers.fdr_svm.columns import Cell, Grid, as_printed
from tests.benchmarks.papers.fdr_svm.printed import Site, admm_points
from tests.benchmarks.papers.fdr_svm.rivals import STEPS, Knob
from tests.benchmarks.papers.fdr_svm.uci import Split, scaled

RIVALS = ("FedSGD", "FedAvg", "FedProx", "FedDRO (KL)")
PUMP_STEPS, PUMP_BETAS = (1e-2, 1e-1, 1.0), (10.0, 100.0)


def knobs(name: str, chosen: str) -> tuple[Knob, ...]:
    """What a rival chooses from on a set: gamma; with mu for FedProx, with the tracking for FedDRO."""
    steps = PUMP_STEPS if chosen == "pump" else STEPS
    if name == "FedProx":
        return tuple(product(steps, (0.1, 1.0) if chosen == "pump" else (1.0,)))
    if name == "FedDRO (KL)":
        factors = (0.01, 0.1) if chosen == "pump" else (TRACKING.get(chosen, 0.1),)
        return tuple((step, factor * step) for step, factor in product(steps, factors))
    return steps


def rival_points(name: str, chosen: str, sites: list[Site], knob: Knob, rounds: int) -> Iterator[FloatArray]:
    """The server's point after each round; ``chosen`` is the set, or "pump"."""
    step, more = knob if isinstance(knob, tuple) else (knob, 0.0)
    if name == "FedSGD":
        return fedsgd(sites, step, rounds)
    if name == "FedDRO (KL)":
        return feddro(sites, step, rounds, temperature=TEMPERATURES[chosen], tracking=more)
    return fedavg(sites, step, rounds, proximal=more)


def authors_rival(name: str) -> Callable[[Split, Grid], Cell]:
    """A rival as the code runs it; the ridge is ``||w||^2 / (beta N_g)``, beta 10 on the UCI sets."""

    def column(data: Split, grid: Grid) -> Cell:
        pump = data.name == "pump"
        ridges = PUMP_BETAS if pump and name != "FedDRO (KL)" else (10.0,)
        plain = replace(grid, flip_costs=(1.0,), betas=ridges)
        chosen, data = data.name, scaled(data) if data.name in IN_UNIT_BOX else data
        rounds = (220,) if pump else grid.rounds
        return as_printed(data, plain, rounds, knobs(name, chosen), lambda s, c, t: rival_points(name, chosen, s, c, t))

    return column


def authors_admm_sc(data: Split, grid: Grid) -> Cell:
    """ADMM-SC as the code runs it on the UCI sets: rho and rounds chosen with tau = 18 rho, fitted with tau = 0."""
    return as_printed(
        data, grid, grid.rounds, grid.rhos, lambda s, c, t: admm_points(s, c, 18.0 * c, t),
        final=None if data.name == "pump" else lambda s, c, t: admm_points(s, c, 0.0, t),
    )


AUTHORS = {f"{name}, code's settings": authors_rival(name) for name in RIVALS} | {
    "ADMM-SC, code's tau": authors_admm_sc
}
