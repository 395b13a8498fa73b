r"""Training over sites that are all in this process: the round loop without a network.

The halves of ``models.methods`` are driven as the service drives them, a message to each site, its answer, a step of
the server, until the certified gap is reached. Use it for research, estimators and benchmarks; every array that a real
run would send is built here too, so rounds and bytes are those of a real run.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from models.basics import Arrays, FloatArray, ProblemError
from models.cohorts.dealing import Cohorts, cohort_problem
from models.features.common_units import CommonUnits
from models.geometry.supports import BoxSupport
from models.methods.catalogue import check_method_problem, check_parameters, get_method, has_no_units
from models.methods.guard import Guard
from models.methods.protocol import Method, SiteHalf
from models.methods.row_account import accounted_answer
from models.problem import Certificate, ServerProblem, SiteProblem, SiteTerms, Status
from models.simulation.cohort_rounds import CohortRounds, bytes_of_words
from models.simulation.ended import Ended
from models.site_ambiguity.ball import MixtureBall
from models.validation import check_site_problem

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
    ``note``: what the method says of its result, on one line; mostly empty. ``end``: from where a later run goes on.
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
    end: Ended | None = None

    @property
    def n_rounds(self) -> int:
        """Rounds that were run."""
        return len(self.history)

    def as_given(self, units: CommonUnits, n_features: int) -> Training:
        """A training in units of its own as one of the problem as given."""
        return replace(
            self,
            weights=units.plane(self.weights, n_features),
            certificate=units.bounds(self.certificate),
            site_risks={name: units.risk * risk for name, risk in self.site_risks.items()},
            history=tuple(
                replace(each, upper=units.risk * each.upper, lower=units.risk * each.lower) for each in self.history
            ),
            last_point=units.plane(self.last_point, n_features),
            convex_part=None if self.convex_part is None else units.bounds(self.convex_part),
        )


def train(
    sites: Mapping[str, SiteProblem],
    *,
    weights: Mapping[str, float] | None = None,
    mixture: MixtureBall = FIXED,
    method: str = "level-bundle",
    parameters: Mapping[str, float] | None = None,
    gap: float = 1e-4,
    absolute_gap: float | None = None,
    max_rounds: int = 500,
    site_half: SiteHalf | None = None,
    feature_scale: FloatArray | None = None,
    cohorts: Cohorts | None = None,
    guards: Mapping[str, Guard] | None = None,
    after: Ended | None = None,
    unchanged: Collection[str] = (),
) -> Training:
    r"""Minimise ``max_{q in Q} sum_g q_g r_g(w)``, r_g the worst-case risk of site g, round by round.

    Parameters
    ----------
    sites : site id to its problem; all with one transport norm, one number of features and one choice of intercept.
    weights : site id to a_g, at or above 0 with sum 1; None: all alike.
    mixture : the ball Q around the weights, in the simplex; radius 0 (the default): the weights themselves.
    method, parameters : name in ``models.methods.catalogue`` and the method's own numbers (defaults for the others).
    gap : relative gap ``(upper - lower) / upper`` at which the run stops.
    absolute_gap : distance ``upper - lower`` at which it stops too, for an optimum at or near 0; None: ``gap`` times a
        thousandth of the risk of zero weights.
    max_rounds : rounds after which it stops anyway; the status tells.
    site_half : stands in for the method's own site half, for instance one that works in other units. With the method's
        own, and parameters without a unit, training is in units in which the largest feature (and target) is 1.
    feature_scale : (P,) in which units: see :class:`models.problem.ServerProblem`; None: those of the features.
    cohorts : cohort id to site ids (``models.cohorts.dealing.deal``): the server half sees sums over cohorts alone, and
        what is told by site (risks, mixture) is then told by cohort. None: it sees every answer.
    guards : site id to what chooses the cuts that may leave that site, as a plant's vault does; None: exact cuts leave.
    after, unchanged : the end of an earlier training with the same method, and the sites whose rows, label flip cost
        and radius are those of then: their cuts still count, and the first question is near that end.

    Raises
    ------
    ProblemError
        Where the problem as stated has no meaning.
    """
    chosen = get_method(method)
    problem = server_problem(sites, weights, chosen, parameters or {}, gap, mixture, absolute_gap)
    if max_rounds < 1:
        raise ProblemError(f"max_rounds must be at least 1, got {max_rounds}")
    for site in sites.values():
        check_site_problem(site)
    units = CommonUnits.of(sites) if site_half is None and has_no_units(chosen) else CommonUnits()
    units = units if after is None else after.units
    sites = units.stated(sites)
    least = None if absolute_gap is None else absolute_gap / units.risk
    problem = server_problem(sites, weights, chosen, parameters or {}, gap, mixture, least)
    problem = replace(problem, feature_scale=feature_scale)
    half, server = site_half or chosen.site, chosen.server
    rounds = None if cohorts is None else CohortRounds(chosen, sites, problem, cohorts, half, guards)
    single, problem = problem, problem if cohorts is None else cohort_problem(problem, cohorts)
    shapes = server.answer_shapes(problem.dimension, problem.n_swings, problem.parameters)
    state = server.init(problem) if after is None else after.goes_on(server, problem, single, cohorts, unchanged)
    status, history = Status.CONTINUE, list[Round]()
    while status is Status.CONTINUE and len(history) < max_rounds:
        messages = server.messages(state, problem)
        answers: Mapping[str, Arrays]
        if rounds is None:
            answers = {
                name: accounted_answer(
                    half, sites[name], messages[name], problem.parameters, (guards or {}).get(name)
                ).arrays
                for name in sites
            }
            sent = max(sum(array.nbytes for array in answer.values()) for answer in answers.values())
        else:
            answers, sent = rounds.answers(messages, shapes), bytes_of_words(shapes)
        state = server.step(state, problem, answers)
        bounds = server.certificate(state)
        history.append(Round(len(history) + 1, bounds.upper, bounds.lower, bounds.gap, sent))
        status = server.status(state, problem)
    following = next(iter(server.messages(state, problem).values()))
    found = Training(
        weights=server.weights(state),
        certificate=server.certificate(state),
        status=Status.ROUND_LIMIT if status is Status.CONTINUE else status,
        site_risks=server.site_risks(state, problem),
        mixture_weights=server.mixture_weights(state, problem),
        history=tuple(history),
        last_point=following["point"] if "point" in following else following["points"][0],
        convex_part=server.convex_part(state),
        note=server.note((state,), problem),
        end=Ended(state, single, cohorts, units),
    )
    return found.as_given(units, problem.n_features)


def server_problem(
    sites: Mapping[str, SiteProblem],
    weights: Mapping[str, float] | None,
    method: Method,
    parameters: Mapping[str, float],
    gap: float,
    mixture: MixtureBall = FIXED,
    absolute_gap: float | None = None,
) -> ServerProblem:
    """What the server half may know of these sites; refuses sites that do not fit together."""
    if not sites:
        raise ProblemError("a problem needs at least one site")
    if not (math.isfinite(gap) and gap >= 0):
        raise ProblemError(f"gap must be a finite number at or above 0, got {gap}")
    if absolute_gap is not None and not (math.isfinite(absolute_gap) and absolute_gap >= 0):
        raise ProblemError(f"absolute_gap must be None or a finite number at or above 0, got {absolute_gap}")
    complete = check_parameters(method, parameters)
    for site in sites.values():
        check_method_problem(
            method, mixture, loss=site.spec.loss, n_sites=len(sites), parameters=complete,
            supported=site.spec.support is not None, weighted=site.row_weights is not None,
        )
    shares = site_shares(sites, weights)
    problems = list(sites.values())
    check_alike("transport_norm", [each.spec.transport_norm for each in problems])
    check_alike("number of features", [each.features.shape[-1] for each in problems])
    check_alike("fit_intercept", [each.spec.fit_intercept for each in problems])
    return ServerProblem(
        n_features=problems[0].features.shape[-1],
        sites=tuple(
            SiteTerms(name, shares[name], site.spec.radius, site.spec.label_flip_cost)
            for name, site in sites.items()
        ),
        transport_norm=problems[0].spec.transport_norm,
        fit_intercept=problems[0].spec.fit_intercept,
        gap=gap,
        absolute_gap=absolute_gap,
        parameters=complete,
        mixture=mixture,
        box=method.place("box") == "box" and any(isinstance(each.spec.support, BoxSupport) for each in problems),
    )


def site_shares(sites: Mapping[str, object], weights: Mapping[str, float] | None) -> dict[str, float]:
    """Weight of each site: all alike where none are given; refuses weights of other sites."""
    if weights is None:
        return dict.fromkeys(sites, 1.0 / len(sites))
    if set(weights) != set(sites):
        raise ProblemError(f"weights are for sites {_names(weights)}, the data are of sites {_names(sites)}")
    return {name: float(weights[name]) for name in sites}


def _names(mapping: Mapping[str, Any]) -> str:
    return ", ".join(sorted(str(name) for name in mapping))


def check_alike(what: str, values: Sequence[object]) -> None:
    """Refuse sites that differ in what they must have in common. :class:`ProblemError` names what differs."""
    if len(set(values)) > 1:
        raise ProblemError(f"all sites must have the same {what}, got {', '.join(sorted({str(v) for v in values}))}")
