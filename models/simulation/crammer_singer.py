r"""Training of all classes as one problem over sites in this process: the level bundle on Crammer-Singer risks.

    min_W max_{q in Q} sum_g q_g r_g(W),      r_g the worst-case Crammer-Singer risk of site g

One mixture of the sites and one certificate for all classes, where one-vs-rest has one of each for every head and adds
them up. The sites answer with risks and plain cuts alone, so rounds grow with the number of weights, ``C (P + 1)``:
some hundreds for a few dozen of them. Cuts are taken in centred features of spread 1; radius, flip cost and risk stay
those of the features as given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.basics import FloatArray, ProblemError
from models.features.feature_units import centred, units_of
from models.methods.answer_arrays import cut_answer
from models.methods.bundle.level import BundleServer
from models.methods.catalogue import get_method
from models.problem import Certificate, ServerProblem, SiteProblem, SiteTerms, Status
from models.simulation.federation import FIXED, Round, check_alike, site_shares
from models.site_ambiguity.ball import MixtureBall
from models.worst_case.crammer_singer import crammer_singer_cut
from models.worst_case.joint_risk import check_classes, class_planes


@dataclass(frozen=True)
class JointTraining:
    """Planes (C, P + 1), the intercept last (0 without one); certificate, risks and mixture of all classes together."""

    planes: FloatArray
    certificate: Certificate
    status: Status
    site_risks: dict[str, float]
    mixture_weights: dict[str, float]
    history: tuple[Round, ...]


def train_crammer_singer(
    sites: Mapping[str, SiteProblem],
    n_classes: int,
    *,
    weights: Mapping[str, float] | None = None,
    mixture: MixtureBall = FIXED,
    gap: float = 1e-3,
    absolute_gap: float | None = None,
    max_rounds: int = 1000,
) -> JointTraining:
    """Minimise the worst mixture's risk; labels are class indices, the rest as for ``models.simulation.train``.

    ``ProblemError`` for labels that are none, features with bounds, or sites that do not fit together.
    """
    if not sites:
        raise ProblemError("a problem needs at least one site")
    if max_rounds < 1:
        raise ProblemError(f"max_rounds must be at least 1, got {max_rounds}")
    problems = list(sites.values())
    for each in problems:
        check_classes(each, n_classes)
    check_alike("number of features", [each.features.shape[1] for each in problems])
    check_alike("transport_norm", [each.spec.transport_norm for each in problems])
    check_alike("fit_intercept", [each.spec.fit_intercept for each in problems])
    spec, n_features = problems[0].spec, problems[0].features.shape[1]
    units = _Units.of(problems, n_classes)
    server, shares = BundleServer(False), site_shares(sites, weights)
    problem = ServerProblem(
        n_classes * (n_features + int(spec.fit_intercept)),
        tuple(SiteTerms(name, shares[name], each.spec.radius, each.spec.label_flip_cost)
              for name, each in sites.items()),
        spec.transport_norm, fit_intercept=False, gap=gap, absolute_gap=absolute_gap, mixture=mixture,
        parameters=dict(get_method("level-bundle-plain").parameters),
    )
    state, status, history = server.init(problem), Status.CONTINUE, list[Round]()
    while status is Status.CONTINUE and len(history) < max_rounds:
        point = state.point
        answers = {}
        for name, each in sites.items():
            cut = crammer_singer_cut(units.given(point), each, n_classes)
            answers[name] = cut_answer(replace(cut, slope=units.slope(cut.slope)))
        sent = sum(array.nbytes for array in next(iter(answers.values())).values())
        state = server.step(state, problem, answers)
        bounds = server.certificate(state)
        history.append(Round(len(history) + 1, bounds.upper, bounds.lower, bounds.gap, sent))
        status = server.status(state, problem)
    return JointTraining(
        class_planes(units.given(server.weights(state)), n_classes, n_features, spec.fit_intercept),
        server.certificate(state), Status.ROUND_LIMIT if status is Status.CONTINUE else status,
        server.site_risks(state, problem), server.mixture_weights(state, problem), tuple(history),
    )


@dataclass(frozen=True)
class _Units:
    """Weights v of centred features of spread 1: ``w_p = v_p / spread_p`` and ``b = v_0 - <w, centre>``."""

    centre: FloatArray
    spread: FloatArray
    n_classes: int
    fit_intercept: bool

    @classmethod
    def of(cls, problems: list[SiteProblem], n_classes: int) -> _Units:
        rows, centre = centred(problems)
        radius = max(each.spec.radius for each in problems)
        return cls(centre, units_of(rows, centre, radius), n_classes, problems[0].spec.fit_intercept)

    def given(self, point: FloatArray) -> FloatArray:
        """Weights (D,) of the features as given."""
        planes = class_planes(point, self.n_classes, len(self.centre), self.fit_intercept)
        slopes = planes[:, :-1] / self.spread
        ends = [planes[:, -1] - slopes @ self.centre] if self.fit_intercept else []
        return np.concatenate([slopes.ravel(), *ends])

    def slope(self, slope: FloatArray) -> FloatArray:
        """Subgradient (D,) in these weights from that in the given ones."""
        planes = class_planes(slope, self.n_classes, len(self.centre), self.fit_intercept)
        changes = (planes[:, :-1] - planes[:, -1:] * self.centre) / self.spread
        return np.concatenate([changes.ravel(), *([planes[:, -1]] if self.fit_intercept else [])])
