"""Tuning of an estimator: the race of ``models.tuning`` over folds of the rows at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.basics import FloatArray, ProblemError
from models.estimators.choices import mixture_ball
from models.estimators.folds import in_any_unit
from models.estimators.table import Table
from models.estimators.tuning_argument import asked_tuning, listed, numbers
from models.estimators.values import number, whole_number
from models.features.common_units import CommonUnits
from models.features.lift import Lift
from models.features.products import product_lift
from models.methods.catalogue import METHODS
from models.problem import RobustSpec, SiteProblem, SiteTerms
from models.simulation.federation import server_problem
from models.tuning.at_hand import race
from models.tuning.automatic import (
    AUTO_FOLDS,
    AUTO_RULE,
    AUTO_SEGMENTS,
    AutomaticLift,
    automatic_lifts,
    automatic_radii,
    is_rare,
)
from models.tuning.budget import MOST_TRAININGS, Budget, OneTraining, reference
from models.tuning.candidates import Candidate, grid
from models.tuning.choice import Rule, Scored, untuned
from models.tuning.coupling import coupling_cost
from models.tuning.folds import Dealt, TooFewRowsError, deal
from models.tuning.racing import Tuner
from models.tuning.reference import one_training
from models.tuning.rungs import race_numbers, rungs
from models.tuning.scores import class_counts, error_sums, score_shape
from models.tuning.terms import TuningTerms

_ROUNDS = 20  # of the level bundle to a gap of 1e-3; here they cost time alone, no bytes
_FOLDS = 5  # where a mapping does not say
_TRAININGS = 2.0  # a budget that is not stated
_ROUNDING = 1e-9  # of features that were scaled to [0, 1]


Splines = Callable[[int], Lift]
"""A lift of so many segments over the data's ranges."""


@dataclass(frozen=True)
class Tuned:
    """What a tuning found: terms for the fit, and the curve that it was chosen from; ``lifts`` by number."""

    specs: tuple[RobustSpec, ...]
    client_radius: float
    lift: Lift | None
    lifts: tuple[Lift | None, ...]
    curve: tuple[Scored, ...]
    why: str
    rounds: int
    bytes_per_site: int


@dataclass(frozen=True)
class _Site:
    """Rows of one site in the units of the race: problems of the heads, by lift; errors are told by ``unit``."""

    rows: tuple[tuple[SiteProblem, ...], ...]
    outcomes: FloatArray
    counts: FloatArray
    dealt: Dealt
    classes: int
    unit: float

    def problems(self, candidate: Candidate, fold: int) -> Sequence[SiteProblem]:
        kept = self.dealt.learnt(fold)
        return [
            SiteProblem(
                each.features[kept], each.labels[kept],
                replace(
                    each.spec, radius=each.spec.radius * candidate.radius, label_flip_cost=candidate.label_flip_cost
                ),
                None if each.row_weights is None else each.row_weights[kept] / each.row_weights[kept].mean(),
            )
            for each in self.rows[candidate.lift]
        ]

    def scores(self, candidate: Candidate, fold: int, weights: FloatArray) -> FloatArray:
        held, first = self.dealt.scored(fold), self.rows[candidate.lift][0]
        if not first.spec.fit_intercept:
            weights = np.hstack([weights, np.zeros((len(weights), 1))])
        features, counts = first.features[held], self.counts[held]
        if first.spec.loss.task == "regression":
            return error_sums(weights, features, first.labels[held], first.spec.loss, counts) * [1.0, self.unit]
        classes = self.outcomes[held].astype(np.intp)
        return class_counts(weights, features, classes, self.classes, row_weights=counts)


