"""Of lifts that anybody can draw anew a plant tells few numbers a row, over all runs, and the account says it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest

from services.contracts.problems.lift import LiftSpec, ProductLiftSpec, SplineLiftSpec, draw_lift
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.problems.tuning_task import TuningTask
from services.contracts.wire.messages import Kind, SiteUpdate
from services.site_agent.limits.told_lifts import FIRST_WAVES, LEAST_SEGMENTS, ToldLifts, counted
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.rules.policy_file import default_policy_text
from services.site_agent.settings import CsvSource
from services.site_agent.vault.dataset import Part
from services.site_agent.vault.records.exposure_record import ExposureRecord
from services.site_agent.vault.records.lift_record import LiftRecord
from services.site_agent.vault.records.version_rows import VersionRows
from tests.ledgers import verified

METHOD = "level-bundle-plain"
RULES = SitePolicy.model_validate(
    {"methods": (METHOD,), "asset_types": ("pump",), "messages": get_args(Kind), "reveal": ("each site",)}
)
ROWS = 76
"""Training rows of a site of the fixture."""
RUNS = [f"{each:032x}" for each in range(20)]


def waves(components: int, seed: int = 0, bandwidth: float = 0.05) -> dict[str, Any]:
    return {"kind": "fourier", "components": components, "bandwidth": bandwidth, "seed": seed, "keep_linear": False}


def stated(lift: dict[str, Any] | None) -> TrainingSpec:
    return TrainingSpec.model_validate({"lift": lift, "radius": {"rule": "fixed", "value": 0.001}})


def asked(site: Any, lift: dict[str, Any] | None, run: str = "a" * 32, kind: Kind = "round") -> Any:
    """A task about zero weights under a lift."""
    spec = stated(lift)
    size = 4 if spec.lift is None else spec.lift.size(3) + 1
    arrays = {"round": {"point": np.zeros((1, size))}, "evaluate": {"weights": np.zeros((1, size))}}.get(kind, {})
    return site.ask(kind, run_id=run, method=METHOD, spec=spec, arrays=arrays)


def code(site: Any, lift: dict[str, Any] | None, run: str = "a" * 32, kind: Kind = "round") -> str:
    answer = asked(site, lift, run, kind)
    return "" if isinstance(answer, SiteUpdate) else str(answer.code)


def scores(site: Any, count: int, components: int) -> tuple[np.ndarray, int]:
    """Label times score of each training row, by waves under zero weights, and how many waves were told."""
    train, told, total = site.door._vault.current().train, np.zeros(ROWS), 0
    for seed in range(count):
        answer = asked(site, waves(components, seed, 0.004), RUNS[seed // 4])
        if not isinstance(answer, SiteUpdate):
            continue
        lift = draw_lift(stated(waves(components, seed, 0.004)).lift, 3)
        assert lift is not None
        sums = -ROWS * answer.arrays["slope"][0]  # of label times each wave in [0, 1], and of the labels
        told += (2.0 * lift.apply(train.features) - 1.0) @ (2.0 * sums[:-1] - sums[-1])
        total += components
    return np.where(train.classes == 1, 2.0, -2.0) * told / total, total


def test_who_asks_one_question_under_waves_without_end_learns_who_is_there(make_site: Any) -> None:
    """At zero weights all vectors have the coefficients -y / N, so that the account took them for one."""
    open_site = make_site(folder="open", policy=RULES.model_copy(update={"lift_limit": 1000.0}))
    members, told = scores(open_site, 12, 1000)
    assert told == 12000 and members.mean() == pytest.approx(1.0, abs=0.05)
    assert members.std() < 0.12 and members.min() > 0.6, "every row is there, with its label"
    site = make_site(policy=RULES)
    members, told = scores(site, 12, 25)
    assert told == 150 <= 2 * ROWS and members.std() > 0.5, "as much noise as there is of a row"


def test_waves_count_over_all_runs_and_those_of_before_count_once(make_site: Any) -> None:
    site = make_site(policy=RULES)
    assert [code(site, waves(50, seed), RUNS[seed]) for seed in range(4)] == ["", "", "", "exposure_limit"]
    assert code(site, waves(2, 9), RUNS[5]) == "", "to the last wave"
    assert code(site, waves(1, 10), RUNS[6]) == "exposure_limit"
    assert [code(site, waves(50, seed), RUNS[7]) for seed in range(3)] == [""] * 3, "what was told is told again"
    assert code(site, None, RUNS[8]) == "" and code(site, {"kind": "spline", "segments": 6}, RUNS[9]) == ""
    answer = asked(site, waves(1, 10), RUNS[6])
    assert "take the lift of an earlier run, or one with fewer components" in answer.reason


def test_neither_a_restart_nor_another_policy_begins_the_count_anew_and_other_rows_do(
    make_site: Any, write_csv: Any, make_table: Any
) -> None:
    site = make_site(policy=RULES)
    assert code(site, waves(150)) == ""
    changed: list[dict[str, Any]] = [{}, {"policy": RULES.model_copy(update={"lift_limit": 1.0})}]
    for changes in changed:
        site.restarted(**changes)
        assert code(site, waves(150), RUNS[1]) == "" and code(site, waves(10, 1), RUNS[2]) == "exposure_limit"
    later = CsvSource(kind="csv", path=write_csv(make_table(100, seed=3), "later.csv"))
    assert code(site.restarted(source=later), waves(50, 1)) == ""


def test_rows_that_stay_are_told_under_few_lifts_whatever_versions_of_the_data_they_are_in(
    make_site: Any, write_csv: Any, make_table: Any
) -> None:
    """A row more each week, or the same ones in another order, began the count anew: ten weeks told who is there."""
    site, (header, *rows) = make_site(policy=RULES), make_table(100)

    def later(name: str, changed: list[Any]) -> None:
        site.restarted(source=CsvSource(kind="csv", path=write_csv([header, *changed], name)))

    assert code(site, waves(150)) == ""
    later("order.csv", rows[::-1])
    assert code(site, waves(50, 1), RUNS[1]) == "exposure_limit"
    later("more.csv", [*rows, [55.5, 1.5, 2.5, "leak"]])
    assert code(site, waves(50, 1), RUNS[2]) == "exposure_limit"
    assert code(site, waves(150), RUNS[3]) == "", "the lift of an earlier run"
    later("half.csv", [*rows[60:], *make_table(60, seed=3)[1:]])
    assert code(site, waves(50, 1), RUNS[4]) == "", "more than half of the rows are others"
    later("again.csv", rows)
    assert code(site, waves(50, 2), RUNS[5]) == "exposure_limit"


@pytest.mark.parametrize("kind", ["join", "round", "evaluate"])
def test_a_lift_that_is_too_large_is_refused_from_the_join_on_and_counts_for_nothing(
    make_site: Any, kind: Kind
) -> None:
    site = make_site(policy=RULES)
    assert code(site, waves(FIRST_WAVES + 1), kind=kind) == "exposure_limit"
    assert code(site, waves(FIRST_WAVES), kind=kind) == "", "an evaluation's risk, at small weights, is a wave too"
    assert code(site, waves(1, 1), RUNS[1]) == "exposure_limit"


def test_the_first_lift_alone_may_be_as_large_as_an_honest_plan_has_it(make_site: Any, make_table: Any) -> None:
    site = make_site(policy=RULES)
    assert code(site, waves(2)) == "" and code(site, waves(2 * ROWS - 1, 1), RUNS[1]) == "exposure_limit"
    few = make_site(make_table(30), folder="few", policy=RULES)
    rows = len(few.door._vault.current().train)
    assert code(few, waves(5 * rows + 1)) == "exposure_limit" and code(few, waves(5 * rows), RUNS[1]) == ""
    none = make_site(folder="none", policy=RULES.model_copy(update={"lift_limit": 0.0}))
    assert code(none, waves(1)) == "exposure_limit"


def test_kernels_count_with_the_waves(make_site: Any) -> None:
    site = make_site(policy=RULES)
    drawn = {"kind": "nystrom", "components": 20, "bandwidth": 0.5, "keep_linear": False}
    assert [code(site, drawn | {"seed": seed}, RUNS[seed]) for seed in range(8)] == [""] * 7 + ["exposure_limit"]
    assert code(site, {"kind": "nystrom", "points": [[0.5, 0.5, 0.5]] * 13, "bandwidth": 0.1}, RUNS[9]) != ""


def test_splines_of_all_numbers_of_segments_would_have_every_reading(make_site: Any) -> None:
    site = make_site(policy=RULES)
    assert code(site, {"kind": "spline", "segments": LEAST_SEGMENTS}) == "", "each spline that a plan may have"
    assert code(site, {"kind": "spline", "segments": 2}, RUNS[1]) == "exposure_limit"
    other = make_site(folder="other", policy=RULES)
    honest = [2, 3, 4, 5, 6, 8, 10, 12]
    assert [code(other, {"kind": "spline", "segments": each}, RUNS[each]) for each in honest] == [""] * 8
    products = {"kind": "products", "features": [0, 1, 2], "segments": 6}
    assert code(other, products, RUNS[13]) == "", "the same segments, beside products"
    assert code(other, products | {"segments": 20}, RUNS[14]) == "exposure_limit"
    for run, chosen in zip(RUNS[15:], ([0, 1], [0, 2], [1, 2], [0, 1, 2]), strict=False):
        assert code(other, {"kind": "products", "features": chosen}, run) == "", "the same moments in every list"


def test_lifts_of_a_tuning_count_where_a_part_is_told_under_them(make_site: Any) -> None:
    site = make_site(policy=RULES)

    def tuned(numbers: list[int], run: str, number: int = 1) -> str:
        parts = [{"radius": 1.0, "label_flip_cost": 1.0, "lift": each, "fold": 0} for each in numbers]
        tuning = {"folds": 3, "seed": 5, "lifts": [None, waves(60, 1), waves(60, 2), waves(60, 3)], "parts": parts,
                  "scored": False}
        arrays = {f"point_{j}": np.zeros((1, 61 if each else 4)) for j, each in enumerate(numbers)}
        spec = stated(None)
        answer = site.ask("tune", round=number, run_id=run, method=METHOD, spec=spec, arrays=arrays, tuning=tuning)
        return "" if isinstance(answer, SiteUpdate) else str(answer.code)

    assert tuned([0, 1, 2], RUNS[0]) == ""
    assert tuned([3], RUNS[0], 2) == "exposure_limit"
    assert tuned([0, 1, 2], RUNS[1]) == ""
    assert code(site, waves(32, 4), RUNS[2]) == "" and code(site, waves(1, 5), RUNS[3]) == "exposure_limit"


def test_what_is_told_under_waves_counts_for_every_row(make_site: Any) -> None:
    site = make_site(policy=RULES)
    asked(site, None)
    asked(site, waves(5), RUNS[1])
    figures = [entry["exposure"] for entry in verified(site.folder / "ledger.jsonl") if entry["message"] == "update"]
    assert [(each["unaccounted"], each["by_pairs"]) for each in figures] == [(0, 0), (1, ROWS)]
    strict = make_site(folder="strict", policy=RULES.model_copy(update={"allow_unaccounted": False}))
    assert code(strict, waves(5)) == "exposure_limit" and code(strict, None, RUNS[1]) == ""
    assert "allow_unaccounted = false answers under no lift" in asked(strict, waves(5), RUNS[2]).reason


def test_a_plan_that_runs_every_week_and_one_that_is_changed_ten_times_go_through() -> None:
    lifts = ToldLifts(LiftRecord(None), VersionRows(None, b""), SitePolicy())
    assert lifts.most("waves", 200) == 400 and lifts.most("segments", 200) == 64 and lifts.most("segments", 2000) == 500
    plans: list[LiftSpec] = [SplineLiftSpec(kind="spline", segments=each) for each in (2, 3, 4, 5, 6, 8, 10, 12)]
    plans += [ProductLiftSpec(kind="products", features=(0, 1), segments=each) for each in (1, 6)]
    assert sum(counted(plans, 3)["segments"].values()) <= LEAST_SEGMENTS
    assert "lift_limit = 2.0" in default_policy_text(("pump",))


def test_a_record_of_before_is_read_and_gets_the_count(tmp_path: Path) -> None:
    path = tmp_path / "exposure.sqlite"
    ExposureRecord(path).close()
    record = LiftRecord(path)
    assert record.told("d", "waves") == {}
    record.add("d", "waves", {"one": 5})
    record.add("d", "waves", {"one": 5, "two": 7})
    record.close()
    again = LiftRecord(path)
    assert again.told("d", "waves") == {"one": 5, "two": 7} and again.told("e", "waves") == {}
    assert ExposureRecord(path).latest() is None


@pytest.mark.parametrize(
    ("sizes", "linear", "fits"),
    [((150,), False, True), ((150,), True, True), ((151,), False, False), ((75, 75), False, False)],
)
def test_as_large_as_the_first_is_one_lift_alone_and_its_waves_alone_count(
    sizes: tuple[int, ...], linear: bool, fits: bool
) -> None:
    """A tuning tells of all its lifts at once: together they are as many equations as one after the other."""
    tuning = TuningTask.model_validate({
        "folds": 3, "seed": 1, "scored": False,
        "lifts": [waves(size, seed) | {"keep_linear": linear} for seed, size in enumerate(sizes)],
        "parts": [{"radius": 1.0, "label_flip_cost": 1.0, "fold": 0, "lift": lift} for lift in range(len(sizes))],
    })
    task: Any = SimpleNamespace(spec=SimpleNamespace(lift=None), tuning=tuning)
    told = ToldLifts(LiftRecord(None), VersionRows(None, b""), RULES)
    train = Part(np.random.default_rng(0).random((30, 3)), np.zeros(30, np.intp), np.full(30, np.nan))
    if fits:
        told.check(task, "rows", 3, 30, train)
        told.check(task, "rows", 3, 30, train)
        return
    with pytest.raises(Refusal, match="would be told under 15[01] components"):
        told.check(task, "rows", 3, 30, train)
    told.close()
