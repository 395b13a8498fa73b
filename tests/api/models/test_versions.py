from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from services.contracts.access.identity import Role
from services.contracts.versions.report import ModelReport
from services.registry.gates import check_gates
from services.reporting.model_report import model_report

REAL_NAMES = ("plant-east", "plant-west", "plant-north")


def get(world: Any, path: str, role: Role = Role.ADMINISTRATOR) -> Any:
    answer = world.call(role, "GET", path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_models_and_their_versions(shared_world: Any) -> None:
    (model,) = [model for model in get(shared_world, "/v1/models")["models"] if model["name"] == "pumps"]
    assert (model["champion"], model["challenger"], model["asset_type"]) == ("1", "1", "triplex-pump")
    detail = get(shared_world, "/v1/models/pumps")
    assert {key: detail[key] for key in model} == model
    assert [version["version"] for version in detail["versions"]] == ["1"]


def test_a_version_shows_its_certificates_sites_and_gates(shared_world: Any) -> None:
    by_alias = get(shared_world, "/v1/models/pumps/versions/champion")
    assert by_alias == get(shared_world, "/v1/models/pumps/versions/1")
    assert by_alias["certified_gap"] == 8e-4
    assert (by_alias["worst_case_risk"], by_alias["lower_bound"]) == (0.25, 0.2498)
    assert [site["site_id"] for site in by_alias["sites"]] == ["plant-east", "plant-west"]
    assert {gate["name"]: gate["holds"] for gate in by_alias["gates"]} == {"max_gap": True, "min_site_f1": True}
    assert "weights" not in by_alias


def forget_runs(world: Any) -> None:
    with world.backend.store.engine.execution_options(ballast_writes=True).begin() as connection:
        for table in ("run_state_parts", "run_states", "site_updates", "rounds", "model_versions", "runs"):
            connection.execute(text(f"DELETE FROM {table}"))


def test_a_version_whose_run_is_gone_has_no_gates_and_keeps_its_report(world: Any) -> None:
    path = "/v1/models/pumps/versions/1"
    before = get(world, f"{path}/report")
    forget_runs(world)
    assert get(world, path)["gates"] is None
    assert get(world, f"{path}/report") == before


def test_a_report_that_the_registry_has_not_is_made_from_the_run(world: Any, a_registered: Callable[..., Any]) -> None:
    version, run, rounds = a_registered(world.backend, "unreported")
    path = f"/v1/models/unreported/versions/{version.version}/report"
    made = ModelReport.model_validate(get(world, path))
    assert made == model_report(version, run, rounds, check_gates(run.plan.gates, version))
    forget_runs(world)
    assert world.call(Role.VIEWER, "GET", path).status_code == 404


def test_a_report_is_the_contract_and_a_page(shared_world: Any) -> None:
    report = ModelReport.model_validate(get(shared_world, "/v1/models/pumps/versions/1/report"))
    assert report.certificate.gap == 8e-4
    assert [(missed.round, missed.site_id) for missed in report.missed] == [(2, "plant-west")]
    page = shared_world.call(Role.ADMINISTRATOR, "GET", "/v1/models/pumps/versions/1/report.html")
    assert page.headers["content-type"].startswith("text/html")
    assert "plant-west" in page.text
    assert "http://" not in page.text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize(
    "path",
    [
        "/v1/runs", f"/v1/runs/{'ab' * 16}", f"/v1/runs/{'ab' * 16}/rounds", "/v1/models/pumps/versions/1",
        "/v1/models/pumps/versions/1/report", "/v1/models/pumps/versions/1/report.html",
    ],
)
def test_viewers_see_pseudonyms_and_others_names(shared_world: Any, role: Role, path: str) -> None:
    shown = shared_world.call(role, "GET", path).text
    seen = [name for name in REAL_NAMES if name in shown]
    pseudonyms = [name for name in REAL_NAMES if shared_world.backend.pseudonyms.name("pumps", name) in shown]
    if role is Role.VIEWER:
        assert (seen, bool(pseudonyms)) == ([], True)
    else:
        assert (bool(seen), pseudonyms) == (True, [])


def test_a_site_has_the_same_pseudonym_in_all_that_a_viewer_sees_of_a_model(shared_world: Any) -> None:
    run = get(shared_world, f"/v1/runs/{'ab' * 16}", Role.VIEWER)
    version = get(shared_world, "/v1/models/pumps/versions/1", Role.VIEWER)
    assert {site["site_id"] for site in run["sites"]} == {site["site_id"] for site in version["sites"]}
