"""Weekly retrainings through a real NATS server: what is reused, what is not, and that the model is the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from models.cuts.evidence import EARLIER_RUN
from models.multiclass import head_labels
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import train
from services.contracts.history.run import RoundRecord, Run
from services.coordinator.run_state.terms import cohorts_of
from services.verification.certificate_file import read_certificate
from tests.flows.conftest import RIG, small_plants, write_rows

PLANTS = tuple(f"plant-{number}" for number in range(1, 10))
FEW = PLANTS[:4]
CHANGED = ("plant-2", "plant-5", "plant-9")
GAP = 1e-3
MODES = {"each site": "level-bundle", "sums": "cohort-bundle"}


@pytest.fixture
def works(tmp_path: Path, new_sqlite: Any, opening_works: Any) -> Iterator[Any]:
    with opening_works(tmp_path, new_sqlite(), RIG, small_plants(tmp_path, PLANTS)) as opened:
        yield opened


@pytest.fixture
def few(tmp_path: Path, new_sqlite: Any, opening_works: Any) -> Iterator[Any]:
    """A works without cohorts, where how many plants there are does not matter."""
    with opening_works(tmp_path, new_sqlite(), RIG, small_plants(tmp_path, FEW)) as opened:
        yield opened


def three_change(works: Any, first: Run) -> tuple[str, ...]:
    """Give three plants other rows, so that one cohort of three has no change; who they are."""
    found: tuple[str, ...] = CHANGED
    if first.plan.reveal == "sums":
        one, two, _ = cohorts_of(first).values()
        found = (*one[:2], two[0])
    for site in found:
        write_rows(works.sources[site].path, 1, 64)
    return tuple(sorted(found))


def least_risk(works: Any, plants: tuple[str, ...] = PLANTS) -> float:
    """Least worst-case risk of the plants' rows as they are now, from exact answers in one process."""
    sites = {}
    for site in plants:
        rows = works.dataset(site).train
        labels = head_labels(rows.classes, 2)[0]
        sites[site] = SiteProblem(rows.features, labels, RobustSpec(1.0 / (10 * len(rows)), 1.0))
    return train(sites, gap=1e-9).certificate.upper


def earlier_cuts(works: Any, run: Run) -> set[str]:
    """Plants, or cohorts, with a cut of an earlier run in what is kept of a run."""
    kept = works.context.store.runs.load_end(run.run_id)
    names = [site.site_id for site in run.members] if run.plan.reveal == "each site" else list(cohorts_of(run))
    return {names[int(site)] for site in kept["cut_site"][0][kept["cut_round"][0] == EARLIER_RUN]}


@pytest.mark.parametrize("reveal", MODES)
def test_a_week_with_three_changed_plants_takes_few_rounds_to_the_same_model(works: Any, reveal: str) -> None:
    plan = works.plan("weekly", reveal=reveal, method=MODES[reveal], gap=GAP)
    first, zero, version = works.train(plan, registered=False)
    assert version.reused is None and first.start is not None and first.start.after is None
    changed = three_change(works, first)
    run, warm, version = works.train(plan)
    assert run.start.after == first.run_id and warm.certificate.gap <= GAP
    assert warm.rounds <= min(6, zero.rounds)
    reused = set(version.reused.sites)
    assert version.reused.run_id == first.run_id and reused and not reused & set(changed)
    if reveal == "sums":
        before = {frozenset(members) for members in cohorts_of(first).values()}
        now = cohorts_of(run)
        assert changed in now.values(), "who changed is in a cohort together"
        assert {now[name] for name in earlier_cuts(works, run)} <= {tuple(sorted(each)) for each in before}
    else:
        assert reused == set(PLANTS) - set(changed) == earlier_cuts(works, run)
    assert warm.certificate.lower <= least_risk(works) <= warm.certificate.upper * (1 + 1e-9)
    assert works.context.store.runs.load_end(first.run_id) is None, "only the last end is kept"
    kept = works.context.registry.get(version.name, version.version)
    assert kept.reused == version.reused and kept.certificate_sha256
    certificate = read_certificate(works.context.registry.certificate(kept))
    assert certificate.earlier_run == first.run_id
    of_earlier = {certificate.site_ids[place] for place in certificate.heads[0].site[certificate.heads[0].earlier]}
    assert of_earlier and of_earlier <= earlier_cuts(works, run)


