"""The list of runs, and what a live page of one is told: how many, of whom, and from which round on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from types import SimpleNamespace
from typing import Any

import pytest

from api.console.endpoints import runs
from services.contracts.access.identity import Role
from tests import versions
from tests.api.conftest import a_plan


def listed(text: str) -> list[str]:
    """Runs of a page, in its order."""
    return list(dict.fromkeys(re.findall(r'href="/console/runs/([0-9a-f]{32})"', text)))


def test_a_list_of_runs_goes_on_where_there_are_more_and_is_of_what_was_asked_for(
    world: Any, signed_in: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    person, store = signed_in(world, Role.VIEWER), world.backend.store.runs
    monkeypatch.setattr(runs, "PAGE", 3)
    for number in range(6):
        store.create_run(a_plan("valves" if number % 2 else "seals"), f"{number:032x}")
        store.finish_run(f"{number:032x}", "failed" if number < 4 else "cancelled", "a test")
    whole = [f"{number:032x}" for number in range(5, -1, -1)]
    first, second = (person.get(f"/console/runs?offset={offset}").text for offset in (0, 3))
    assert listed(first) == whole[:3] and listed(second) == whole[3:]
    assert "offset=3" in first
    valves = person.get("/console/runs?plan=valves").text
    assert listed(valves) == whole[::2] and "offset=3" not in valves, "three are a whole page, and all"
    assert listed(person.get("/console/runs?plan=valves&status=failed").text) == [whole[2], whole[4]]
    assert person.get("/console/runs?status=lost").status_code == 422
    monkeypatch.setattr(runs, "PAGE", 1)
    here = "/console/runs?plan=valves&status=failed"
    (older,) = re.findall(r'rel="next" href="([^"]+)"', person.get(here).text)
    further = person.get(unescape(older)).text
    assert listed(further) == [whole[4]], "the next page is of what was asked for, too"
    assert 'value="valves"' in further and "<option selected>failed</option>" in further


def test_a_live_page_is_told_each_round_once_and_the_end(
    world: Any, signed_in: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    person, store, run_id = signed_in(world, Role.VIEWER), world.backend.store.runs, "34" * 16
    store.create_run(a_plan("valves"), run_id)
    store.begin_run(run_id, ())

    def commit(number: int) -> None:
        store.commit_round(versions.a_round(run_id, number), {})

    async def pause(_: float) -> None:
        if store.get_run(run_id).rounds == 3:
            store.request_cancel(run_id)
            store.finish_run(run_id, "cancelled", "a test")
        else:
            commit(3)

    commit(1)
    commit(2)
    store.set_doing(run_id, "training <b>")
    assert '<small id="told-doing">training &lt;b&gt;</small>' in person.get(f"/console/runs/{run_id}").text
    monkeypatch.setattr(runs, "asyncio", SimpleNamespace(sleep=pause))

    def heard(headers: dict[str, str], query: str = "") -> list[Any]:
        answer = person.get(f"/console/runs/{run_id}/events{query}", headers=headers)
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["X-Accel-Buffering"] == "no", "a proxy collects no pieces"
        return [json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line.startswith("data")]

    *told, end = heard({"Last-Event-ID": "1"})
    assert [each["round"] for each in told] == [[2], [3], []] and end == {"reason": "cancelled"}
    assert [(each["status"], each["doing"], each["rounds"], each["cancelling"]) for each in told] == [
        ("running", "training <b>", 2, False), ("running", "training <b>", 3, False), ("cancelled", "", 3, True),
    ]
    for query, header, rounds in (("", "", [1, 2, 3]), ("?after=2", "", [3]), ("?after=2", "1", [3]),
                                  ("?after=1", "2", [3]), ("", "x", [1, 2, 3]), ("", "9" * 12, [1, 2, 3])):
        assert heard({"Last-Event-ID": header} if header else {}, query)[0]["round"] == rounds, (query, header)
    assert person.get("/console/runs/nothing/events").status_code == 404


def test_each_line_of_two_runs_has_the_name_and_the_figures_of_one(
    world: Any, signed_in: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    person, store, drawn = signed_in(world, Role.VIEWER), world.backend.store.runs, []
    for run_id, plan, gap in (("56" * 16, "valves", 0.5), ("78" * 16, "seals", 0.25)):
        store.create_run(a_plan(plan), run_id)
        store.begin_run(run_id, ())
        store.commit_round(versions.a_round(run_id, 1, gap=gap), {})

    def draw(_: str, lines: list[Any], *__: str, **___: bool) -> str:
        drawn.extend(lines)
        return ""

    monkeypatch.setattr(runs, "line_chart", draw)
    assert person.get(f"/console/runs/compare?left={'56' * 16}&right={'78' * 16}").status_code == 200
    assert {line.name: line.points for line in drawn} == {
        "valves 56565656": [(1, 0.5)], "seals 78787878": [(1, 0.25)],
    }
