"""What the last runs revealed, by plant: alone or in a sum, of how many, in how many rounds; never too little said."""

from __future__ import annotations

from typing import Any

import pytest

from api.console.views.privacy import PlantExposure, privacy
from services.contracts.history.run import ExcludedSite, Run, RunStart, SiteTermsRecord, SummedSites

SITES = tuple(f"plant-{number}" for number in range(1, 8))


def a_run(number: int, sites: tuple[str, ...], *, rounds: int = 4, exposed: float | None = None, **changes: Any) -> Run:
    """The run of this number; later ones have higher ones."""
    plan = {"name": "weekly", "asset_type": "pump"} | changes.pop("plan", {})
    terms = tuple(
        SiteTermsRecord(site_id=site, weight=1 / len(sites), radius=1.0, n_samples=9, exposed=exposed) for site in sites
    )
    return Run.model_validate({
        "run_id": f"{number:032x}", "plan": plan, "status": "completed", "rounds": rounds, "sites": terms,
        "created_at": f"2031-01-{number:02}T00:00:00Z", "updated_at": f"2031-01-{number:02}T00:00:00Z",
    } | changes)


@pytest.fixture
def shown(shared_world: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the page says of runs, the newest of them first, by plant."""

    def show(*runs: Run) -> tuple[list[int | None], dict[str, PlantExposure]]:
        backend = shared_world.backend
        monkeypatch.setattr(type(backend.store.runs), "list_runs", lambda *_, limit: list(runs)[:limit])
        found = privacy(backend, real=True)
        assert [each.run for each in found.runs] == [run for run in runs if run.sites]
        return [each.cohort for each in found.runs], {each.name: each for each in found.plants}

    return show


def test_runs_and_rounds_are_counted_in_the_mode_that_they_had(shown: Any) -> None:
    alone = a_run(2, SITES[:2], rounds=5, plan={"reveal": "each site"})
    sums = a_run(1, SITES[:3], rounds=7)
    cohorts, plants = shown(alone, sums, a_run(3, ()))
    assert cohorts == [None, 3]
    one, last = plants["plant-1"], plants["plant-3"]
    assert (one.alone, one.rounds_alone, one.in_sums, one.rounds_in_sums, one.smallest_cohort) == (1, 5, 1, 7, 3)
    assert (last.alone, last.rounds_alone, last.in_sums, last.rounds_in_sums) == (0, 0, 1, 7)
    assert list(plants) == ["plant-1", "plant-2", "plant-3"], "who was seen alone most comes first"
    _, plants = shown(a_run(1, ("plant-9", "plant-1")), a_run(2, ("plant-9",), plan={"reveal": "each site"}))
    assert list(plants) == ["plant-9", "plant-1"]


def test_the_smallest_cohort_is_told_of_a_run_and_of_a_plant_over_all_runs(shown: Any) -> None:
    of_four = {"name": "a", "sites": SITES[:4]}, {"name": "b", "sites": SITES[4:]}
    start = RunStart.model_validate({"contract": "", "cohorts": of_four})
    cohorts, plants = shown(a_run(2, SITES, start=start), a_run(1, SITES[:5], plan={"min_cohort": 5}))
    assert cohorts == [3, 5]
    assert [plants[site].smallest_cohort for site in SITES] == [4, 4, 4, 4, 3, 3, 3]


def test_what_a_plant_told_last_of_its_exposed_rows_counts(shown: Any) -> None:
    untold = a_run(3, SITES[:3])
    _, plants = shown(untold, a_run(2, SITES[:3], exposed=0.25), a_run(1, SITES[:3], exposed=0.5))
    assert {plants[site].exposed for site in SITES[:3]} == {0.25}
    assert shown(untold)[1]["plant-1"].exposed is None


def gone(site: str) -> ExcludedSite:
    return ExcludedSite(site_id=site, round=2, code="implausible", reason="it cannot be true")


def test_a_plant_that_a_run_on_sums_goes_on_without_was_not_seen_alone(shown: Any) -> None:
    """Nor do the others' cohorts look larger than they were before or are since."""
    dealt = SummedSites(name="a", sites=SITES[:4]), SummedSites(name="b", sites=SITES[4:])
    start = RunStart(contract="", cohorts=dealt)
    # Where a cohort falls below three plants the others join the next one: they are in a sum of six since.
    for lost, sizes in ((SITES[0], [4, 3, 3, 3, 3, 3, 3]), (SITES[6], [4, 4, 4, 4, 3, 3, 3])):
        _, plants = shown(a_run(1, SITES, start=start, excluded=(gone(lost),)))
        assert [plants[site].smallest_cohort for site in SITES] == sizes
        assert {(plants[site].alone, plants[site].in_sums) for site in SITES} == {(0, 1)}


@pytest.mark.parametrize("changes", [{"excluded": (gone(SITES[0]),)}, {"plan": {"min_cohort": 4}}], ids=str)
def test_a_run_on_sums_of_too_few_plants_showed_none_alone(shown: Any, changes: dict[str, Any]) -> None:
    """It ends there; the page must not."""
    _, plants = shown(a_run(1, SITES[:3], status="failed", **changes))
    assert {(each.alone, each.rounds_alone, each.in_sums) for each in plants.values()} == {(0, 0, 1)}
