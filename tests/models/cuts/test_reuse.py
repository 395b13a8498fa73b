"""Cuts that a later run takes over: below the risk everywhere, of unchanged sites alone, and to the same optimum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.basics import FloatArray
from models.cohorts.dealing import cohort_problem, cohort_shares, deal
from models.cohorts.regrouping import regroup
from models.cuts.cut_model import CutModel
from models.cuts.evidence import EARLIER_RUN, Evidence, cut_model, with_answers
from models.cuts.reuse import MOST_REUSED, reused_cuts, without_reused
from models.problem import RobustSpec, SiteProblem
from models.simulation.ended import Ended
from models.simulation.federation import Training, train
from models.worst_case.risk import site_risk
from tests.models.cuts import told
from tests.models.cuts.told import answer_of, problem_of

NAMES = tuple(f"plant-{number}" for number in range(12))
CHANGED = ("plant-1", "plant-4", "plant-8")
MODES = {"each site": "level-bundle", "sums": "cohort-bundle"}


def plants(seed: int, changed: tuple[str, ...] = ()) -> dict[str, SiteProblem]:
    found = {}
    for number, name in enumerate(NAMES):
        draw = np.random.default_rng([seed, number])
        count = 24 + 2 * number
        labels = np.where(draw.random(count) < 0.5, 1.0, -1.0)
        rows = labels[:, None] * np.array([0.5, -0.3, 0.1]) + 0.1 * number + 0.6 * draw.standard_normal((count, 3))
        if name in changed:  # other rows altogether: a cut of before is far above the new risk somewhere
            rows, labels = rows[:18] * 0.4 - 0.3, -labels[:18]
        found[name] = SiteProblem(rows, labels, RobustSpec(1.0 / (10 * len(rows)), 1.0))
    return found


def weeks(seed: int, reveal: str) -> tuple[dict[str, SiteProblem], Training, Training, dict[str, Any]]:
    """The plants of the second week, both trainings, and how the second was asked for."""
    before, after = plants(seed), plants(seed, CHANGED)
    cohorts = deal(NAMES, 3, seed) if reveal == "sums" else None
    first = train(before, method=MODES[reveal], gap=1e-3, cohorts=cohorts)
    now = None if cohorts is None else regroup(cohorts, NAMES, CHANGED, 3, seed)
    given = {"method": MODES[reveal], "gap": 1e-3, "cohorts": now, "after": first.end}
    return after, first, train(after, **given, unchanged=set(NAMES) - set(CHANGED)), given


def model_of(end: Ended | None, cohorts: Any) -> tuple[CutModel, list[tuple[str, ...]], Any]:
    assert end is not None
    problem = end.problem if cohorts is None else cohort_problem(end.problem, cohorts)
    groups = [(site.site_id,) for site in problem.sites] if cohorts is None else list(cohorts.values())
    return cut_model(end.state.evidence, problem), groups, problem


def heights_above_risk(end: Ended | None, sites: dict[str, SiteProblem], cohorts: Any, earlier: bool) -> FloatArray:
    """By how much cuts lie above the exact risk of their site, or cohort, at drawn points; the most of each cut."""
    assert end is not None
    model, groups, _ = model_of(end, cohorts)
    stated = end.units.stated(sites)
    shares = dict.fromkeys(stated, 1.0) if cohorts is None else cohort_shares(end.problem, cohorts)
    points = np.random.default_rng(3).normal(size=(40, 4)) * np.array([2.0, 2.0, 2.0, 0.7])
    heights = model.heights(points)
    risks = np.array([
        [sum(shares[site] * site_risk(point, stated[site]).value for site in group) for group in groups]
        for point in points
    ])
    wanted = (end.state.evidence.cut_round == EARLIER_RUN) == earlier
    return np.asarray((heights - risks[:, model.site])[:, wanted].max(axis=0))


@pytest.mark.parametrize(("reveal", "seed"), [("each site", 1), ("each site", 2), ("sums", 1)])
def test_reused_cuts_lie_below_the_risks_of_now_and_lead_to_the_same_optimum(reveal: str, seed: int) -> None:
    after, _, warm, given = weeks(seed, reveal)
    above = heights_above_risk(warm.end, after, given["cohorts"], earlier=True)
    assert above.size > 0 and above.max() <= 1e-9
    exact = train(after, gap=1e-9).certificate
    assert warm.certificate.lower <= exact.upper and exact.lower <= warm.certificate.upper
    assert warm.certificate.gap <= 1e-3
    zero = train(after, method=MODES[reveal], gap=1e-3, cohorts=given["cohorts"])
    assert warm.n_rounds <= zero.n_rounds


@pytest.mark.parametrize("reveal", MODES)
def test_cuts_of_a_changed_plant_would_lie_above_its_risk_and_are_dropped(reveal: str) -> None:
    after, first, warm, given = weeks(4, reveal)
    cohorts = None if reveal == "each site" else deal(NAMES, 3, 4)
    old = heights_above_risk(first.end, after, cohorts, earlier=False)
    assert old.max() > 0.1, "the rows changed so much that it would show"
    assert heights_above_risk(warm.end, after, given["cohorts"], earlier=True).max() <= 1e-9
    assert warm.end is not None
    evidence = warm.end.state.evidence
    kept = set(evidence.cut_site[evidence.cut_round == EARLIER_RUN].astype(int))
    _, groups, _ = model_of(warm.end, given["cohorts"])
    assert kept and not {site for place in kept for site in groups[place]} & set(CHANGED)


def test_other_terms_of_a_site_drop_its_cuts_though_its_rows_are_the_same() -> None:
    before = plants(5)
    first = train(before, gap=1e-3)
    harder = {
        name: replace(site, spec=replace(site.spec, label_flip_cost=2.0)) if name == "plant-2" else site
        for name, site in before.items()
    }
    warm = train(harder, gap=1e-3, after=first.end, unchanged=set(NAMES))
    assert warm.end is not None
    evidence = warm.end.state.evidence
    kept = {NAMES[int(site)] for site in evidence.cut_site[evidence.cut_round == EARLIER_RUN]}
    assert kept == set(NAMES) - {"plant-2"}


def test_nothing_but_cuts_is_taken_over_and_the_state_survives_storing() -> None:
    first = train(plants(6), gap=1e-3)
    assert first.end is not None
    evidence, problem = first.end.state.evidence, first.end.problem
    warm = reused_cuts(evidence, problem, [*range(8), -1, *range(9, 12)])
    assert (warm.upper, warm.lower, warm.best, warm.exchanges, len(warm.points)) == (np.inf, 0.0, -1, 0, 0)
    assert warm.scale == evidence.scale > 0 and 8 not in warm.cut_site
    back = Evidence.unpack(warm.pack())
    assert back.scale == warm.scale and (back.cut_offset == warm.cut_offset).all()
    without = without_reused(replace(warm, lower=0.3), 2)
    assert without.lower == 0.0 and set(without.cut_site) == set(warm.cut_site) - {2.0}


def test_weeks_do_not_pile_up() -> None:
    first = train(plants(7), method="level-bundle", gap=1e-3)
    assert first.end is not None
    evidence = first.end.state.evidence
    times = np.tile(np.arange(evidence.cut_site.size), 20)
    many = replace(evidence, **{
        name: getattr(evidence, name)[times]
        for name in ("cut_site", "cut_offset", "cut_slope", "cut_norm_weight", "cut_swing", "cut_round", "cut_used")
    })
    warm = reused_cuts(many, first.end.problem, range(12))
    assert np.bincount(warm.cut_site.astype(int)).max() <= MOST_REUSED + 1


def test_of_many_cuts_those_that_counted_last_are_taken_over_and_the_one_that_makes_the_floor() -> None:
    problem, draw = problem_of(), np.random.default_rng(4)
    evidence, count = Evidence.empty(problem), 2 * MOST_REUSED
    for _ in range(count):
        answers = {name: answer_of(1.0, draw.normal(size=3), 0.01) for name in told.NAMES[:2]}
        evidence = with_answers(evidence, problem, draw.normal(size=3), answers)
    # Used in turns of eight, so that of cuts that were used as lately the newer ones count.
    used, rounds = np.floor(draw.permutation(2 * count) / 8.0), draw.permutation(2 * count) + 1.0
    of_site = [np.flatnonzero(evidence.cut_site == g) for g in (0, 1)]
    steep = [own[int(np.argmin(used[own]))] for own in of_site]
    norm_weight = np.where(np.isin(np.arange(2 * count), steep), 0.05, 0.01)
    evidence = replace(evidence, cut_used=used, cut_round=rounds, cut_norm_weight=norm_weight)
    warm = reused_cuts(evidence, problem, range(5))
    for g, (own, floor) in enumerate(zip(of_site, steep, strict=True)):
        latest = sorted(own, key=lambda cut: (used[cut], rounds[cut]))[-MOST_REUSED:]
        assert floor not in latest
        expected = sorted([*latest, floor])
        np.testing.assert_array_equal(warm.cut_slope[warm.cut_site == g], evidence.cut_slope[expected])
