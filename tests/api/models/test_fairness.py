"""Fairness endpoints: the report, its pictures and its page, and who sees which names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from api.models import queries
from services.contracts.access.identity import Role
from services.contracts.evaluation.fairness import FairnessReport
from services.reporting.fairness_report import fairness_report
from tests.api.conftest import a_version, register

PATH = "/v1/models/pumps/versions/champion/fairness"


def test_the_report_has_sites_indices_and_notes(shared_world: Any) -> None:
    answer = shared_world.call(Role.ADMINISTRATOR, "GET", PATH)
    assert answer.status_code == 200
    report = answer.json()
    assert {site["site_id"] for site in report["sites"]} == {"plant-east", "plant-west"}
    (indices,) = report["indices"]
    assert (indices["basis"], indices["n_sites"], indices["relative_unfairness"]) == ("worst_case_risk", 2, 1)
    assert any("figures of 2 sites only" in note for note in report["notes"])


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
@pytest.mark.parametrize("form", ["", ".svg", ".html"])
def test_only_administrators_see_which_plant_it_is(shared_world: Any, role: Role, form: str) -> None:
    assert "plant-" not in shared_world.call(role, "GET", PATH + form).text
    if form != ".svg":
        assert "plant-east" in shared_world.call(Role.ADMINISTRATOR, "GET", PATH + form).text


@pytest.mark.parametrize(
    ("form", "kind"), [(".svg", "image/svg+xml"), (".png", "image/png"), (".html", "text/html; charset=utf-8")]
)
def test_pictures_and_page(shared_world: Any, form: str, kind: str) -> None:
    answer = shared_world.call(Role.VIEWER, "GET", PATH + form)
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    assert len(answer.content) > 1000


def test_an_unknown_version_is_not_found(shared_world: Any) -> None:
    assert shared_world.call(Role.VIEWER, "GET", "/v1/models/pumps/versions/99/fairness").status_code == 404


def test_the_bound_on_new_data_is_by_the_versions_own_run_and_left_out_without_it(
    world: Any, a_model: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def noted(*told: Any) -> FairnessReport:
        given.append(told)
        return fairness_report(*told)

    monkeypatch.setattr(queries, "fairness_report", noted)
    backend = world.backend
    first, second = a_model(backend, "beside", 0.9, 0.8)
    backend.store.model_versions.record_alias("beside", "champion", first, "me", "best")
    backend.registry.point("beside", "champion", first)
    assert queries.fairness(backend, "beside", second).champion_version == first
    ((version, champion, run),) = given
    assert run.run_id == version.run_id != champion.run_id
    lone = register(backend.registry, a_version("by-hand", "cd" * 16))
    assert queries.fairness(backend, "by-hand", lone).generalisation is None and given[-1][-1] is None
