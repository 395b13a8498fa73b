"""A key that is there twice is named, whatever its two values are."""

from __future__ import annotations

import json

import pytest

from services.contracts.repeated_keys import RepeatedKeyError, without_repeats


@pytest.mark.parametrize("text", ['{"a": 1, "b": 2, "b": 3}', '{"b": 2, "b": 2}', '{"c": {"b": [], "b": []}}',
                                  '{"b": null, "b": 1}', '{"b": false, "b": null}'])
def test_a_key_that_is_there_twice_is_named(text: str) -> None:
    with pytest.raises(RepeatedKeyError, match="^b$"):
        json.loads(text, object_pairs_hook=without_repeats)


def test_one_key_in_two_objects_is_no_repeat() -> None:
    text = '{"a": {"b": 1}, "b": {"b": 1}}'
    assert json.loads(text, object_pairs_hook=without_repeats) == json.loads(text)