def test_the_same_rows_take_one_round_and_other_terms_start_anew(few: Any) -> None:
    works = few
    plan = works.plan("again", gap=1e-4)
    first, _, _ = works.train(plan, registered=False)
    # A cut that stands in for one that would tell a row may be looser the second time, by no more than this.
    _, again, version = works.train(plan.model_copy(update={"gap": 2e-4}), registered=False)
    assert again.rounds == 1 and set(version.reused.sites) == set(FEW)
    spec = plan.spec.model_copy(update={"label_flip_cost": 0.7})
    other, anew, version = works.train(plan.model_copy(update={"spec": spec}), registered=False)
    assert version.reused is None and anew.rounds > 1 and earlier_cuts(works, other) == set()
    assert first.run_id != other.run_id


def test_a_run_that_is_killed_after_its_first_round_goes_on_with_what_it_took_over(works: Any) -> None:
    plan = works.plan("killed", reveal="sums", method="cohort-bundle", gap=GAP)
    first, _, _ = works.train(plan, registered=False)
    changed = three_change(works, first)
    run, store = works.context.store.runs.create_run(plan), works.context.store.runs

    async def killed() -> None:
        async def die(record: RoundRecord) -> None:
            raise KeyboardInterrupt

        async with works._plants(()), works.context.plant_link() as transport:
            coordinator = works.context.coordinator(run, transport)
            joined = await coordinator.join(run)
            with pytest.raises(KeyboardInterrupt):
                await coordinator.train(joined, die)

    asyncio.run(killed())
    begun = store.get_run(run.run_id)
    assert begun.rounds == 1 and begun.start is not None and begun.start.after == first.run_id
    ended, warm, version = asyncio.run(works._train_run(begun, (), registered=False))
    assert warm.certificate.gap <= GAP and warm.rounds <= 6
    assert version.reused.run_id == first.run_id and not set(version.reused.sites) & set(changed)
    assert warm.certificate.lower <= least_risk(works) <= warm.certificate.upper * (1 + 1e-9)
    assert ended.start == begun.start


def test_a_digest_is_keyed_stable_and_only_told_where_the_policy_says_so(few: Any) -> None:
    works = few
    plan = works.plan("told")
    runs = [works.train(plan, registered=False)[0] for _ in range(2)]
    told = [works.context.store.runs.get_digests(run.run_id) for run in runs]
    assert told[0] == told[1] and len(set(told[0].values())) == len(FEW)
    ledger = works.context.settings.home / "plants" / "plant-1" / "ledger.jsonl"
    joins = [line for line in map(json.loads, ledger.read_text().splitlines()) if line.get("kind") == "join"]
    assert {line["data_digest"] for line in joins} == {told[0]["plant-1"]}
    door = works.doors["plant-1"]
    door._beside._policy = door._beside._policy.model_copy(update={"tell_unchanged": False})
    _, _, version = works.train(plan, registered=False)
    assert set(version.reused.sites) == set(FEW) - {"plant-1"}


def test_a_plant_that_lies_about_its_digest_loses_its_old_cuts_and_convicts_nobody(few: Any) -> None:
    works = few
    plan = works.plan("liar", gap=1e-4)
    works.train(plan, registered=False)
    door = works.doors["plant-3"]
    said = door._beside._digest
    task_digest = works.context.store.runs.get_digests(works.context.store.runs.list_runs(plan="liar")[0].run_id)
    door._beside._digest = lambda *given: task_digest["plant-3"]
    write_rows(works.sources["plant-3"].path, 2, 90)
    run, warm, version = works.train(plan, registered=False)
    door._beside._digest = said
    assert run.excluded == () and warm.certificate.gap <= 1e-4
    assert "plant-3" not in version.reused.sites
    assert warm.certificate.lower <= least_risk(works, FEW) <= warm.certificate.upper * (1 + 1e-9)
