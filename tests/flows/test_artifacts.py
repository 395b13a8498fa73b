"""What Prefect's pages are given of a run: who answered and missed, the rounds of its chart, and how far it is."""

from __future__ import annotations

import asyncio
import base64
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from prefect.logging import disable_run_logger

from flows import artifacts
from flows import progress as progress_module
from flows.artifacts import MOST_POINTS, RunBoard
from flows.progress import Progress
from services.contracts.history.run import ExcludedSite, Run, SiteTermsRecord
from services.contracts.plans.plan import Plan
from tests.versions import a_round, an_answer
from tests.waiting import PATIENCE

RUN_ID = "a" * 32


def a_run(**plan: Any) -> Run:
    now = datetime.now(UTC)
    return Run(
        run_id=RUN_ID, plan=Plan.model_validate({"name": "nightly", "asset_type": "rig"} | plan), status="running",
        created_at=now, updated_at=now,
        sites=tuple(SiteTermsRecord(site_id=site, weight=0.5, radius=0.1, n_samples=9) for site in ("a", "b")),
    )


def test_a_plants_row_counts_each_way_of_missing_and_its_last_answer() -> None:
    ways = ("absent", "late", "refused_by_site", "rejected", "excluded")
    board = RunBoard(a_run(), [a_round(RUN_ID, 1, an_answer("a"), an_answer("b"))])
    for number, way in enumerate(ways, start=2):
        board.note(a_round(RUN_ID, number, an_answer("a"), an_answer("b", status=way)))
    board.note(a_round(RUN_ID, 7, an_answer("a", status="open"), an_answer("c")))
    first, second, third = board.table()
    assert (first["answered"], first["missed"], first["last answer"]) == (6, 0, 6)
    assert (second["answered"], second["missed"], second["last answer"]) == (1, 5, 1)
    assert {way: second[way] for way in ways} == dict.fromkeys(ways, 1)
    assert (third["plant"], third["weight"], third["last answer"]) == ("c", 0.0, 7), "who is no member is listed too"


def test_a_plant_that_was_left_out_before_it_answered_has_a_row() -> None:
    left_out = ExcludedSite.of_record(an_answer("b", status="excluded", code="x", reason="y"), round=1)
    run = a_run().model_copy(update={"excluded": (left_out,)})
    assert [(row["plant"], row["weight"]) for row in RunBoard(run).table()] == [("a", 1.0), ("b", 0.0)]


async def test_table_and_chart_of_a_run_are_two_that_are_brought_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    made, updated = list[UUID](), list[UUID]()

    async def create(*_: object) -> UUID:
        made.append(uuid4())
        return made[-1]

    async def update_artifact(artifact_id: UUID, _: object) -> None:
        updated.append(artifact_id)

    @asynccontextmanager
    async def client() -> AsyncIterator[Any]:
        yield SimpleNamespace(update_artifact=update_artifact)

    told = {"acreate_table_artifact": create, "acreate_image_artifact": create, "get_client": client}
    for name, stand_in in told.items():
        monkeypatch.setattr(artifacts, name, stand_in)
    board = RunBoard(a_run(), [a_round(RUN_ID, 1, an_answer("a"))])
    for _ in range(3):
        await board.write()
    assert len(made) == 2 and updated == made * 2


