"""Whom a run on sums goes on without, where a cohort is no larger than a sum needs."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest

from services.coordinator.round_loop import summed_rounds
from services.coordinator.run_state.run_errors import TooFewSitesError
from services.coordinator.run_state.terms import cohorts_of
from tests.services.coordinator.fake_ports import FakePlant, FakeWorks
from tests.services.coordinator.round_loop.test_summed_rounds import away, on_sums
from tests.services.coordinator.round_loop.test_summed_rounds import works as works  # asked again at once

GONE = "plant-2"


@pytest.fixture
def six(works: FakeWorks, tmp_path: Path) -> FakeWorks:
    """As many plants as make two cohorts of three."""
    names = [f"plant-{number}" for number in range(1, 7)]
    return FakeWorks({name: FakePlant(name, tmp_path / "six" / name / "site.nk", k) for k, name in enumerate(names)})


def goes_away(works: FakeWorks) -> None:
    works.plants[GONE].behave = away(GONE, "agree", "prepare", "round", "unmask", rounds=range(3, 1000))


def test_of_a_cohort_of_three_the_one_that_is_away_is_left_out_and_the_others_join_the_next(six: FakeWorks) -> None:
    goes_away(six)
    run = on_sums(six)
    trained = six.train(run)
    after = six.store.get_run(run.run_id)
    assert [(each.site_id, each.code) for each in after.excluded] == [(GONE, "absent")]
    assert sorted(len(members) for members in cohorts_of(after).values()) == [5]
    assert trained.certificate.gap <= 1e-3 and set(trained.worst_weights) == six.plants.keys() - {GONE}


def test_who_is_away_together_is_waited_for_together(six: FakeWorks, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes at each look at the clock: one patience is 60 of them, however many are away."""
    seconds = itertools.count()
    monkeypatch.setattr(summed_rounds, "time", SimpleNamespace(monotonic=lambda: float(next(seconds))))
    gone = ("plant-2", "plant-4", "plant-5")
    for site in gone:
        six.plants[site].behave = away(site, "agree", "prepare", "round", "unmask", rounds=range(3, 1000))
    run = on_sums(six, absence_patience_seconds=60.0, max_rounds=5)
    six.train(run)
    assert sorted(each.site_id for each in six.store.get_run(run.run_id).excluded) == sorted(gone)
    assert 60 <= next(seconds) < 100


def test_a_run_that_ends_for_want_of_a_cohort_names_who_is_away_alone(works: FakeWorks) -> None:
    three = FakeWorks({site: plant for site, plant in works.plants.items() if site != "plant-4"})
    three.plants[GONE].behave = away(GONE, "agree", rounds=range(1, 1000))
    with pytest.raises(TooFewSitesError, match="^2 of the 3 sites that the plan needs are left: ") as told:
        three.train(on_sums(three))
    assert "plant-1" not in str(told.value) and "plant-3" not in str(told.value)
