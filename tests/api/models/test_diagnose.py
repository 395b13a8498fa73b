from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from api.models.examples import DIAGNOSE, FEATURES_EXAMPLE
from services.contracts.access.identity import Role
from services.contracts.evaluation.diagnosis import DiagnoseResponse
from services.contracts.machines.value_range import Ranges

PATH = "/v1/models/pumps/diagnose"


def ask(world: Any, body: Any, path: str = PATH, **more: Any) -> Any:
    return world.call(Role.VIEWER, "POST", path, body, **more)


@pytest.mark.parametrize("example", sorted(DIAGNOSE))
def test_the_documented_examples_work(shared_world: Any, example: str) -> None:
    shown = shared_world.app.openapi()["paths"]["/v1/models/{name}/diagnose"]["post"]["requestBody"]
    body = shown["content"]["application/json"]["examples"][example]["value"]
    answer = ask(shared_world, body)
    assert answer.status_code == 200, answer.text
    response = DiagnoseResponse.model_validate(answer.json())
    assert len(response.diagnoses) == len(body.get("samples", [0]))
    assert all(not diagnosis.clipped for diagnosis in response.diagnoses)


def test_a_diagnosis_is_the_versions_own_arithmetic(shared_world: Any) -> None:
    version = shared_world.backend.registry.get("pumps", "champion")
    answer = ask(shared_world, {"sample": FEATURES_EXAMPLE}).json()
    scaled = Ranges(version.asset_type.features).scale(
        np.array([FEATURES_EXAMPLE[name] for name in version.asset_type.feature_names])
    )
    score = float(scaled @ version.weights[0, :-1] + version.weights[0, -1])
    diagnosis = answer["diagnoses"][0]
    assert diagnosis["scores"]["leak"] == pytest.approx(score, abs=1e-12)
    assert diagnosis["fault_class"] == ("leak" if score > 0 else "healthy")
    assert (answer["model"], answer["model_version"], answer["run_id"]) == ("pumps", version.version, version.run_id)


def test_one_and_many_and_a_number_for_an_alias_answer_alike(shared_world: Any) -> None:
    one = ask(shared_world, {"sample": FEATURES_EXAMPLE}).json()
    assert ask(shared_world, {"samples": [FEATURES_EXAMPLE], "alias": "1"}).json() == one
    many = ask(shared_world, {"samples": [FEATURES_EXAMPLE] * 3}).json()
    assert many["diagnoses"] == one["diagnoses"] * 3


def test_a_diagnosis_near_another_class_is_given_as_abstained_where_the_settings_say_how_near(
    shared_world: Any, opening: Any, tmp_path: Path, filled_sqlite: Any, mlflow_settings: Any
) -> None:
    """Of one sample and of many, which are written another way; all else of the answer is as it was."""
    (plain,) = ask(shared_world, {"sample": FEATURES_EXAMPLE}).json()["diagnoses"]
    assert not plain["abstained"]
    for below, abstains in ((plain["robustness_radius"] * 0.999, False), (plain["robustness_radius"] * 1.001, True)):
        home = tmp_path / str(abstains)
        home.mkdir()
        api = {"abstain_below_radius": below}
        with opening(home, filled_sqlite.new(), mlflow_settings, known=filled_sqlite.tokens, api=api) as world:
            for body in ({"sample": FEATURES_EXAMPLE}, {"samples": [FEATURES_EXAMPLE] * 60}):
                for found in ask(world, body).json()["diagnoses"]:
                    assert found["abstained"] is abstains
                    assert ("is below the asked" in found["reason"]) is abstains
                    assert found | {"abstained": False, "reason": plain["reason"]} == plain


def changed(**values: Any) -> dict[str, Any]:
    return {"sample": {**FEATURES_EXAMPLE, **values}}


