"""Certificates of small trained federations."""

from __future__ import annotations

from functools import cache

import numpy as np

from models.basics import TransportNorm
from models.cohorts.dealing import cohort_problem, deal
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.methods.catalogue import get_method
from models.problem import RobustSpec, SiteProblem, Status
from models.simulation.cohort_rounds import CohortRounds
from models.simulation.federation import FIXED, server_problem
from models.site_ambiguity.ball import MixtureBall
from services.verification.certificate_file import CertificateFile, Head

RUN = "0" * 32


@cache
def trained_certificate(
    *, seed: int = 0, n_sites: int = 4, n_rows: int = 60, n_features: int = 6, radius: float = 2e-3,
    norm: TransportNorm = "l2", box: bool = False, fit_intercept: bool = True, ball: MixtureBall = FIXED,
    gap: float = 1e-3, method: str = "level-bundle", loss: str = "hinge", away: str = "", max_rounds: int = 120,
    cohort_size: int = 0,
) -> CertificateFile:
    """Certificate of a run; the site ``away`` answers nothing after the third round. ``cohort_size``: sums alone."""
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
    cohorts = deal(list(sites), cohort_size) if cohort_size else None
    rounds = None if cohorts is None else CohortRounds(chosen, sites, problem, cohorts)
    problem = problem if cohorts is None else cohort_problem(problem, cohorts)
    shapes = chosen.server.answer_shapes(problem.dimension, problem.n_swings, problem.parameters)
    state, status, number = chosen.server.init(problem), Status.CONTINUE, 0
    while status is Status.CONTINUE and number < max_rounds:
        messages = chosen.server.messages(state, problem)
        here = [name for name in sites if name != away or number < 3]
        if rounds is None:
            answers = {name: chosen.site.answer(sites[name], messages[name], problem.parameters) for name in here}
        else:
            told = rounds.answers(messages, shapes, [name for name in sites if name not in here])
            answers = {name: dict(answer) for name, answer in told.items()}
        state = chosen.server.step(state, problem, answers)
        status, number = chosen.server.status(state, problem), number + 1
    proof, bounds = chosen.server.carried_proof(state, problem), chosen.server.certificate(state)
    assert proof is not None
    proof = proof.plain()
    head = Head(
        weights=proof.weights, risks=proof.risks, mixture=proof.mixture, site=proof.site, offset=proof.offset,
        slope=proof.slope, norm_weight=proof.norm_weight, swing=proof.swing, multipliers=proof.multipliers,
        around=proof.around, upper=proof.upper, lower=proof.lower,
    )
    return CertificateFile(
        run_id=RUN, site_ids=tuple(site.site_id for site in proof.sites), site_weights=problem.weights,
        radii=np.array([site.radius for site in proof.sites]), lipschitz=get_loss(loss).lipschitz,
        label_flip_costs=np.array([site.label_flip_cost for site in proof.sites]),
        members=tuple(cohorts[site.site_id] for site in proof.sites) if cohorts else (),
        transport_norm=norm, fit_intercept=fit_intercept, mixture_norm=ball.norm, mixture_radius=ball.radius,
        heads=(head,), upper=bounds.upper, lower=bounds.lower, gap=bounds.gap,
    )
