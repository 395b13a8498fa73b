"""The federated rivals of the tables, in the settings of the paper's appendix C.3.

Plain SVM with a squared ridge, hinge + ||w||^2 / (10 N_g), for FedSGD, FedAvg and FedProx (mu 1); for FedDRO the hinge
of the worst mixture of all rows at a Kullback-Leibler penalty, with the same ridge. Step gamma / t, from zero weights,
no intercept, equal site weights; batches of 20 % and five local epochs, but for FedSGD, which takes one step on all
rows. The paper does not say on what features; the tables have both, raw ones like those of ADMM, and in [0, 1] like
those of SM.

The paper does not state FedDRO's temperature. On raw features a fixed one makes the method fail on some sets, so it is
tuned too, which is more than the other rivals get. They are Ballast's own methods, driven without their certificates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from models.basics import FloatArray
from models.methods.catalogue import get_method
from models.methods.local_sgd.server import LocalServer
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import server_problem
from tests.benchmarks.papers.fdr_svm.printed import Site

STEPS = (1e-3, 1e-2, 1e-1, 1.0)
TEMPERATURES = (1.0, 1e2, 1e4)
_LOCAL = {"batch": 0.2, "epochs": 5.0, "step_power": 1.0}
SETTINGS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "FedSGD": ("fedsgd", {"step_power": 1.0}),
    "FedAvg": ("fedavg", _LOCAL),
    "FedProx": ("fedprox", {**_LOCAL, "proximal": 1.0}),
    "FedDRO (KL)": ("feddro", {**_LOCAL, "local_steps": 0.0}),
}


Knob = float | tuple[float, ...]


def knobs(name: str) -> tuple[Knob, ...]:
    """What a rival chooses from: gamma, for FedDRO with the temperature."""
    if SETTINGS[name][0] == "feddro":
        return tuple((step, temperature) for step in STEPS for temperature in TEMPERATURES)
    return STEPS


def rival_points(name: str, sites: Sequence[Site], knob: Knob, rounds: int) -> Iterator[FloatArray]:
    """The server's point after each round; ``radius`` of a site is its ridge 1 / (10 N_g)."""
    method, settings = SETTINGS[name]
    step = knob
    if isinstance(knob, tuple):
        step, settings = knob[0], {**settings, "temperature": knob[1]}
    chosen = get_method(method)
    spec = RobustSpec(0.0, 1.0, "linf", fit_intercept=False)
    rows = {str(g): SiteProblem(site.features, site.labels, spec) for g, site in enumerate(sites)}
    problem = server_problem(rows, None, chosen, {**settings, "step_size": step}, gap=0.0)
    ridges = {str(g): {**problem.parameters, "ridge": 2.0 * site.radius} for g, site in enumerate(sites)}
    assert isinstance(chosen.server, LocalServer)
    rule, half = chosen.server.rule, chosen.site
    memory = rule.begin(problem, chosen.server.init(problem).memory["point"])
    for done in range(1, rounds + 1):
        while float(memory["round"]) < done:
            messages = rule.messages(memory, problem)
            answers = {name: half.answer(rows[name], messages[name], ridges[name]) for name in rows}
            memory = rule.advance(memory, problem, answers)
        yield memory["point"]
