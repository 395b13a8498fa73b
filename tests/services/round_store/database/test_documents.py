"""What is stored of contracts and of texts from outside, on both servers alike."""

from __future__ import annotations

import json
from math import inf, nan

from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.round_store.database.documents import MAX_TEXT, document, metadata, sentence

BAD = "a\x00b\ud800"
GOOD = "a\ufffdb?"


def test_texts_are_cleaned_wherever_they_stand() -> None:
    assert metadata({BAD: [BAD, {BAD: (BAD,)}], "n": [1, -0.0, None, True]}) == {
        GOOD: [GOOD, {GOOD: [GOOD]}], "n": [1, -0.0, None, True],
    }
    assert metadata(None) is None and metadata({}) == {}


def test_a_contract_is_stored_with_clean_texts() -> None:
    feature = Feature.model_construct(name="flow", unit=BAD, low=0.0, high=1.0)
    classes = (FaultClass(name="healthy", severity=0), FaultClass(name="leak", severity=3))
    stored = document(AssetType.model_construct(name="pump", features=(feature,), fault_classes=classes))
    assert stored["features"][0]["unit"] == GOOD


def test_metadata_has_no_number_that_json_has_not() -> None:
    stored = metadata({"deep": [{"number": number} for number in (nan, inf, -inf)]})
    assert json.loads(json.dumps(stored, allow_nan=False)) == stored


def test_a_sentence_is_one_line_and_cut_at_its_limit() -> None:
    assert sentence("two\nlines\x00\x1b[31m").isprintable()
    assert len(sentence("x" * (MAX_TEXT + 1))) == MAX_TEXT == len(sentence("x" * MAX_TEXT))
    assert sentence("y" * 5, 3) != "y" * 5 and len(sentence("y" * 5, 3)) == 3
