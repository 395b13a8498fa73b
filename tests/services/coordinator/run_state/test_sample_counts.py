"""Where weights go by rows, a claim that cannot be believed does not count, and no plant outweighs all others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from services.contracts.errors import InvalidInputError
from services.coordinator.asking.poll import Poll
from services.coordinator.run_state.run_errors import TooFewSitesError
from services.coordinator.run_state.sample_counts import UnlikeClaimsError, capped, with_samples_held

LIAR = "plant-4"


def claiming(rows: float) -> Any:
    return lambda task, arrays: arrays | {"n_samples": np.array(float(rows))} if task.kind == "join" else arrays


def test_a_million_rows_are_not_believed_and_the_run_goes_on(works: Any) -> None:
    works.plants[LIAR].falsify = claiming(1e6)
    run = works.run(min_sites=3, site_weights="samples")
    trained = works.train(run)
    run = works.store.get_run(run.run_id)
    assert [site.site_id for site in run.sites] == ["plant-1", "plant-2", "plant-3"]
    (told,) = run.absentees
    assert (told.site_id, told.status, told.code) == (LIAR, "rejected", "implausible")
    assert "it has 1,000,000 rows, the others have 40 in the median" in told.reason
    assert "believes up to 100 times as many" in told.reason and "\n" not in told.reason
    assert trained.certificate.gap <= 1e-3


def test_with_weights_that_do_not_go_by_rows_a_claim_changes_nothing(works: Any) -> None:
    works.plants[LIAR].falsify = claiming(1e6)
    assert {site.weight for site in works.join(works.run()).sites} == {0.25}
    settings = {f"plant-{k}": {"weight": 0.25} for k in range(1, 5)}
    explicit = works.join(works.run(site_weights="samples", site_settings=settings))
    assert {site.weight for site in explicit.sites} == {0.25}


def test_a_site_that_the_plan_gives_no_weight_is_said_before_anybody_is_asked(works: Any) -> None:
    """It was enrolled after the plan, which names no sites, was written."""
    settings = {f"plant-{k}": {"weight": weight} for k, weight in enumerate((0.25, 0.25, 0.5), 1)}
    with pytest.raises(InvalidInputError, match="give a weight for every site .* none for plant-4"):
        works.join(works.run(site_settings=settings))
    assert not any(plant.asked for plant in works.plants.values())


@pytest.mark.parametrize(("changed", "new", "believed"), [(1.0, 100.0, True), (1e6, 1e6, False)])
def test_who_is_not_believed_speaks_against_nobody_and_for_nobody(changed: float, new: float, believed: bool) -> None:
    """Four plants of six whose tables were cut, or grew, in one night; the seventh is new."""
    told = {"a": 100.0, "b": 100.0, "new": new} | dict.fromkeys("cdef", changed)
    before = {"a": 100, "b": 100} | dict.fromkeys("cdef", 10_000)
    updates: Any = {site: SimpleNamespace(arrays={"n_samples": np.array(rows)}) for site, rows in told.items()}
    plan: Any = SimpleNamespace(site_weights="samples", explicit_weights={}, sample_factor=10.0)
    kept = with_samples_held(Poll(updates, (), 0.0, {}), plan, before).updates
    assert set(kept) == ({"a", "b", "new"} if believed else {"a", "b"})


def test_without_enough_others_the_run_ends_with_one_line(works: Any) -> None:
    works.plants[LIAR].falsify = claiming(1e6)
    with pytest.raises(TooFewSitesError, match=r"3 of the 4 sites .* answered to join .*plant-4: it says that it has"):
        works.join(works.run(min_sites=4, site_weights="samples"))


@pytest.mark.parametrize(("rows", "believed"), [(4000, True), (4001, False)])
def test_the_bound_is_the_plans_factor(works: Any, rows: int, believed: bool) -> None:
    works.plants[LIAR].falsify = claiming(rows)
    run = works.join(works.run(min_sites=3, site_weights="samples"))
    assert len(run.sites) == 3 + believed
    wider = works.join(works.run(min_sites=3, site_weights="samples", sample_factor=200))
    assert len(wider.sites) == 4


def test_a_claim_is_held_to_those_of_the_others_alone(works: Any) -> None:
    """Half of four plants have a row each: with its own claim among them a plant would lift what it is held to."""
    for site, rows in (("plant-1", 1), ("plant-2", 1), (LIAR, 1000)):
        works.plants[site].falsify = claiming(rows)
    run = works.join(works.run(min_sites=3, site_weights="samples"))
    assert [site.site_id for site in run.sites] == ["plant-1", "plant-2", "plant-3"]


def test_a_plant_believed_weighs_half_at_most(works: Any) -> None:
    works.plants[LIAR].falsify = claiming(4000)
    weights = {site.site_id: site.weight for site in works.join(works.run(site_weights="samples")).sites}
    assert weights[LIAR] == pytest.approx(0.5) and sum(weights.values()) == pytest.approx(1.0)
    assert weights["plant-1"] == pytest.approx(0.5 / 3)
    free = works.join(works.run(site_weights="samples", largest_share=1.0))
    assert {site.site_id: site.weight for site in free.sites}[LIAR] == pytest.approx(4000 / 4120)


@pytest.mark.parametrize(("rows", "believed"), [(4001, False), (4000, True), (40, True), (39, False)])
def test_rows_that_changed_since_the_run_before_by_more_than_the_factor(
    works: Any, rows: int, believed: bool
) -> None:
    plan = {"min_sites": 3, "site_weights": "samples", "sample_factor": 10.0}
    for name in works.plants:
        works.plants[name].falsify = claiming(400)
    before = works.join(works.run(**plan))
    works.store.finish_run(before.run_id, "completed", "")
    for name in works.plants:
        works.plants[name].falsify = claiming(1200)
    works.plants[LIAR].falsify = claiming(rows)
    run = works.join(works.run(**plan))
    assert (LIAR in {site.site_id for site in run.sites}) == believed
    if not believed:
        assert f"it has {rows:,} rows, in the run before it were 400" in run.absentees[0].reason
        assert "believes a change up to 10-fold" in run.absentees[0].reason


def two(works: Any, *rows: float) -> None:
    """Two plants alone, with these claims."""
    for name in ("plant-2", "plant-3"):
        del works.plants[name]
    for name, each in zip(("plant-1", LIAR), rows, strict=True):
        works.plants[name].falsify = claiming(each)


@pytest.mark.parametrize("rows", [(40, 4001), (4001, 40), (1, 101)])
def test_of_two_plants_whose_claims_are_too_far_apart_neither_is_believed(works: Any, rows: tuple[int, int]) -> None:
    two(works, *rows)
    with pytest.raises(UnlikeClaimsError) as found:
        works.join(works.run(site_weights="samples"))
    claims = (f"{name} says that it has {each:,} rows" for name, each in zip(("plant-1", LIAR), rows, strict=True))
    assert str(found.value).startswith(" and ".join(claims))
    assert "of two neither is believed over the other" in str(found.value) and "\n" not in str(found.value)


def test_two_plants_within_the_factor_or_whose_weights_do_not_go_by_rows_take_part(works: Any) -> None:
    two(works, 40, 4000)
    assert len(works.join(works.run(site_weights="samples")).sites) == 2
    works.plants[LIAR].falsify = claiming(4001)
    assert len(works.join(works.run()).sites) == 2
    assert len(works.join(works.run(site_weights="samples", sample_factor=200)).sites) == 2


def test_of_two_plants_the_one_whose_number_changed_is_not_believed(works: Any) -> None:
    """Then somebody else than the other plant speaks against it: it itself, in the run before."""
    names = ("plant-2", "plant-3")
    kept = {name: works.plants.pop(name) for name in names}
    before = works.join(works.run(site_weights="samples"))
    works.store.finish_run(before.run_id, "completed", "")
    works.plants[LIAR].falsify = claiming(1e6)
    run = works.join(works.run(site_weights="samples"))
    assert [site.site_id for site in run.sites] == ["plant-1"]
    assert "in the run before it were 40" in run.absentees[0].reason and len(kept) == 2


def test_two_that_a_third_leaves_are_two(works: Any) -> None:
    del works.plants["plant-3"]
    for name, rows in (("plant-1", 1), ("plant-2", 200), (LIAR, 40000)):
        works.plants[name].falsify = claiming(rows)
    with pytest.raises(UnlikeClaimsError, match="has 1 rows and plant-2 says that it has 200 rows"):
        works.join(works.run(site_weights="samples"))


@pytest.mark.parametrize(
    ("weights", "largest", "wanted"),
    [
        ([0.9, 0.06, 0.04], 0.5, [0.5, 0.3, 0.2]),
        ([0.5, 0.3, 0.2], 0.5, [0.5, 0.3, 0.2]),
        ([0.6, 0.35, 0.04, 0.01], 0.4, [0.4, 0.4, 0.16, 0.04]),
        ([0.6, 0.28, 0.06, 0.06], 0.4, [0.4, 0.4, 0.1, 0.1]),
        ([0.98, 0.01, 0.01], 0.1, [1 / 3, 1 / 3, 1 / 3]),
        ([0.7, 0.3], 0.5, [0.7, 0.3]),
        ([1.0], 0.5, [1.0]),
        ([0.9, 0.06, 0.04], 1.0, [0.9, 0.06, 0.04]),
    ],
)
def test_no_share_is_above_the_largest_and_the_rest_is_dealt(
    weights: list[float], largest: float, wanted: list[float]
) -> None:
    found = capped({str(k): weight for k, weight in enumerate(weights)}, largest)
    assert list(found.values()) == pytest.approx(wanted)
