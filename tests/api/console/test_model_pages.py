"""The pages of models: figures beside the plants', promotion, diagnosis, a plant that leaves."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import numpy as np
import pytest

from api.cli.commands.model import _notes
from api.console.endpoints import models as pages
from api.console.endpoints.models import _trend
from api.console.formats import percent
from api.console.views import models as shown_models
from api.console.views import words
from api.models import queries
from api.models import service as models
from services.auditing.standing import GATE
from services.contracts.access.identity import Role
from services.contracts.plans.gates import Gates
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.report import GateResult
from services.contracts.versions.version_facts import PlantFreshness, VersionSummary
from services.plant_simulator.assets import builtin_asset_type
from services.reporting.tuning_section import tuning_chart
from tests.api.conftest import SITES, a_curve, a_version, register

VERSION = "/console/models/pumps/versions/1"


def test_a_champions_figures_stand_beside_the_plants(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    first, second = world.new_model("rigs", 0.9, 0.81)
    person, store = signed_in(world), world.backend.store
    answer = person.post(f"/console/models/rigs/versions/{first}/promote", reason="it is better")
    assert answer.headers["Location"] == f"/console/models/rigs/versions/{first}"
    assert models.champion_of(world.backend, "rigs") == first
    text = reading(person.get("/console?model=rigs"))
    assert "rigs version 1 , the champion" in text
    assert re.search(r"plant-west never seen \S+ \S+ UTC – 50 % 0.9 0.3 ", text), text
    assert "Version 2 of rigs is not champion Version 1 is." in text
    assert person.post(f"/console/models/rigs/versions/{second}/promote", reason="no").status_code == 422
    assert "rigs triplex-pump version 1 version 2 – Diagnose" in reading(person.get("/console/models"))
    person.post(f"/console/models/rigs/versions/{second}/promote", reason="newer")
    assert "rigs triplex-pump version 2 – version 1 Diagnose" in reading(person.get("/console/models"))
    text = reading(person.get(f"/console/models/rigs/versions/{first}"))
    assert re.search(r"Versions .* 2 champion [\d.]", text) and "challenger" not in text
    text = reading(person.get(f"/console/models/rigs/versions/{first}/fairness"))
    assert "beside the champion, version 2" in text
    assert person.post("/console/models/rigs/rollback", reason="worse").status_code == 303
    assert models.champion_of(world.backend, "rigs") == first
    actions = [each.action for each in store.audit.list_events(limit=3)]
    assert actions == ["model.rollback", "model.promote", "model.promote"]


def test_versions_stand_some_at_a_time_and_all_can_be_come_to(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a version that is not among those shown its run in the registry is told all the same."""
    first, second = world.new_model("valves", 0.9, 0.8)
    person, here = signed_in(world), f"/console/models/valves/versions/{first}"
    listed = re.compile(r'<th scope="row"><a href="/console/models/valves/versions/(\d+)"')
    whole = person.get(here)
    assert listed.findall(whole.text) == [second, first] and "at a time" not in reading(whole)
    monkeypatch.setattr(pages, "SHOWN_VERSIONS", 1)
    newest = person.get(here)
    assert listed.findall(newest.text) == [second] and "2 versions, 1 at a time." in reading(newest)
    (older,) = re.findall(r'rel="next" href="([^"]+)"', newest.text)
    oldest = person.get(unescape(older))
    assert listed.findall(oldest.text) == [first] and 'rel="next"' not in oldest.text and 'rel="prev"' in oldest.text
    runs = {re.findall(r"Run in the registry (\S+)", reading(each))[0] for each in (whole, newest, oldest)}
    assert len(runs) == 1 and runs != {"–"}


def test_risks_of_unlike_losses_are_joined_by_no_line() -> None:
    def risks_drawn(*losses: str) -> str:
        told = {"worst_case_risk": 0.3, "f1": 0.9, "mae": None}
        versions = [VersionSummary.model_construct(version=str(k), loss=loss, **told) for k, loss in enumerate(losses)]
        (path,) = re.findall(r'class="line b" d="(M[^"]*\.[^"]*)"', str(_trend(versions)))
        return "".join(letter for letter in path if letter.isalpha())

    assert risks_drawn("hinge", "hinge", "hinge") == "MLL"
    assert risks_drawn("hinge", "hinge", "logistic", "logistic") == "MLML"