def tuned(
    given: str | Mapping[str, Any], table: Table, heads: FloatArray, specs: Sequence[RobustSpec], shares: FloatArray,
    client_norm: object, client_radius: float, splines: Splines | None = None, lift: Lift | None = None,
    *, couples: bool = False, rows_by_class: FloatArray | None = None, names: Sequence[object],
) -> Tuned:
    """Choose the terms by cross-validation inside the sites.

    ``given``: "auto", or a mapping with some of ``radius`` (factors; those of "auto" where it has none),
    ``label_flip_cost``, ``client_radius`` (values) and ``segments`` (of splines; 0: the features themselves), and of
    ``folds`` (5), ``seed`` (0), ``rule`` ("one-standard-error", "best" or "paired") and ``budget`` (2, in trainings);
    "auto" has 3 folds, "best" and 3. ``heads`` (K, N) are labels or targets of rows that are not lifted; ``shares``
    (G,) the weights of the sites; ``splines`` makes a lift of so many segments, None where none may be tried: ``lift``
    is the one that stays. ``couples``: the budget pays for a
    coupling of the planes, too, which comes after the training. ``rows_by_class`` (C,): where "auto" has the loss.
    ``names`` (G,) are those of the sites in an error.

    Raises
    ------
    ProblemError
        Not such a mapping, one that tries nothing, a grid of one, a budget below one training, too few folds, or no
        radius to tune; of a mapping too few rows, where "auto" takes the terms as they are, as a plan does.

    :class:`TooFewRowsError` names the group that has too few rows for the folds.
    """
    asked = asked_tuning(given)
    if not any(spec.radius > 0 for spec in specs):
        raise ProblemError("tuning tries factors of the radius: give a radius above 0")
    cost, loss = specs[0].label_flip_cost, specs[0].loss
    if rows_by_class is not None and not is_rare(rows_by_class):
        rows_by_class = None
    lifts = _lifts(asked, given, splines, lift, table.features, rows_by_class, target=loss.task == "regression")
    by_squares = couples and specs[0].transport_norm == "l2"
    radii = automatic_radii(loss.name, rare=rows_by_class is not None, by_squares=by_squares)
    candidates = grid(
        numbers("radius", asked.get("radius", radii)),
        numbers("label_flip_cost", asked.get("label_flip_cost", cost)), len(lifts),
        numbers("client_radius", asked.get("client_radius", [client_radius])),
    )
    n_folds = whole_number("folds", asked.get("folds", AUTO_FOLDS if isinstance(given, str) else _FOLDS), least=1)
    tables = [table if each is None else replace(table, features=each.apply(table.features)) for each in lifts]
    units = CommonUnits.of(_stated(table, heads, specs))
    scaled = [units.stated(_stated(each, heads, specs)) for each in tables]
    keys = in_any_unit(table.features)
    sites: dict[str, _Site] = {}
    try:
        for g in range(len(specs)):
            sites[str(g)] = _site(
                table, g, [tuple(each[f"{g} {k}"] for k in range(len(heads))) for each in scaled], keys, n_folds,
                whole_number("seed", asked.get("seed", 0), least=0), units.target,
            )
    except TooFewRowsError as error:
        if not isinstance(given, str):
            raise TooFewRowsError(
                f"group {names[g]} cannot be tuned: {error} (fewer folds, or groups that are merged, may do)"
            ) from None
        own = untuned(candidates, "the estimator's", f"a site or more has too few rows for {n_folds} folds")
        return Tuned(tuple(specs), client_radius, lift, lifts, tuple(map(Scored, candidates)), own.why, 0, 0)
    each_cost = units.target / units.feature
    racing = {replace(each, label_flip_cost=each.label_flip_cost * each_cost): each for each in candidates}
    firsts = [{name: site.rows[number][0] for name, site in sites.items()} for number in range(len(lifts))]
    of_sites = [SiteTerms(name, share, site.rows[0][0].spec.radius, 1.0) for (name, site), share in zip(
        sites.items(), shares.tolist(), strict=True
    )]
    ball = mixture_ball(client_norm, client_radius)
    terms = TuningTerms(
        tuple(of_sites), firsts[0]["0"].spec.loss, specs[0].transport_norm, specs[0].fit_intercept, ball.norm,
        specs[0].support is None, couples,
    )
    sizes = tuple(each.features.shape[1] for each in tables)
    scores = int(np.prod(score_shape(loss, sites["0"].classes)))
    method = METHODS["level-bundle"]
    multiple = number("budget", asked.get("budget", MOST_TRAININGS if isinstance(given, str) else _TRAININGS))
    costs = sorted(
        (one_training(method, server_problem(each, None, method, {}, 1e-3), len(heads), _ROUNDS) for each in firsts),
        key=lambda one: one.numbers,
    )
    wanted = race_numbers(candidates, sizes, len(heads), rungs(len(candidates), n_folds), scores)
    kept = coupling_cost(len(heads), max(sizes), int(multiple * _ROUNDS)) if couples else OneTraining(0, 0.0)
    budget = Budget(reference(costs, wanted + kept.numbers, multiple), multiple, kept=kept)
    rule: Rule = asked.get("rule", AUTO_RULE if isinstance(given, str) else "one-standard-error")
    tuner = race(Tuner(terms, tuple(racing), sizes, len(heads), n_folds, budget, rule, scores), sites, terms.loss)
    assert tuner.choice is not None
    found = racing[tuner.choice.candidate]
    chosen_specs = tuple(
        replace(spec, radius=spec.radius * found.radius, label_flip_cost=found.label_flip_cost) for spec in specs
    )
    curve = tuple(replace(each, candidate=racing[each.candidate]) for each in tuner.scored)
    return Tuned(
        chosen_specs, found.mixture_radius, lifts[found.lift], lifts, curve, tuner.choice.why, budget.rounds,
        int(8 * tuner.told),
    )


