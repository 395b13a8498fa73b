"""Certificates of small trained federations."""

from __future__ import annotations

import numpy as np

from models.basics import TransportNorm
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.methods.catalogue import get_method
from models.problem import RobustSpec, SiteProblem, Status
from models.simulation.federation import FIXED, server_problem
from models.site_ambiguity.ball import MixtureBall
from services.verification.certificate_file import CertificateFile, Head

RUN = "0" * 32


def trained_certificate(
    *, seed: int = 0, n_sites: int = 4, n_rows: int = 60, n_features: int = 6, radius: float = 2e-3,
    norm: TransportNorm = "l2", box: bool = False, fit_intercept: bool = True, ball: MixtureBall = FIXED,
    gap: float = 1e-3, method: str = "level-bundle", loss: str = "hinge", away: str = "", max_rounds: int = 120,
) -> CertificateFile:
    """Certificate of a run; the site ``away`` answers nothing after the third round."""
    random = np.random.default_rng(seed)
    plane, sites = random.normal(size=n_features), {}
    support = BoxSupport(np.zeros(n_features), np.ones(n_features)) if box else None
    for g in range(n_sites):
        features = np.clip(random.uniform(size=(n_rows, n_features)) + 0.1 * random.normal(size=n_features), 0, 1)
        scores = (features - 0.5) @ plane + 0.3 * random.normal(size=n_rows)
        targets = np.sign(scores) if loss == "hinge" else scores / 4
        spec = RobustSpec(radius * (1 + g), 1.0, norm, support, fit_intercept, get_loss(loss))
        sites[f"plant-{g}"] = SiteProblem(features, targets, spec)
    chosen = get_method(method)
    problem = server_problem(sites, None, chosen, {}, gap, ball)
    state, status, number = chosen.server.init(problem), Status.CONTINUE, 0
    while status is Status.CONTINUE and number < max_rounds:
        messages = chosen.server.messages(state, problem)
        here = [name for name in sites if name != away or number < 3]
        answers = {name: chosen.site.answer(sites[name], messages[name], problem.parameters) for name in here}
        state = chosen.server.step(state, problem, answers)
        status, number = chosen.server.status(state, problem), number + 1
    proof, bounds = chosen.server.carried_proof(state, problem), chosen.server.certificate(state)
    assert proof is not None
    head = Head(
        weights=proof.weights, risks=proof.risks, mixture=proof.mixture, site=proof.site, offset=proof.offset,
        slope=proof.slope, norm_weight=proof.norm_weight, swing=proof.swing, multipliers=proof.multipliers,
        around=proof.around, upper=proof.upper, lower=proof.lower,
    )
    specs = [site.spec for site in sites.values()]
    return CertificateFile(
        run_id=RUN, site_ids=tuple(sites), site_weights=problem.weights, radii=np.array([s.radius for s in specs]),
        label_flip_costs=np.array([s.label_flip_cost for s in specs]), lipschitz=float(specs[0].loss.lipschitz),
        transport_norm=norm, fit_intercept=fit_intercept, mixture_norm=ball.norm, mixture_radius=ball.radius,
        heads=(head,), upper=bounds.upper, lower=bounds.lower, gap=bounds.gap,
    )