WITHOUT_ONE = {name: value for name, value in FEATURES_EXAMPLE.items() if name != "flow_mean"}
REFUSED = {
    "missing feature": ({"sample": WITHOUT_ONE}, "flow_mean"),
    "missing in the second": ({"samples": [FEATURES_EXAMPLE, WITHOUT_ONE]}, "sample 1: missing required"),
    "unknown feature": (changed(flow_maen=3.5), "did you mean flow_mean"),
    "wrong unit": ({"sample": FEATURES_EXAMPLE, "units": {"flow_mean": "m3/h"}}, "flow_mean must be in L/min"),
    "unit of an unknown feature": ({"sample": FEATURES_EXAMPLE, "units": {"flow": "L/min"}}, "units"),
    "text": (changed(flow_mean="38.123456789"), "body.sample.flow_mean"),
    "null": (changed(flow_mean=None), "body.sample.flow_mean"),
    "the word NaN": (changed(flow_mean="NaN"), "body.sample.flow_mean"),
    "true": (changed(flow_mean=True), "body.sample.flow_mean"),
    "list": (changed(flow_mean=[38.0]), "body.sample.flow_mean"),
    "both forms": ({"sample": FEATURES_EXAMPLE, "samples": [FEATURES_EXAMPLE]}, "either samples"),
    "neither form": ({}, "either samples"),
    "no sample": ({"samples": []}, "body.samples"),
    "empty sample": ({"sample": {}}, "body.sample"),
    "too many": ({"samples": [{"flow_mean": 1}] * 10_001}, "body.samples"),
    "unknown field": ({"sample": FEATURES_EXAMPLE, "threshold": 1}, "body.threshold"),
    "an alias that is none": ({"sample": FEATURES_EXAMPLE, "alias": "a b"}, "body.alias"),
}


@pytest.mark.parametrize(("query", "said"), [
    ("alias=1", "query: alias belongs into the body of a request in JSON"),
    ("coverage=0.95&alias=champion", "query: coverage belongs into the body of a request in JSON"),
    ("version=99", "query: there is no parameter version; a request in JSON says alias, coverage in its body"),
])
def test_a_request_in_json_says_nothing_in_its_address_that_would_be_passed_over(
    shared_world: Any, query: str, said: str
) -> None:
    answer = ask(shared_world, {"sample": FEATURES_EXAMPLE}, f"{PATH}?{query}")
    assert answer.status_code == 422, "the champion's answer would be taken for that of what was asked"
    assert answer.json()["detail"] == said


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_what_does_not_fit_is_refused_with_one_line(shared_world: Any, case: str) -> None:
    body, said = REFUSED[case]
    answer = ask(shared_world, body)
    problem = answer.json()
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["code"] == "invalid_input"
    assert said in problem["detail"]
    assert "\n" not in problem["detail"]
    assert "38.123456789" not in answer.text


@pytest.mark.parametrize("word", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
def test_a_number_that_json_does_not_have_is_refused(shared_world: Any, word: bytes) -> None:
    text = json.dumps({"sample": FEATURES_EXAMPLE}).encode().replace(b"39.1", word)
    answer = ask(shared_world, None, content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"where": "body.sample.flow_mean", "what": "Input should be a finite number"}]


def test_an_unknown_model_or_alias_is_not_found(shared_world: Any) -> None:
    body = {"sample": FEATURES_EXAMPLE}
    assert ask(shared_world, body, "/v1/models/nobody/diagnose").status_code == 404
    assert ask(shared_world, body, "/v1/models/NOT%20A%20NAME'/diagnose").status_code == 404
    assert ask(shared_world, body | {"alias": "17"}).status_code == 404
    assert ask(shared_world, body | {"alias": "gold"}).status_code == 404


def test_a_promotion_reaches_diagnoses_within_seconds(world: Any) -> None:
    import time

    first, second = world.new_model("swap", 0.9, 0.9)
    world.call(Role.OPERATOR, "POST", "/v1/admin/models/swap/promote", {"version": first, "reason": "first"})
    answer = ask(world, {"sample": FEATURES_EXAMPLE}, "/v1/models/swap/diagnose")
    assert answer.json()["model_version"] == first
    world.call(Role.OPERATOR, "POST", "/v1/admin/models/swap/promote", {"version": second, "reason": "better"})
    time.sleep(1.1)
    answer = ask(world, {"sample": FEATURES_EXAMPLE}, "/v1/models/swap/diagnose")
    assert answer.json()["model_version"] == second


def test_a_coverage_is_a_number_as_a_reading_is(shared_world: Any) -> None:
    answer = shared_world.call(Role.VIEWER, "POST", PATH, {"sample": FEATURES_EXAMPLE, "coverage": "0.5"})
    assert (answer.status_code, answer.json()["detail"]) == (422, "body.coverage: Input should be a valid number")
    path = PATH.replace("diagnose", "estimate")
    answer = shared_world.call(Role.VIEWER, "POST", path, {"sample": FEATURES_EXAMPLE, "confidence": "0.5"})
    assert (answer.status_code, answer.json()["detail"]) == (422, "body.confidence: Input should be a valid number")
