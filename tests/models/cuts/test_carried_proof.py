"""What a run carries proves what it says: last digits that dropped cuts proved are not said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.cuts import carried_proof as subject
from models.cuts.bounds import record, tighten_lower_bound
from models.cuts.carried_proof import carried_proof
from models.cuts.evidence import Evidence
from models.cuts.lower_bound import BoundProof
from models.methods.catalogue import get_method
from models.methods.site_answers import RiskSite
from models.problem import RobustSpec, ServerProblem, SiteProblem
from models.simulation.federation import FIXED, server_problem
from tests.models.cuts.told import NAMES, answer_of, problem_of


def known(radius: float = 1e-2, away: frozenset[str] = frozenset()) -> tuple[Evidence, ServerProblem]:
    """Cuts of three sites at some points, and the bound that they prove; who is away answers the first three alone."""
    random = np.random.default_rng(4)
    sites = {}
    for name in "abc":
        rows = random.uniform(size=(30, 3))
        labels = np.where(rows @ [1.0, -1.0, 0.5] + 0.3 * random.normal(size=30) > 0.2, 1.0, -1.0)
        sites[name] = SiteProblem(rows, labels, RobustSpec(radius, 1.0, "l2"))
    problem = server_problem(sites, None, get_method("level-bundle"), {}, 1e-3, FIXED)
    evidence, point = Evidence.empty(problem), np.zeros(4)
    for number in range(12):
        here = [name for name in sites if number < 3 or name not in away]
        answers = {name: RiskSite().answer(sites[name], {"point": point}, {}) for name in here}
        evidence, minimiser = tighten_lower_bound(record(evidence, problem, point, answers), problem)
        point = 0.5 * (evidence.best_point + minimiser.point)
    return evidence, problem


@pytest.mark.parametrize(
    ("apart", "above", "is_said"),
    [(1e-4, 0.0, True), (1e-4, 3e-8, False), (1e-4, 5e-7, False), (1e-4, 3e-6, True), (1e-4, 1e-3, True),
     (3e-2, 2e-5, False), (3e-2, 4e-5, True)],
)
def test_no_more_is_said_than_is_proven_but_for_what_no_last_digits_explain(
    apart: float, above: float, is_said: bool
) -> None:
    """A millionth of the risk, or a thousandth of what the bounds are ``apart`` as a share of it."""
    evidence, problem = known()
    told = carried_proof(evidence, problem)
    evidence = replace(evidence, upper=evidence.lower * (1.0 + apart + above))
    assert told is not None and 0 < told.lower <= evidence.lower <= evidence.upper
    claimed = evidence.lower * (1.0 + above)
    found = carried_proof(replace(evidence, lower=claimed), replace(problem, gap=2.0 * apart))
    assert found is not None
    assert found.lower == pytest.approx(claimed if is_said else told.lower, rel=1e-12)
    # Short of its gap a run says what is proven, whatever is missing.
    short = carried_proof(replace(evidence, lower=claimed), replace(problem, gap=apart / 10.0))
    assert short is not None and short.lower == pytest.approx(told.lower, rel=1e-12)
    assert evidence.lower - 1e-6 * evidence.upper <= told.lower


def test_what_is_carried_has_a_multiplier_or_makes_a_floor() -> None:
    evidence, problem = known()
    told = carried_proof(evidence, problem)
    assert told is not None and told.centred is None and not told.spare.any()
    floors = np.array([evidence.cut_norm_weight[evidence.cut_site == g].max() for g in range(3)])
    np.testing.assert_array_equal([told.norm_weight[told.site == g].max() for g in range(3)], floors)
    idle = told.multipliers + told.around == 0
    assert told.site.size < evidence.cut_site.size and (np.bincount(told.site[idle], minlength=3) <= 1).all()


def test_of_a_site_that_is_away_all_cuts_are_carried() -> None:
    """It enters the upper bound by the highest of them, wherever the lower bound has use for it."""
    evidence, problem = known(away=frozenset("b"))
    told = carried_proof(evidence, problem)
    assert told is not None and np.isnan(told.risks).tolist() == [False, True, False]
    for g, every in ((0, False), (1, True), (2, False)):
        assert ((told.site == g).sum() == (evidence.cut_site == g).sum()) == every


def test_without_a_norm_the_cuts_of_the_centre_alone_are_spared_by_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Risks ``max(1/2, |w|_inf - 1/5)``: the flat cuts prove 1/2, and it takes the others to bound the best weights."""
    problem = problem_of()
    evidence = record(Evidence.empty(problem), problem, np.zeros(3), {name: answer_of(0.5) for name in NAMES})
    for slope in np.vstack([np.eye(3), -np.eye(3)]):
        evidence = record(evidence, problem, slope, {name: answer_of(0.8, slope) for name in NAMES})
    flat = np.where(evidence.cut_slope.any(axis=1), 0.0, 0.2)
    monkeypatch.setattr(subject, "strongest_proof", lambda *_: BoundProof(0.5, flat, flat))
    told = carried_proof(replace(evidence, lower=0.5), problem)
    assert told is not None and told.lower == pytest.approx(0.5, rel=1e-9) and told.upper == pytest.approx(0.5)
    np.testing.assert_array_equal(told.spare, told.slope.any(axis=1))
    plain, beside = told.plain(), told.around_the_centre()
    assert not plain.slope.any() and plain.site.tolist() == [0, 1, 2, 3, 4] and plain.centred is None
    assert beside is not None and told.centred is not None and beside.site.size == 35
    assert (beside.around > 0).all() and not np.array_equal(beside.around, beside.multipliers)


@pytest.mark.parametrize(
    ("fall", "size", "within"), [(1e-9, 1.0, 4096), (1e-9, 5000.0, 8192), (1e-10, 1e5, 2**17), (1e-3, 1.0, None)]
)
def test_what_single_answers_prove_of_no_weights_but_near_ones_is_carried(
    fall: float, size: float, within: int | None
) -> None:
    """``max(9/10 + w_1, 9/10 - w_1) - fall w_2``: over all weights it has no least, up to ``within`` nearly 9/10."""
    problem = problem_of(gap=0.1)
    evidence, best = Evidence.empty(problem), np.array([0.0, -size, 0.0])
    for slope in ([1.0, -fall, 0.0], [-1.0, -fall, 0.0]):
        evidence = record(evidence, problem, best, {name: answer_of(0.9 + fall * size, slope) for name in NAMES})
    claimed = 0.9 - 2e-5
    told = carried_proof(replace(evidence, lower=claimed, upper=0.95, best=0), problem)
    assert told is not None and told.lower == pytest.approx(claimed, abs=3e-5)
    assert (float(told.multipliers @ told.offset) > 0.8) == (within is not None)
    unproven = carried_proof(replace(evidence, lower=0.0, upper=0.95, best=0), problem)
    assert unproven is not None
    assert unproven.lower == pytest.approx(0.0 if within is None else 0.9 - fall * within, abs=1e-6)
