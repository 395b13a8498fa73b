r"""Training over sites that are all in this process: the round loop without a network.

The halves of ``models.methods`` are driven as the service drives them, a message to each site, its answer, a step of
the server, until the certified gap is reached. Use it for research, estimators and benchmarks; every array that a real
run would send is built here too, so rounds and bytes are those of a real run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from models.ambiguity import check_site_problem
from models.methods.base import HasConvexPart, HasNote, Method, SiteHalf
from models.methods.catalogue import check_method_problem, check_parameters, get_method
from models.mixture import MixtureBall
from models.problem import Certificate, FloatArray, ProblemError, ServerProblem, SiteProblem, SiteTerms, Status

FIXED: Final = MixtureBall()
"""No ambiguity over the sites: their weights count as they are given."""


@dataclass(frozen=True)
class Round:
    """What a round ended with: the bounds, their gap, and how many bytes one site sent (float64, without framing)."""

    number: int
    upper: float
    lower: float
    gap: float
    bytes_per_site: int


@dataclass(frozen=True)
class Training:
    """Result of a run: the best weights (D,), their certificate, and the history of the rounds.

    ``mixture_weights`` is the worst mixture of the sites at the best weights, the site weights where those are fixed.
    ``last_point`` is the point that the server would ask next: where a method without a certificate would have ended.
    ``convex_part``: for a method whose objective is not convex (relative fairness), the bounds of its convex majorant
    at the end; the ``certificate`` holds for the whole. None for the others.
    ``note``: what the method says of its result, on one line; mostly empty.
    """

    weights: FloatArray
    certificate: Certificate
    status: Status
    site_risks: dict[str, float]
    mixture_weights: dict[str, float]
    history: tuple[Round, ...]
    last_point: FloatArray
    convex_part: Certificate | None = None
    note: str = ""

    @property
    def n_rounds(self) -> int:
        """Rounds that were run."""
        return len(self.history)


def train(
    sites: Mapping[str, SiteProblem],
    *,
    weights: Mapping[str, float] | None = None,
    mixture: MixtureBall = FIXED,
    method: str = "level-bundle",
    parameters: Mapping[str, float] | None = None,
    gap: float = 1e-4,
    max_rounds: int = 500,
    site_half: SiteHalf | None = None,
    stretch: FloatArray | None = None,
) -> Training:
    r"""Minimise ``max_{q in Q} sum_g q_g r_g(w)``, r_g the worst-case risk of site g, round by round.

    Parameters
    ----------
    sites : site id to its problem; all with one transport norm, one number of features and one choice of intercept.
    weights : site id to a_g, at or above 0 with sum 1; None: all alike.
    mixture : the ball Q around the weights, in the simplex; radius 0 (the default): the weights themselves.
    method, parameters : name in ``models.methods.catalogue`` and the method's own numbers (defaults for the others).
    gap : relative gap ``(upper - lower) / upper`` at which the run stops.
    max_rounds : rounds after which it stops anyway; the status tells.
    site_half : stands in for the method's own site half, for instance one that works in other units.
    stretch : (P,) in which units: see :class:`models.problem.ServerProblem`; None: those of the features.

    Raises
    ------
    ProblemError
        Where the problem as stated has no meaning.
    """
    chosen = get_method(method)
    problem = replace(server_problem(sites, weights, chosen, parameters or {}, gap, mixture), stretch=stretch)
    if max_rounds < 1:
        raise ProblemError(f"max_rounds must be at least 1, got {max_rounds}")
    for site in sites.values():
        check_site_problem(site)
    half, server = site_half or chosen.site, chosen.server
    state, status, history = server.init(problem), Status.CONTINUE, list[Round]()
    while status is Status.CONTINUE and len(history) < max_rounds:
        messages = server.messages(state, problem)
        answers = {name: half.answer(sites[name], messages[name], problem.parameters) for name in sites}
        state = server.step(state, problem, answers)
        bounds = server.certificate(state)
        sent = max(sum(array.nbytes for array in answer.values()) for answer in answers.values())
        history.append(Round(len(history) + 1, bounds.upper, bounds.lower, bounds.gap, sent))
        status = server.status(state, problem)
    return Training(
        weights=server.weights(state),
        certificate=server.certificate(state),
        status=Status.ROUND_LIMIT if status is Status.CONTINUE else status,
        site_risks=server.site_risks(state, problem),
        mixture_weights=server.mixture_weights(state, problem),
        history=tuple(history),
        last_point=_next_point(server.messages(state, problem)),
        convex_part=server.convex_part(state) if isinstance(server, HasConvexPart) else None,
        note=server.note((state,), problem) if isinstance(server, HasNote) else "",
    )


def server_problem(
    sites: Mapping[str, SiteProblem],
    weights: Mapping[str, float] | None,
    method: Method,
    parameters: Mapping[str, float],
    gap: float,
    mixture: MixtureBall = FIXED,
) -> ServerProblem:
    """What the server half may know of these sites; refuses sites that do not fit together."""
    if not sites:
        raise ProblemError("a problem needs at least one site")
    if not (math.isfinite(gap) and gap >= 0):
        raise ProblemError(f"gap must be a finite number at or above 0, got {gap}")
    complete = check_parameters(method, parameters)
    for site in sites.values():
        check_method_problem(
            method, mixture, loss=site.spec.loss, n_sites=len(sites), parameters=complete,
            supported=site.spec.support is not None,
        )  # fmt: skip
    shares = _shares(sites, weights)
    problems = list(sites.values())
    _check_alike("transport_norm", [each.spec.transport_norm for each in problems])
    _check_alike("number of features", [each.features.shape[-1] for each in problems])
    _check_alike("fit_intercept", [each.spec.fit_intercept for each in problems])
    return ServerProblem(
        n_features=problems[0].features.shape[-1],
        sites=tuple(
            SiteTerms(name, shares[name], site.spec.radius, site.spec.label_flip_cost) for name, site in sites.items()
        ),
        transport_norm=problems[0].spec.transport_norm,
        fit_intercept=problems[0].spec.fit_intercept,
        feature_bound=max(float(np.abs(each.features).max(initial=0.0)) for each in problems),
        gap=gap,
        parameters=complete,
        mixture=mixture,
    )


def _shares(sites: Mapping[str, SiteProblem], weights: Mapping[str, float] | None) -> dict[str, float]:
    if weights is None:
        return dict.fromkeys(sites, 1.0 / len(sites))
    if set(weights) != set(sites):
        raise ProblemError(f"weights are for sites {_names(weights)}, the data are of sites {_names(sites)}")
    return {name: float(weights[name]) for name in sites}


def _names(mapping: Mapping[str, Any]) -> str:
    return ", ".join(sorted(str(name) for name in mapping))


def _check_alike(what: str, values: Sequence[object]) -> None:
    if len(set(values)) > 1:
        raise ProblemError(f"all sites must have the same {what}, got {', '.join(sorted({str(v) for v in values}))}")


def _next_point(messages: Mapping[str, Mapping[str, FloatArray]]) -> FloatArray:
    return next(iter(messages.values()))["point"]
