"""A refusal is an answer of one bit, under no mask: it says nothing of the rows, or is given twice in a run at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.messages import Kind, SiteUpdate
from services.masking.unmasking import deliveries
from services.site_agent.limits.questions import Heads, check_sums
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.vault.records.told_models import PROBLEMS, REFUSED
from tests.services.site_agent.limits.test_questions import problem
from tests.services.site_agent.party import Party

METHOD = "level-bundle"
RULES = SitePolicy.model_validate(
    {"methods": (METHOD,), "asset_types": ("pump",), "messages": get_args(Kind), "reveal": ("each site",)}
)
RANGES = [100.0, 10.0, 4.0, 0.0, 10.0, 0.0]


def inside(wall: float) -> TrainingSpec:
    """The sensor ranges, and flow up to a wall."""
    walls = np.vstack([np.eye(3), -np.eye(3), [[1.0, 0.0, 0.0]]]).tolist()
    return TrainingSpec.model_validate({"support": {"matrix": walls, "limits": [*RANGES, wall]}})


def evaluated(site: Any, spec: TrainingSpec, run: str = "a" * 32, weight: float = 0.0) -> str:
    arrays = {"weights": np.array([[weight, 0.0, 0.0, 0.0]])}
    answer = site.ask("evaluate", run_id=run, method=METHOD, spec=spec, arrays=arrays)
    return "" if isinstance(answer, SiteUpdate) else str(answer.code)


def test_the_largest_reading_is_not_found_by_halving_where_rows_lie(make_site: Any) -> None:
    """Whether the rows lie in a polytope is a refusal; fifty of them were the largest flow to 12 digits."""
    site, low, high = make_site(policy=RULES), 0.0, 101.0
    for _ in range(60):
        middle = (low + high) / 2
        code = evaluated(site, inside(middle))
        if code not in ("bad_task", ""):
            break
        low, high = (middle, high) if code else (low, middle)
    assert high - low > 101.0 * 0.5 ** (PROBLEMS + 1)


def test_of_few_problems_a_run_is_told_anything_whatever_is_asked(make_site: Any) -> None:
    site = make_site(policy=RULES)
    radii = [TrainingSpec.model_validate({"radius": {"rule": "confidence", "confidence": 0.9, "seed": each}})
             for each in range(PROBLEMS + 1)]
    for spec in radii[:PROBLEMS]:
        assert isinstance(site.ask("join", spec=spec, method=METHOD), SiteUpdate)
    assert site.refusal_code("join", spec=radii[-1], method=METHOD) == "question_refused"
    assert isinstance(site.ask("join", spec=radii[0], method=METHOD), SiteUpdate), "a problem that is known"
    assert site.refusal_code("evaluate", spec=radii[-1], method=METHOD,
                             arrays={"weights": np.zeros((1, 4))}) == "question_refused"


def test_a_tuning_asks_about_as_many_candidates_as_a_grid_has(make_site: Any) -> None:
    site, spec = make_site(policy=RULES), TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.01}})

    def cut(factors: list[float], number: int) -> Any:
        parts = [{"radius": each, "label_flip_cost": 1.0, "lift": 0, "fold": 0} for each in factors]
        tuning = {"folds": 3, "seed": 5, "lifts": [None], "parts": parts, "scored": False}
        arrays = {f"point_{j}": np.zeros((1, 4)) for j in range(len(parts))}
        return site.ask("tune", round=number, method=METHOD, spec=spec, arrays=arrays, tuning=tuning)

    assert isinstance(cut([1.0 + each for each in range(60)], 1), SiteUpdate)
    assert isinstance(cut([1.0, 2.0], 2), SiteUpdate)
    assert cut([1.5], 3).code == "question_refused"


def test_after_two_refusals_that_may_be_of_the_rows_a_run_gets_nothing(make_site: Any) -> None:
    site, fine = make_site(policy=RULES), TrainingSpec()
    for wall in (1.0, 2.0)[:REFUSED]:
        assert evaluated(site, fine) == ""
        assert evaluated(site, inside(wall)) == "bad_task"
        assert evaluated(site, inside(wall)) in ("bad_task", "budget_spent"), "the same again is no further bit"
    assert evaluated(site, fine) == "budget_spent"
    assert evaluated(site, fine, "b" * 32) == "", "another run"


def test_scores_that_fit_no_sum_are_refused_twice_in_a_run_and_then_all_are(new_party: Callable[..., Party]) -> None:
    """Whether they fit is said under no mask: by halving it would be the plant's own risk at these weights."""
    party = new_party()
    party.agree()
    classes, codes = len(party.site.asset_type.fault_classes), list[str]()
    for number, weight in enumerate((1e12, 2e12, 0.0), start=1):
        given = deliveries(party.cohort, number, party.prepare(number))["plant-1"]
        arrays = {"weights": np.full((1 if classes == 2 else classes, 4), weight)}
        answer = party.ask("evaluate", given, round=number, arrays=arrays)
        codes.append("" if isinstance(answer, SiteUpdate) else str(answer.code))
    assert codes == ["bad_task", "bad_task", "budget_spent"]


def test_runs_of_refusals_alone_are_runs_of_the_day(make_site: Any) -> None:
    site = make_site(policy=RULES.model_copy(update={"max_runs_per_day": 3}))
    for each in "abc":
        assert evaluated(site, inside(1.0), each * 32) == "bad_task"
    assert evaluated(site, inside(1.0), "d" * 32) == "budget_spent"
    assert evaluated(site, inside(1.0), "a" * 32) == "bad_task", "a run that began"


def test_whether_a_risk_fits_a_sum_is_said_by_the_weights_alone() -> None:
    """That an answer was too large for a sum told, by halving, how large the plant's own risk is."""
    rows = [problem(seed=seed) for seed in (0, 1)]
    rows[1].features[:] *= 0.01
    fits = {
        tuple(fits_at(size * np.array([[1.0, -2.0, 0.5, 3.0]]), Heads((each,))) for size in np.geomspace(1, 1e7, 200))
        for each in rows
    }
    (verdicts,) = fits
    assert verdicts[0] and not verdicts[-1]


def fits_at(weights: np.ndarray, held: Heads) -> bool:
    try:
        check_sums([weights], held)
    except Refusal as refusal:
        assert refusal.refusal_code == "question_refused"
        return False
    return True
