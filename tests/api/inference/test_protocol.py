"""The Open Inference Protocol says what a diagnosis says, and its errors are its own."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from api.inference import service
from api.models.examples import FEATURES_EXAMPLE
from services.contracts.access.identity import Role
from tests.api.conftest import a_plan

ROOT = "/v2/models/pumps"
ROW = list(FEATURES_EXAMPLE.values())
ONE = {"name": "features", "shape": [1, 14], "datatype": "FP64", "data": ROW}


def infer(world: Any, *inputs: Any, path: str = f"{ROOT}/infer", **more: Any) -> Any:
    return world.call(Role.VIEWER, "POST", path, {"inputs": list(inputs), **more})


def test_health_needs_no_token_and_everything_else_does(shared_world: Any) -> None:
    assert shared_world.call(None, "GET", "/v2/health/live").json() == {"live": True}
    assert shared_world.call(None, "GET", "/v2/health/ready").json() == {"ready": True}
    asked = [("GET", path) for path in ("/v2", ROOT, f"{ROOT}/ready", f"{ROOT}/versions/1", f"{ROOT}/versions/1/ready")]
    for method, path in [*asked, ("POST", f"{ROOT}/infer"), ("POST", f"{ROOT}/versions/1/infer"), ("GET", "/v2/no")]:
        answer = shared_world.call(None, method, path)
        assert answer.status_code == 401 and list(answer.json()) == ["error"], path
        assert answer.headers["content-type"] == "application/json" and "www-authenticate" in answer.headers
    assert shared_world.call(Role.VIEWER, "GET", "/v2").json()["name"] == "ballast"


def test_metadata_tells_the_tensors(shared_world: Any) -> None:
    found = shared_world.call(Role.VIEWER, "GET", ROOT).json()
    assert found["inputs"] == [{"name": "features", "datatype": "FP64", "shape": [-1, 14]}]
    assert [(each["name"], each["shape"]) for each in found["outputs"]] == [("class", [-1]), ("scores", [-1, 2])]
    assert shared_world.call(Role.VIEWER, "GET", f"{ROOT}/versions/1").json() == found
    assert shared_world.call(Role.VIEWER, "GET", f"{ROOT}/ready").json() == {"name": "pumps", "ready": True}


@pytest.mark.parametrize("path", [f"{ROOT}/infer", f"{ROOT}/versions/champion/infer"])
def test_both_forms_of_tensors_answer_as_a_diagnosis(shared_world: Any, path: str) -> None:
    said = shared_world.call(Role.VIEWER, "POST", "/v1/models/pumps/diagnose", {"sample": FEATURES_EXAMPLE}).json()
    columns = [
        {"name": name, "shape": [2], "datatype": "FP64", "data": [value, value]}
        for name, value in FEATURES_EXAMPLE.items()
    ]
    nested = {**ONE, "shape": [2, 14], "data": [ROW, ROW]}
    flat = {**ONE, "shape": [2, 14], "data": ROW + ROW}
    answers = [infer(shared_world, nested, path=path, id="a"), infer(shared_world, flat, path=path, id="a"),
               infer(shared_world, *reversed(columns), path=path, id="a")]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert (found["model_name"], found["model_version"], found["id"]) == ("pumps", said["model_version"], "a")
        classes, scores = found["outputs"]
        assert classes["data"] == [said["diagnoses"][0]["fault_class"]] * 2 and classes["datatype"] == "BYTES"
        assert scores["shape"] == [2, 2]
        assert scores["data"] == pytest.approx([*said["diagnoses"][0]["scores"].values()] * 2, abs=1e-12)


@pytest.mark.parametrize(("shape", "status"), [([2, 1], 200), ([1, 2], 400), ([2, 2], 400)])
def test_a_tensor_of_one_feature_is_one_number_a_sample(shared_world: Any, shape: list[int], status: int) -> None:
    columns = [
        {"name": name, "shape": shape, "datatype": "FP64", "data": [value] * (shape[0] * shape[1])}
        for name, value in FEATURES_EXAMPLE.items()
    ]
    answer = infer(shared_world, *columns)
    assert answer.status_code == status
    assert status == 200 or "must have the shape (n,)" in answer.json()["error"]


def test_only_wanted_outputs_are_given(shared_world: Any) -> None:
    found = infer(shared_world, ONE, outputs=[{"name": "scores"}]).json()
    assert [each["name"] for each in found["outputs"]] == ["scores"] and "id" not in found
    for none in ([], None):
        found = infer(shared_world, ONE, outputs=none).json()
        assert [each["name"] for each in found["outputs"]] == ["class", "scores"], "who names none is given all"


def test_metadata_of_a_model_names_all_versions_that_may_be_asked_for(world: Any) -> None:
    known = world.backend.store.model_versions
    first = known.list_versions("pumps", limit=9)
    run = world.backend.store.runs.create_run(a_plan("pumps"))
    known.add("pumps", "7", run.run_id, {})
    found = world.call(Role.VIEWER, "GET", ROOT).json()["versions"]
    assert found == ["7", *(record.version for record in first)] and len(found) > 1
    known.mark_forgotten("pumps", ("7",), "a plant left")
    found = world.call(Role.VIEWER, "GET", ROOT).json()["versions"]
    assert found == [record.version for record in first], "what was deleted with a plant that left is not offered"
    for version in found:
        assert world.call(Role.VIEWER, "GET", f"{ROOT}/versions/{version}/ready").status_code == 200


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "wrong width": ({**ONE, "shape": [1, 13], "data": ROW[:13]}, "must have the shape (n, 14)"),
    "one dimension": ({**ONE, "shape": [14]}, "tensor features must have the shape (n, 14), got (14,)"),
    "wrong count": ({**ONE, "data": ROW[:13]}, "has 13 numbers"),
    "texts": ({**ONE, "data": ["1.5"] * 14}, "must be numbers"),
    "truth values": ({**ONE, "data": [True] * 14}, "must be numbers"),
    "nested otherwise": ({**ONE, "data": [ROW[:7], ROW[7:]]}, "not nested as its shape"),
    "another kind": ({**ONE, "datatype": "INT64"}, "datatype"),
    "a feature alone": ({"name": "flow_mean", "shape": [1], "datatype": "FP64", "data": [1.0]}, "missing required"),
    "unknown feature": ({"name": "flow_maen", "shape": [1], "datatype": "FP64", "data": [1.0]}, "did you mean"),
    "a size beyond 64 bits": ({**ONE, "shape": [4, 2**62], "data": []}, "has 0 numbers"),
    "beyond FP64": ({**ONE, "data": [10**400, *ROW[1:]]}, "must be finite numbers"),
    "beyond FP32": ({**ONE, "datatype": "FP32", "data": [1e300, *ROW[1:]]}, "must be numbers of FP32"),
    "a shape with a text": ({**ONE, "shape": ["1", 14]}, "shape.0: Input should be a valid integer"),
    "a shape with a truth value": ({**ONE, "shape": [True, 14]}, "shape.0: Input should be a valid integer"),
    "a shape with a fraction": ({**ONE, "shape": [1.5, 14]}, "shape.0: Input should be a valid integer"),
    "no sample": ({**ONE, "shape": [0, 14], "data": []}, "1 to 10000 samples"),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_what_does_not_fit_is_one_line(shared_world: Any, case: str) -> None:
    tensor, said = REFUSED[case]
    answer = infer(shared_world, tensor)
    assert answer.status_code == 400 and list(answer.json()) == ["error"]
    assert said in answer.json()["error"] and "\n" not in answer.json()["error"]


def test_tensors_of_features_are_as_long_as_one_another(shared_world: Any) -> None:
    tensors = [
        {"name": name, "shape": [length], "datatype": "FP64", "data": [1.0] * length}
        for name, length in (("flow_mean", 2), ("pressure_mean", 3))
    ]
    answer = infer(shared_world, *tensors)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith("the tensors must have one length, got 2, 3")


def test_binary_tensors_are_refused_by_their_name(shared_world: Any) -> None:
    tensor = {"name": "features", "shape": [1, 14], "datatype": "FP64", "parameters": {"binary_data_size": 112}}
    text = json.dumps({"inputs": [tensor]}).encode()
    headers = {"Content-Type": "application/json", "Inference-Header-Content-Length": str(len(text))}
    body = text + struct.pack("<14d", *ROW)
    answer = shared_world.call(Role.VIEWER, "POST", f"{ROOT}/infer", content=body, headers=headers)
    said = "binary tensors are not taken: send numbers in data, without Inference-Header-Content-Length"
    assert (answer.status_code, answer.json()) == (400, {"error": said})


@pytest.mark.parametrize("name", ["coverage", "units"])
def test_a_parameter_that_a_diagnosis_takes_is_not_passed_over(shared_world: Any, name: str) -> None:
    body = {"inputs": [ONE], "parameters": {"priority": 1}}
    assert shared_world.call(Role.VIEWER, "POST", f"{ROOT}/infer", body).status_code == 200
    answer = shared_world.call(Role.VIEWER, "POST", f"{ROOT}/infer", {**body, "parameters": {name: 0.95}})
    said = f"an answer here has no {name}: ask /v1/models/pumps/diagnose, which takes one"
    assert (answer.status_code, answer.json()) == (400, {"error": said})


def test_an_item_that_does_not_fit_is_told_once(shared_world: Any) -> None:
    said = infer(shared_world, {**ONE, "datatype": "INT64"}).json()["error"]
    assert said == "body.inputs.0.datatype: Input should be 'FP64' or 'FP32'"
    assert infer(shared_world).json()["error"].startswith("body.inputs: Input should have at least 1 item, not 0")
    body = {"samples": [{"flow_mean": "x"}]}
    found = shared_world.call(Role.VIEWER, "POST", "/v1/models/pumps/diagnose", body).json()["errors"]
    assert [each["where"] for each in found] == ["body.samples.0.flow_mean"]


def test_an_unknown_model_output_or_address_is_told_in_the_protocols_words(shared_world: Any) -> None:
    assert infer(shared_world, ONE, path="/v2/models/nobody/infer").status_code == 404
    answer = infer(shared_world, ONE, outputs=[{"name": "margin"}])
    assert answer.status_code == 400 and "no output 'margin'" in answer.json()["error"]
    answer = shared_world.call(Role.VIEWER, "GET", "/v2/nothing")
    assert (answer.status_code, list(answer.json())) == (404, ["error"])


def test_what_nobody_expected_is_told_in_the_protocols_words(
    shared_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: Any) -> Any:
        raise ZeroDivisionError("the cause")

    monkeypatch.setattr(service, "infer", broken)
    answer = infer(shared_world, ONE)
    assert answer.status_code == 500 and list(answer.json()) == ["error"]
    assert "incident" in answer.json()["error"] and "cause" not in answer.text
    assert answer.headers["content-type"] == "application/json"
