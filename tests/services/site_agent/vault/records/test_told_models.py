"""Counts and errors at many models would put the rows together again: a run is told of as many as honest ones have."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.problems.tuning import MOST_CANDIDATES
from services.contracts.wire.messages import Kind, SiteRefusal, SiteUpdate
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import CsvSource
from services.site_agent.vault.records.told_models import EVALUATED, EXCHANGES

METHOD = "level-bundle"
FIXED = TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.01}})
RULES = SitePolicy.model_validate(
    {"methods": (METHOD,), "asset_types": ("pump",), "messages": get_args(Kind), "reveal": ("each site",)}
)


def scored(site: Any, weights: list[np.ndarray], number: int = 1, run: str = "a" * 32, **changes: Any) -> Any:
    """Counts of fold 0 at models (1, P + 1), in one exchange."""
    part = {"radius": 1.0, "label_flip_cost": 1.0, "lift": 0, "fold": changes.pop("fold", 0)}
    tuning = {"folds": 3, "seed": 5, "lifts": [None], "parts": [part] * len(weights), "scored": True} | changes
    arrays = {f"weights_{j}": each for j, each in enumerate(weights)}
    return site.ask("tune", round=number, run_id=run, method=METHOD, spec=FIXED, arrays=arrays, tuning=tuning)


def evaluated(site: Any, weights: np.ndarray, run: str = "a" * 32, **changes: Any) -> Any:
    return site.ask("evaluate", **{"round": 0, "run_id": run, "method": METHOD, "spec": FIXED} | changes,
                    arrays={"weights": weights})


def beyond(threshold: float) -> np.ndarray:
    """The plane that says leak of all rows whose flow is above a threshold."""
    return np.array([[1.0, 0.0, 0.0, -threshold]])


def reading_by_halving(site: Any, questions: int) -> float:
    """The largest flow of a fold, by so many questions at a time: how many rows of either class lie beyond a plane."""
    low, high, number = 0.0, 1.0, 0
    while high - low > 1e-12:
        number += 1
        places = np.linspace(low, high, questions + 2)[1:-1]
        answer = scored(site, [beyond(each) for each in places], number)
        if not isinstance(answer, SiteUpdate):
            break
        above = [answer.arrays[f"score_{j}"][:, 1].sum() > 0 for j in range(questions)]
        ends = [low, *places, high]
        low, high = ends[sum(above)], ends[sum(above) + 1]
    return high - low


def test_no_reading_is_found_by_halving(make_site: Any) -> None:
    """Ten questions at a time found a reading to 12 digits in a dozen exchanges, whatever the steepness allowed."""
    site = make_site(policy=RULES)
    assert reading_by_halving(site, 10) == pytest.approx(11.0**-EXCHANGES)


def test_a_fold_is_scored_at_as_many_models_as_a_grid_may_have(make_site: Any) -> None:
    site = make_site(policy=RULES)
    grid = [beyond(each) for each in np.linspace(0.2, 0.9, MOST_CANDIDATES)]
    first = scored(site, grid)
    assert isinstance(first, SiteUpdate) and len(first.arrays) == MOST_CANDIDATES
    assert isinstance(scored(site, grid, fold=1), SiteUpdate), "another fold has rows of its own"
    again = scored(site, grid, 2)
    assert isinstance(again, SiteUpdate), "a race that is run anew asks the same"
    more = scored(site, [*grid[1:], beyond(0.91)], 3)
    assert isinstance(more, SiteRefusal) and more.code == "question_refused"
    assert isinstance(scored(site, [beyond(0.91)], run="b" * 32), SiteUpdate), "a run of its own"


def test_a_fold_is_scored_at_once_and_not_by_what_was_counted_before(make_site: Any) -> None:
    site = make_site(policy=RULES)
    for place in range(EXCHANGES):
        assert isinstance(scored(site, [beyond(0.1 * place), beyond(0.5)], place + 1), SiteUpdate)
    assert isinstance(scored(site, [beyond(0.1), beyond(0.5)], 8), SiteUpdate), "the same exchange again"
    refused = scored(site, [beyond(0.9), beyond(0.5)], 9)
    assert isinstance(refused, SiteRefusal) and refused.code == "question_refused"


def test_what_is_one_too_many_leaves_nothing_of_its_exchange_counted(make_site: Any) -> None:
    site = make_site(policy=RULES)
    grid = [beyond(each) for each in np.linspace(0.2, 0.9, MOST_CANDIDATES + 1)]
    assert isinstance(scored(site, grid), SiteRefusal)
    assert isinstance(scored(site, grid[:-1], 2), SiteUpdate)


@pytest.mark.parametrize("other", [{"seed": 6}, {"folds": 4}])
@pytest.mark.parametrize("is_scored", [True, False])
def test_a_run_deals_the_rows_once(make_site: Any, other: dict[str, Any], is_scored: bool) -> None:
    """Sums over other folds of the same rows are further equations for them."""
    site = make_site(policy=RULES)
    assert isinstance(scored(site, [beyond(0.5)]), SiteUpdate)
    given = {"round": 2, "method": METHOD, "spec": FIXED}
    part = {"radius": 1.0, "label_flip_cost": 1.0, "lift": 0, "fold": 0}
    tuning = {"folds": 3, "seed": 5, "lifts": [None], "parts": [part], "scored": is_scored} | other
    arrays = {"weights_0" if is_scored else "point_0": np.full((1, 4), 0.1)}
    answer = site.ask("tune", arrays=arrays, tuning=tuning, **given)
    assert isinstance(answer, SiteRefusal) and answer.code == "question_refused"


def test_held_out_rows_are_evaluated_at_few_models_problems_and_intervals(make_site: Any) -> None:
    site = make_site(policy=RULES)
    for place in range(EVALUATED - 1):
        assert isinstance(evaluated(site, beyond(place / EVALUATED)), SiteUpdate)
    assert isinstance(evaluated(site, beyond(0.0)), SiteUpdate), "the same again"
    wider = FIXED.model_validate({**dict(FIXED), "radius": {"rule": "fixed", "value": 0.02}})
    assert isinstance(evaluated(site, beyond(0.0), spec=wider), SiteUpdate), "its risk over another ball: one more"
    refused = evaluated(site, beyond(0.99))
    assert isinstance(refused, SiteRefusal) and refused.code == "question_refused"


def test_neither_other_runs_nor_a_restart_begin_the_count_anew(make_site: Any) -> None:
    site = make_site(policy=RULES)
    for place in range(EVALUATED):
        assert isinstance(evaluated(site, beyond(place / EVALUATED)), SiteUpdate)
    for other in "bcdef0123":
        assert isinstance(evaluated(site, beyond(0.5), other * 32), SiteUpdate)
    assert isinstance(evaluated(site, beyond(0.99)), SiteRefusal)
    assert isinstance(evaluated(site.restarted(), beyond(0.99)), SiteRefusal)


def test_of_other_rows_a_run_may_ask_anew(make_site: Any, write_csv: Any, make_table: Any) -> None:
    site = make_site(policy=RULES)
    for place in range(EVALUATED):
        evaluated(site, beyond(place / EVALUATED))
    path = write_csv(make_table(120, seed=3), "later.csv")
    later = site.restarted(source=CsvSource(kind="csv", path=path))
    assert isinstance(evaluated(later, beyond(0.99)), SiteUpdate)
