"""A key that stands twice in a question is refused by its name, whatever the face; nothing else is taken for one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.models import quick
from api.models.answers import KINDS
from api.models.examples import FEATURES_EXAMPLE
from api.web.repeated_keys import may_repeat, members_of, repeated_key
from services.contracts.access.identity import Role
from services.contracts.repeated_keys import said_twice

PATH = "/v1/models/pumps/diagnose"
GOOD = json.dumps(FEATURES_EXAMPLE).encode()
TWICE = GOOD[:-1] + b', "flow_mean": 21.0}'
SAID = "the key 'flow_mean' is there twice in one object; say it once"


def sent(world: Any, content: bytes, kind: str = "application/json", path: str = PATH) -> Any:
    return world.call(Role.VIEWER, "POST", path, content=content, headers={"Content-Type": kind})


@pytest.mark.parametrize("content", [
    b'{"sample": ' + TWICE + b"}", b'{"samples": [' + GOOD + b", " + TWICE + b"]}",
    b'{"samples": [' + b", ".join([GOOD] * 60) + b", " + TWICE + b"]}",  # more than is read in place
    b'{"samples": [' + TWICE + b'], "samples": null, "sample": ' + GOOD + b"}",
])
def test_a_sample_with_a_key_twice_is_refused_by_the_key(shared_world: Any, content: bytes) -> None:
    refused = sent(shared_world, content)
    assert (refused.status_code, refused.json()["detail"]) == (422, f"body: {SAID}")


@pytest.mark.parametrize(("more", "key"), [
    (b', "alias": "1", "alias": "champion"', "alias"), (b', "sample": {}', "sample"),
    (b', "units": {"flow_mean": "L/min", "flow_mean": "L/min"}', "flow_mean"),
])
def test_so_is_what_stands_beside_the_samples(shared_world: Any, more: bytes, key: str) -> None:
    refused = sent(shared_world, b'{"sample": ' + GOOD + more + b"}")
    assert (refused.status_code, f"the key '{key}' is there twice" in refused.json()["detail"]) == (422, True)


def test_of_lines_the_one_with_a_key_twice_is_told_and_the_others_are_answered(shared_world: Any) -> None:
    answer = sent(shared_world, b"\n".join([GOOD, TWICE, GOOD]), "application/x-ndjson")
    first, second, third, end = (json.loads(line) for line in answer.content.splitlines())
    assert second == {"line": 2, "error": f"line 2: {SAID}"} and (end["answered"], end["refused"]) == (2, 1)
    assert first["scores"] == third["scores"]


def test_a_tensor_with_a_key_twice_is_refused_in_the_protocols_words(shared_world: Any) -> None:
    tensor = {"name": "features", "shape": [1, 14], "datatype": "FP64", "data": list(FEATURES_EXAMPLE.values())}
    one = json.dumps(tensor).encode()
    path = "/v2/models/pumps/infer"
    refused = sent(shared_world, b'{"inputs": [' + one[:-1] + b', "data": [1, 2]}]}', path=path)
    assert refused.status_code == 400
    assert refused.json() == {"error": "body: the key 'data' is there twice in one object; say it once"}
    outputs = b', "outputs": [{"name": "class"}], "id": "a:b", "parameters": {"one": {"two": 2}}}'
    assert sent(shared_world, b'{"inputs": [' + one + b"]" + outputs, path=path).status_code == 200
    assert sent(shared_world, b"{not json", path=path).status_code == 400


def test_colons_in_strings_are_no_keys_and_a_plain_request_takes_no_second_reading(
    shared_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    strange = json.dumps({"sample": FEATURES_EXAMPLE, "units": {"flow_mean": "L:min"}}).encode()
    assert "units: feature flow_mean must be in" in sent(shared_world, strange).json()["detail"]

    def never(text: bytes) -> str | None:
        raise AssertionError("read a second time")

    monkeypatch.setattr(quick, "repeated_key", never)
    plain = json.dumps({"samples": [FEATURES_EXAMPLE] * 3, "alias": "1", "units": {"flow_mean": "L/min"}}).encode()
    assert quick.read(plain, KINDS["diagnose"]) is not None


@pytest.mark.parametrize(("text", "key"), [
    (b'{"a": {"b": 1}, "b": [{"a": 2}, {"a": 3}]}', None), (b'[{"a": 1}, {"b": {"c": 1, "\\u0063": 2}}]', "c"),
    (b'{"a": ":"}', None), (b"{", None), (b"[" * 100_000, None), (b"\xff", None),
    (b'[{"a": 1, "b": 2}, {"c": 3, "c": 4}]', "c"),
])
def test_which_key_it_is(text: bytes, key: str | None) -> None:
    assert repeated_key(text) == key
    assert key is None or may_repeat(text, members_of(json.loads(text)))
    if key is None and text[:1] == b"{" and len(text) > 1:
        assert may_repeat(text, members_of(json.loads(text))) == (b'":"' in text)


def test_of_a_long_key_the_beginning_is_said() -> None:
    assert said_twice("k" * 61) == f"the key '{'k' * 60}' is there twice in one object; say it once"