def test_a_version_whose_gate_does_not_hold_is_promoted_only_in_full_knowledge(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    (number,) = world.new_model("pipes", 0.1)
    person, here = signed_in(world), f"/console/models/pipes/versions/{number}"
    text = reading(person.get(here))
    assert "F-1 at the worst plant, at least 0.1 is not at or above 0.8 0.8 0.1 does not hold" in text
    assert "although a gate does not hold" in text
    assert person.post(f"{here}/promote", reason="please").status_code == 409
    assert models.champion_of(world.backend, "pipes") is None
    assert person.post(f"{here}/promote", reason="please", ignore_gates="yes").status_code == 303
    assert models.champion_of(world.backend, "pipes") == number


def test_how_a_versions_terms_were_chosen_is_drawn_as_on_its_runs_page(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    tuned = a_version("tuned", "c" * 32).model_copy(update={"tuning": a_curve()})
    number = register(world.backend.registry, tuned)
    page = signed_in(world, Role.VIEWER).get(f"/console/models/tuned/versions/{number}")
    assert page.text.count(tuning_chart(a_curve())) == 1 and tuning_chart(a_curve()).count("<circle") == 2
    said = reading(page)
    assert "best of 2 with 0.9; rule best, 3 folds. It cost 15 rounds" in said
    assert "x3, 1, spline 6 0.9 not known 3 not known chosen" in said and "fingerprint" not in said
    as_written = register(world.backend.registry, a_version("untuned", "d" * 32))
    text = reading(signed_in(world, Role.VIEWER).get(f"/console/models/untuned/versions/{as_written}"))
    assert "How the terms were chosen" not in text and "What is proven" in text


def test_every_gate_and_a_gap_that_says_little_have_words_of_their_own() -> None:
    results = {*Gates.model_fields, "coverage", "classes_told", GATE} - {"fairness"}
    assert results == set(words.GATES), "what has no words here is said to be one of fairness"
    gate = GateResult(name="coverage", wanted=0.8, found=0.99, holds=True, reason="")
    assert words.gate_words(gate).endswith("at least")
    for gap, said in ((1e-3, "this one has 0.5, within 0.1 % of the best."), (0.98, "the best may have 98 % less.")):
        version = a_version("pumps", "a" * 32).model_copy(
            update={"certified_gap": gap, "objective": 0.5, "lower_bound": 0.5 * (1 - gap)}
        )
        assert said in " ".join(words.certificate_words(version))


def test_a_measurement_is_diagnosed_from_the_form_and_from_csv(
    shared_world: Any, people: dict[Role, Any], reading: Callable[..., str]
) -> None:
    person, features = people[Role.VIEWER], builtin_asset_type("triplex-pump").features
    form = {f"reading-{each.name}": str((3 * each.low + each.high) / 4) for each in features}
    text = reading(person.post("/console/models/pumps/diagnose", **form))
    asked = {each.name: (3 * each.low + each.high) / 4 for each in features}
    told = shared_world.call(Role.VIEWER, "POST", "/v1/models/pumps/diagnose", {"sample": asked}).json()["diagnoses"][0]
    assert f"Answer {told['fault_class']}" in text
    width = features[0].high - features[0].low
    assert f"± {told['robustness_radius'] * width:.3g}" in text
    together = percent(told["robustness_radius"] / len(features) ** 0.5)  # the norm is l2
    said = f"while every reading, all at once, is off by less than {together} of its range."
    assert " ".join(said.split()) in " ".join(text.split())
    assert "Which sensors speak for it" in text
    table = ",".join(each.name for each in features) + "\n" + "\n".join(
        ",".join(str(value) for value in asked.values()) for _ in range(3)
    )
    assert "3 answers" in reading(person.post("/console/models/pumps/diagnose", csv=table))
    for wrong, why in (
        (table + "\n1,2", "line 5: 2 values for"), ("a,b\n1,2", "sample 0"), ("a", "a line with the names"),
        (table.replace(str(next(iter(asked.values()))), "nan", 1), "a finite number is needed"),
    ):
        answer = person.post("/console/models/pumps/diagnose", csv=wrong)
        assert answer.status_code == 422 and why in reading(answer), why
    answer = person.post("/console/models/pumps/diagnose", **(form | {f"reading-{features[0].name}": "much"}))
    assert f"{features[0].name}: a number is needed" in reading(answer)


def test_a_plant_leaves_by_the_page_of_a_version_and_a_version_is_taken_along(
    world: Any, signed_in: Callable[..., Any]
) -> None:
    person, store = signed_in(world), world.backend.store
    for run in store.runs.unfinished_runs("pumps"):
        store.runs.finish_run(run.run_id, "failed", "a test")
    shown = person.get(VERSION).text
    leaving = re.search(r'<select id="leaving".*?</select>', shown, re.DOTALL)[0]
    (first, *_) = re.findall(r"<option>([^<]+)</option>", leaving)
    assert store.sites.get(first).status == "active", "the page has the plants' own names for an administrator"
    export = re.search(r'href="(/v1/models/pumps/versions/1/export\?format=c99)"', shown)[1]
    taken = person.get(export)
    assert taken.status_code == 200 and b"self_test" in taken.content
    assert person.post("/console/models/pumps/unlearn", site=first).status_code == 422, "a reason is needed"
    assert person.post("/console/models/pumps/unlearn", site="X!", reason="sold").status_code == 422
    assert store.sites.get(first).status == "active"
    asked = person.post("/console/models/pumps/unlearn", site=first, reason="the plant was sold", now="yes")
    run = store.runs.get_run(asked.headers["Location"].rpartition("/")[2])
    assert asked.status_code == 303 and (run.leaving.site_id, run.leaving.at_once) == (first, True)
    assert store.sites.get(first).status == "removed"
    (entry,) = store.audit.list_events(action="model.unlearn")
    assert entry.reason == "the plant was sold"


def test_a_network_is_taken_along_too_and_no_ball_is_told_of_it(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    planar = a_version("deep", "ce" * 16)
    spec = TrainingSpec.model_validate({"loss": "cross_entropy", "network": {"hidden": 2}})
    features, classes = len(planar.asset_type.features), len(planar.asset_type.fault_classes)
    weights = np.linspace(-1.0, 1.0, 2 * (features + 1) + classes * 3)[None]
    version = planar.model_copy(update={"spec": spec, "weights": weights, "worst_case_risk": None, "objective": 0.375})
    here = f"/console/models/deep/versions/{register(world.backend.registry, version)}"
    person = signed_in(world)
    shown = person.get(here)
    text = reading(shown)
    assert f"Minimised 0.375 {version.objective_name}" in text and "Worst-case risk –" not in text
    assert "Rows F-1 Answered" in text and "Rows Radius" not in text
    for form in ("onnx", "c99"):
        export = re.search(rf'href="(/v1/models/deep/versions/1/export\?format={form})"', shown.text)[1]
        assert person.get(export).status_code == 200


def test_a_version_of_rounds_that_waited_for_nobody_says_how_fresh_each_plant_is(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    freshness = (
        PlantFreshness(site_id=SITES[0], question=4, came=4, at_model=True),
        PlantFreshness(site_id=SITES[1], question=2, came=7, at_model=False, at_work=True),
    )
    version = a_version("late", "cd" * 16).model_copy(update={"freshness": freshness, "fresh_weight": 0.5})
    here = f"/console/models/late/versions/{register(world.backend.registry, version)}"
    text = reading(signed_in(world).get(here))
    assert "At the model itself plants with 50 % of the weight answered" in text
    assert f"{SITES[0]} 4 4 its risk at the model" in text
    assert f"{SITES[1]} 2 7 its cuts still at work" in text
    assert SITES[1] not in reading(signed_in(world, Role.VIEWER).get(here))


def test_a_class_that_a_version_never_says_stands_on_its_page_and_with_the_command(
    world: Any, signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    version = a_version("mute", "ef" * 16)
    named = version.asset_type.class_names
    counts = tuple(tuple(9 if said == 1 else 0 for said in range(len(named))) for _ in named)
    number = register(world.backend.registry, version.model_copy(update={"confusion": counts}))
    text = reading(signed_in(world).get(f"/console/models/mute/versions/{number}"))
    assert f"No held-out row was diagnosed as {named[0]}, though 9 are" in text
    assert f"diagnosed as {named[1]}" not in text
    shown = dict(_notes(queries.version_detail(world.backend, "mute", number)))
    assert "though 9 are" in str(shown["take care"])


def test_a_plant_missed_what_it_refused_too(
    world: Any, signed_in: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, reading: Callable[..., str]
) -> None:
    report = queries.report(world.backend, "pumps", "1")
    first, *others = report.sites
    told = first.model_copy(update={"accepted": 5, "absent": 1000, "late": 200, "refused": 30, "rejected": 4})
    changed = report.model_copy(update={"sites": (told, *others)})
    monkeypatch.setattr(shown_models, "_report", lambda *_: (changed, ""))
    assert re.search(rf"{first.site_id} .* 5 1234 ", reading(signed_in(world).get(VERSION)))
