"""Fair methods from a plan to a version: their notes, the fairness report over REST, its gate, and a resumed run."""

from __future__ import annotations

import asyncio
import csv
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from anyio.from_thread import start_blocking_portal
from httpx import ASGITransport, AsyncClient, Response

from api.app import create_app
from api.backend.actor import Actor
from api.backend.wiring import open_backend
from api.tokens import service as tokens
from api.tokens.schemas import TokenRequest
from flows.publish import closing_note, promote_if_gates_hold, why_stopped
from models.fairness.ambiguity_set import RelativeSet
from models.fairness.indices import relative_unfairness
from services.contracts.access.identity import Role
from services.contracts.history.run import RoundRecord, Run
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.target import Target
from services.contracts.versions.model_version import ModelVersion
from services.coordinator.run_state.training_state import TrainedModel
from services.reporting.model_report import model_report
from services.reporting.report_page import report_page
from services.site_agent.settings import CsvSource

PRESS = AssetType(
    name="press",
    features=tuple(Feature(name=name, unit="1", low=-5.0, high=5.0) for name in ("flow", "pressure")),
    fault_classes=(FaultClass(name="healthy", severity=0), FaultClass(name="worn", severity=2)),
    target=Target(name="wear", unit="mm", low=-2.0, high=2.0),
)
SITES = tuple(f"plant-{number}" for number in range(1, 6))
PHI, SHARE = 0.2, 0.2
PLANS = {
    "fair-steps": {
        "method": "scaff-pd-ia", "spec": {"loss": "logistic"}, "max_rounds": 20,
        "parameters": {"phi": PHI, "alpha": SHARE, "beta": SHARE, "global_step": 2.0, "step_size": 0.2},
    },
    "fair-mixup": {
        "method": "drflm", "spec": {"loss": "hinge"}, "max_rounds": 10,
        "parameters": {"clients": 3, "local_steps": 4, "mixup_ratio": 0.9, "mixture_step": 0.1},
    },
    "fair-bundle": {
        "method": "relative-fairness", "spec": {"radius": {"rule": "fixed", "value": 0.01}}, "max_rounds": 60,
        "parameters": {"phi": PHI, "alpha": SHARE, "beta": SHARE},
    },
}
GATED = """
name = "gated"
asset_type = "press"
max_rounds = 15

[gates]

[[gates.fairness]]
index = "relative_unfairness"
at_most = {at_most}

[[gates.fairness]]
index = "worst_site"
basis = "worst_case_risk"
at_most = 1.0
"""


def write_rows(path: Path, number: int) -> None:
    """Rows of a plant; the higher its number, the noisier they are."""
    draw = np.random.default_rng([23, number])
    wear = draw.uniform(-1.0, 1.0, 60)
    noise = (0.2 + 0.25 * number) * draw.standard_normal((60, 2))
    values = np.clip(wear[:, None] * np.array([2.0, -1.0]) + noise, -4.9, 4.9).round(6)
    with path.open("w", newline="") as file:
        rows = [
            [*row, "worn" if w > 0 else "healthy", f"{w:.6f}"] for row, w in zip(values.tolist(), wear, strict=True)
        ]
        csv.writer(file).writerows([["flow", "pressure", "label", "wear"], *rows])


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory, new_sqlite: Any, opening_works: Any) -> Iterator[Any]:
    base, sources = tmp_path_factory.mktemp("presses"), {}
    for number, site in enumerate(SITES):
        write_rows(base / f"{site}.csv", number)
        sources[site] = CsvSource(kind="csv", path=base / f"{site}.csv")
    with opening_works(base, new_sqlite(), PRESS, sources) as opened:
        yield opened


@pytest.fixture(scope="module")
def rest(works: Any) -> Iterator[Any]:
    """Asks the API of the works for a page, as a role."""
    with open_backend(works.context.settings) as backend:
        found = {
            role: tokens.create(backend, Actor("test", Role.ADMINISTRATOR), TokenRequest(name=role.value, role=role))
            for role in (Role.VIEWER, Role.ADMINISTRATOR)
        }
    app = create_app(works.context.settings)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(app.router.lifespan_context(app)):

        def ask(role: Role, path: str) -> Response:
            async def send() -> Response:
                async with AsyncClient(transport=ASGITransport(app), base_url="http://ballast") as client:
                    return await client.get(path, headers={"Authorization": f"Bearer {found[role].token}"})

            return portal.call(send)

        yield ask


@pytest.fixture(scope="module")
def trained(works: Any) -> dict[str, tuple[Run, TrainedModel, ModelVersion]]:
    """A version by each of the plans."""
    return {name: works.train(works.plan(name, gap=1e-3, **changes)) for name, changes in PLANS.items()}


def test_each_method_says_what_its_certificate_speaks_of(works: Any, trained: dict[str, Any]) -> None:
    for name, (run, outcome, version) in trained.items():
        assert version.method == PLANS[name]["method"] and 0 <= outcome.certificate.lower <= outcome.certificate.upper
        stored = works.context.registry.get(name, version.version)
        assert stored.to_document() == version.to_document()
        page = report_page(model_report(version, run, works.context.store.runs.get_rounds(run.run_id)))
        assert version.note and "what the method says" in page
    assert trained["fair-mixup"][2].note == "the bounds are those of the problem without mixup"
    steps, bundle = trained["fair-steps"][2], trained["fair-bundle"][2]
    assert "whether this is below 1 + m_f/(2 M_f) cannot be said" in steps.note and steps.convex_part is None
    assert "tells a critical point only" in bundle.note and bundle.convex_part is not None
    assert bundle.convex_part.gap <= 1e-3 and bundle.convex_part.lower <= bundle.convex_part.upper
    run, outcome, _ = trained["fair-steps"]
    assert closing_note(run, why_stopped(run, outcome), "version 1 is champion") == (
        f"the round limit was reached before the wanted gap; {steps.note}; version 1 is champion"
    )
    for version in (steps, bundle):
        risks = np.array([site.worst_case_risk for site in version.sites])
        worst = RelativeSet.of_shares(len(SITES), PHI, SHARE, SHARE)
        assert version.worst_case_risk == pytest.approx(risks.mean(), rel=1e-9)
        assert "relative fairness" in version.objective_name
        if version is bundle:  # the bounds of local steps are of the losses, not of the risks over the balls
            assert version.objective == pytest.approx(worst.largest(risks), rel=1e-9)