def _lifts(
    asked: Mapping[str, Any], given: object, splines: Splines | None, lift: Lift | None, features: FloatArray,
    rows_by_class: FloatArray | None, *, target: bool,
) -> tuple[Lift | None, ...]:
    """The lifts that are tried, by number."""
    if "segments" not in asked:
        if given != "auto" or splines is None or lift is not None:
            return (lift,)
        n_features, scaled = features.shape[1], features.min() >= -_ROUNDING and features.max() <= 1.0 + _ROUNDING
        made: Mapping[AutomaticLift, Callable[[], Lift | None]] = {
            "none": lambda: None,
            "spline": lambda: splines(AUTO_SEGMENTS),
            "products": lambda: product_lift(n_features, range(n_features), squares=True),
            "products beside splines": lambda: product_lift(n_features, range(n_features), segments=AUTO_SEGMENTS),
        }
        kinds = automatic_lifts(n_features, rows_by_class, target=target, products=scaled)
        return tuple(made[each]() for each in kinds)
    if splines is None:
        raise ProblemError("segments are tuned with lift None or 'spline', and without a support")
    sizes = [whole_number("segments", each, least=0) for each in listed(asked["segments"])]
    return tuple(splines(each) if each else None for each in dict.fromkeys(sizes))


def _stated(table: Table, heads: FloatArray, specs: Sequence[RobustSpec]) -> dict[str, SiteProblem]:
    """Problems of all sites and heads, by both their numbers."""
    return {
        f"{g} {k}": table.problem(g, labels, spec) for g, spec in enumerate(specs) for k, labels in enumerate(heads)
    }


def _site(
    table: Table, site: int, rows: Sequence[tuple[SiteProblem, ...]], keys: FloatArray, n_folds: int, seed: int,
    unit: float,
) -> _Site:
    """Rows of a site with their folds, of whole machines where they are named; rows are dealt by ``keys`` (N, P)."""
    own = np.flatnonzero(table.site == site)
    outcomes, classes = table.outcomes[own], rows[0][0].spec.loss.task == "classification"
    strata = outcomes.astype(np.intp) if classes else np.zeros(len(own), dtype=np.intp)
    machine = None if table.machine is None else table.machine[own]
    dealt = deal(keys[own], strata, n_folds, seed, machine, least_train=1, least_test=1)
    n_classes = int(table.outcomes.max()) + 1 if classes else 0
    return _Site(tuple(rows), outcomes, table.counts[own], dealt, n_classes, unit)