@pytest.mark.parametrize("fails", ["acreate_table_artifact", "acreate_image_artifact"])
async def test_a_page_that_prefect_does_not_take_ends_no_run(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    made = list[str]()
    for name in ("acreate_table_artifact", "acreate_image_artifact"):

        async def create(*_: object, name: str = name) -> UUID:
            if name == fails:
                raise httpx.ConnectError("away")
            made.append(name)
            return uuid4()

        monkeypatch.setattr(artifacts, name, create)
    await RunBoard(a_run(), [a_round(RUN_ID, 1, an_answer("a"))]).write()
    assert len(made) == 1, "the other page is written all the same"


def test_a_long_runs_chart_has_each_nth_round_and_the_last() -> None:
    for rounds in (1, MOST_POINTS, MOST_POINTS + 1, 3 * MOST_POINTS + 7):
        board = RunBoard(a_run(), [a_round(RUN_ID, n, upper=1.0, gap=1.0 / n) for n in range(1, rounds + 1)])
        svg = base64.b64decode(board.chart().partition("base64,")[2]).decode()
        points = svg.partition('<polyline points="')[2].partition('"')[0].split()
        every = math.ceil(rounds / MOST_POINTS)
        assert len(points) == math.ceil(rounds / every) <= MOST_POINTS
        assert f"<title>round {rounds}:" in svg, "the last round is drawn"


@pytest.mark.parametrize(
    ("number", "gap", "percent"),
    [
        (1, 1e-1, 1.0), (10, 1e-2, 50.0), (10, 1e-1, 10.0), (60, 1e-2, 60.0), (3, 1e-3, 99.0), (100, 0.5, 99.0),
        (5, math.inf, 5.0), (5, 0.0, 5.0),
    ],
)
def test_a_run_is_as_far_as_its_gap_on_a_logarithmic_scale_or_its_rounds(
    number: int, gap: float, percent: float
) -> None:
    with disable_run_logger():
        progress = Progress(a_run(max_rounds=100, gap=1e-3))
    progress._first_gap = 1e-1
    assert progress.percentage(a_round(RUN_ID, number, gap=gap)) == pytest.approx(percent)


async def no_page(*_: object, **__: object) -> UUID:
    return uuid4()


async def test_a_prefect_that_hangs_holds_up_no_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for once, and then left alone for as long again ten times."""
    asked, clock = list[str](), iter(range(1000, 2000, 2))

    def hangs(name: str) -> Any:
        async def ask(*_: object, **__: object) -> None:
            asked.append(name)
            await asyncio.sleep(PATIENCE)

        return ask

    monkeypatch.setattr(artifacts, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(progress_module, "acreate_progress_artifact", hangs("progress"))
    for name in ("acreate_table_artifact", "acreate_image_artifact"):
        monkeypatch.setattr(artifacts, name, hangs(name))
    monkeypatch.setattr(progress_module, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    with disable_run_logger():
        progress = Progress(a_run(max_rounds=100, gap=1e-3))
        for number in range(1, 6):
            await asyncio.wait_for(progress(a_round(RUN_ID, number, gap=0.1)), PATIENCE)
    assert asked.count("progress") == 1, "each moment that the clock is looked at is two seconds later"


async def test_rounds_that_come_faster_than_pages_are_written_are_all_counted(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    for name in ("acreate_progress_artifact", "aupdate_progress_artifact"):
        monkeypatch.setattr(progress_module, name, no_page)
    for name in ("acreate_table_artifact", "acreate_image_artifact"):
        monkeypatch.setattr(artifacts, name, no_page)
    with disable_run_logger():
        progress = Progress(a_run(max_rounds=100, gap=1e-3))
        for number in range(1, 6):
            await progress(a_round(RUN_ID, number, an_answer("a"), gap=0.1))
    assert progress._board.table()[0]["answered"] == 5


async def test_the_way_to_a_version_tells_each_figure_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, ...]] = []

    async def link(*given: str) -> None:
        made.append(given)

    monkeypatch.setattr(artifacts, "acreate_link_artifact", link)
    version: Any = SimpleNamespace(
        name="pumps", version="7", certified_gap=8e-4, worst_case_risk=0.25, f1=0.0, mae=None
    )
    await artifacts.link_to_version(version, "https://ballast/console", "version 7 is champion")
    assert made == [(
        "https://ballast/console/models/pumps/versions/7", "model pumps version 7", "version-pumps",
        "certified gap 0.0008, worst-case risk 0.25, F-1 0. version 7 is champion.",
    )]