@pytest.mark.parametrize("name", PLANS)
def test_the_fairness_of_a_trained_version_is_told_over_rest(rest: Any, trained: dict[str, Any], name: str) -> None:
    version, path = trained[name][2], f"/v1/models/{name}/versions/challenger/fairness"
    report = rest(Role.ADMINISTRATOR, path).json()
    assert [site["site_id"] for site in report["sites"]] == list(SITES)
    by_basis = {indices["basis"]: indices for indices in report["indices"]}
    for basis in ("loss", "worst_case_risk"):
        values = [getattr(site, basis) for site in version.sites]
        assert by_basis[basis]["relative_unfairness"] == pytest.approx(relative_unfairness(values, 0.2, 0.2))
        assert by_basis[basis]["worst_site"] == pytest.approx(max(values)) and by_basis[basis]["n_sites"] == len(SITES)
    hidden = rest(Role.VIEWER, path)
    assert hidden.status_code == 200 and "plant-" not in hidden.text
    kinds = {".svg": b"<?xml", ".png": b"\x89PNG", ".html": b"<!doctype html>"}
    for form, start in kinds.items():
        page = rest(Role.VIEWER, path + form)
        assert page.status_code == 200 and page.content.startswith(start) and b"plant-1" not in page.content


def test_a_gate_of_fairness_stops_one_promotion_and_lets_another_through(works: Any, rest: Any) -> None:
    strict, loose = (tomllib.loads(GATED.replace("{at_most}", figure)) for figure in ("1.0", "50.0"))
    run, _, version = works.train(works.plan(**strict))
    found = relative_unfairness([site.loss for site in version.sites], 0.2, 0.2)
    assert found > 1.0
    said = promote_if_gates_hold(works.context, run, version)
    assert said == (
        f"version {version.version} stays challenger: relative_unfairness of loss: {found:.6g} is not at or below 1"
    )
    assert rest(Role.VIEWER, "/v1/models/gated/versions/champion/fairness").status_code == 404
    run, _, version = works.train(works.plan(**(loose | {"name": "gated-loosely"})))
    assert promote_if_gates_hold(works.context, run, version) == f"version {version.version} is champion"
    assert rest(Role.VIEWER, "/v1/models/gated-loosely/versions/champion/fairness").status_code == 200


def test_the_squared_loss_from_a_plan_gives_estimates_with_an_interval(works: Any) -> None:
    plan = works.plan("wear", method="standard", spec={"loss": "squared"}, gates={"max_gap": 1e-2, "max_mae": 0.5})
    run, outcome, version = works.train(plan)
    assert outcome.certificate.gap <= 1e-3 and version.spec.loss.name == "squared" and version.task == "regression"
    assert all(site.radius == 0.0 for site in run.sites)
    mean = np.mean([site.worst_case_risk for site in version.sites])
    assert version.worst_case_risk == pytest.approx(mean, rel=1e-9)
    assert version.error_interval is not None and version.coverage is not None and version.coverage >= 0.9
    assert version.error_interval.above == pytest.approx(4.0 * np.sqrt(outcome.certificate.upper / 0.1))
    assert "is champion" in promote_if_gates_hold(works.context, run, version)


def test_a_resumed_run_of_sampled_sites_ends_where_an_uninterrupted_one_does(works: Any) -> None:
    changes = {"method": "drfa", "max_rounds": 8, "parameters": {"clients": 2, "seed": 4, "mixture_step": 0.2}}
    whole = asyncio.run(train_without(works, works.plan("in-one-go", **changes), "plant-2", stop_after=None))
    parts = asyncio.run(train_without(works, works.plan("in-two-goes", **changes), "plant-2", stop_after=3))
    assert whole.rounds == parts.rounds == 8 and whole.certificate.fresh_weight < 1.0
    np.testing.assert_array_equal(whole.weights, parts.weights)
    assert (whole.certificate.upper, whole.certificate.lower) == (parts.certificate.upper, parts.certificate.lower)
    assert whole.worst_weights == parts.worst_weights


class Interrupted(Exception):
    """The process that drives the run is gone."""


async def train_without(works: Any, plan: Any, absent: str, stop_after: int | None) -> TrainedModel:
    """All sites join and one leaves; the rounds go on, once from another coordinator that knows the store alone."""
    run = works.context.store.runs.create_run(plan)
    async with works._plants(()), works.context.plant_link() as transport:
        run = await works.context.coordinator(run, transport).join(run)
    assert len(run.sites) == len(SITES)

    async def stop(record: RoundRecord) -> None:
        if record.round == stop_after:
            raise Interrupted

    async with works._plants((absent,)), works.context.plant_link() as transport:
        if stop_after is not None:
            with pytest.raises(Interrupted):
                await works.context.coordinator(run, transport).train(run, stop)
            run = works.context.store.runs.get_run(run.run_id)
            assert run.rounds == stop_after
        trained: TrainedModel = await works.context.coordinator(run, transport).train(run)
    answers = [record.answers for record in works.context.store.runs.get_rounds(run.run_id)]
    assert all([each.site_id for each in these if each.status == "absent"] == [absent] for these in answers)
    return trained
