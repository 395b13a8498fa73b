"""Nothing reaches a model that is not exactly what was asked, from whom it was asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.wire.codec import encode
from services.contracts.wire.masking import MaskedWords, MaskingAnswer, Preparation, Revealed, Unmasked
from services.contracts.wire.messages import Hello, SiteRefusal, SiteUpdate
from services.coordinator.asking.admission import AdmissionError, Expected, admit

RUN = "0123456789abcdef" * 2
SHAPES = {"risk": (1,), "subgradient": (1, 3)}


@pytest.fixture
def seed(tmp_path: Path) -> Path:
    path = tmp_path / "site.nk"
    new_seed_file(path)
    return path


@pytest.fixture
def expected(seed: Path) -> Expected:
    from services.contracts.keys.signing import public_key

    return Expected("round", "plant-1", RUN, 7, "d" * 64, public_key(seed), SHAPES)


def update(**changes: object) -> SiteUpdate:
    fields: dict[str, object] = {
        "kind": "round", "site_id": "plant-1", "run_id": RUN, "round": 7, "task_sha256": "d" * 64,
        "arrays": {"risk": np.array([1.0]), "subgradient": np.zeros((1, 3))},
    }
    return SiteUpdate.model_validate(fields | changes)


def test_a_valid_update_is_admitted_bit_for_bit(seed: Path, expected: Expected) -> None:
    values = np.random.default_rng(0).standard_normal((1, 3))
    sent = update(arrays={"risk": np.array([0.1 + 0.2]), "subgradient": values})
    admitted = admit(encode(sent, signer(seed)), expected)
    assert isinstance(admitted, SiteUpdate)
    assert admitted.arrays["risk"][0] == 0.1 + 0.2
    np.testing.assert_array_equal(admitted.arrays["subgradient"], values)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"round": 6}, "wrong_round"),
        ({"run_id": "f" * 32}, "wrong_run"),
        ({"site_id": "plant-2"}, "wrong_site"),
        ({"kind": "evaluate"}, "wrong_kind"),
        ({"task_sha256": "e" * 64}, "wrong_task"),
        ({"arrays": {"risk": np.array([1.0])}}, "wrong_fields"),
        ({"arrays": {"risk": np.array([1.0]), "subgradient": np.zeros((1, 3)), "rows": np.zeros(2)}}, "wrong_fields"),
        ({"arrays": {"risk": np.array([1.0]), "subgradient": np.zeros((1, 4))}}, "wrong_dimension"),
        ({"arrays": {"risk": np.array([1.0]), "subgradient": np.zeros(3)}}, "wrong_dimension"),
        ({"arrays": {"risk": np.array([np.nan]), "subgradient": np.zeros((1, 3))}}, "not_finite"),
        ({"arrays": {"risk": np.array([1.0]), "subgradient": np.full((1, 3), np.inf)}}, "not_finite"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_reason(
    seed: Path, expected: Expected, changes: dict[str, object], code: str
) -> None:
    with pytest.raises(AdmissionError) as refusal:
        admit(encode(update(**changes), signer(seed)), expected)
    assert refusal.value.code == code
    assert "\n" not in str(refusal.value)


WORDS = MaskedWords(run_id=RUN, round=7, site_id="plant-1", words=b"")
SHARES = Revealed(run_id=RUN, round=7, site_id="plant-1", self_shares={}, recovery_shares={})
NEXT = Preparation(run_id=RUN, round=8, site_id="plant-1", sealed={}, recovery=b"", commitments=(bytes(32), bytes(32)))
OTHERS: tuple[tuple[dict[str, object], str], ...] = (
    ({"site_id": "plant-2"}, "wrong_site"), ({"run_id": "f" * 32}, "wrong_site"),
)


@pytest.mark.parametrize(
    ("masking", "code"),
    [
        (WORDS, ""), *((WORDS.model_copy(update=other), code) for other, code in OTHERS),
        (WORDS.model_copy(update={"round": 8}), "wrong_round"), (None, "wrong_fields"),
        (Unmasked(run_id=RUN, revealed=SHARES), "wrong_fields"),
    ],
)
def test_masked_words_are_of_the_site_run_and_round_that_were_asked(
    seed: Path, expected: Expected, masking: MaskingAnswer | None, code: str
) -> None:
    _check_masks(update(arrays={}, masking=masking), replace(expected, shapes={}, masking=MaskedWords), seed, code)


@pytest.mark.parametrize(
    ("revealed", "preparation", "code"),
    [
        (SHARES, NEXT, ""), (SHARES, None, ""),
        *((SHARES, NEXT.model_copy(update=other), code) for other, code in OTHERS),
        *((SHARES.model_copy(update=other), NEXT, code) for other, code in OTHERS),
        (SHARES.model_copy(update={"round": 6}), NEXT, "wrong_round"),
    ],
)
def test_shares_and_what_is_prepared_beside_them_are_of_the_site_and_run(
    seed: Path, expected: Expected, revealed: Revealed, preparation: Preparation | None, code: str
) -> None:
    unmasked = Unmasked(run_id=RUN, revealed=revealed, preparation=preparation)
    _check_masks(update(kind="unmask", arrays={}, masking=unmasked),
                 replace(expected, kind="unmask", shapes={}, masking=Unmasked), seed, code)


def _check_masks(sent: SiteUpdate, expected: Expected, seed: Path, code: str) -> None:
    expected = replace(expected, masking_bytes=10_000)
    if not code:
        assert admit(encode(sent, signer(seed)), expected) == sent
        return
    with pytest.raises(AdmissionError) as refusal:
        admit(encode(sent, signer(seed)), expected)
    assert refusal.value.code == code


def test_arrays_are_due_where_no_masks_were_asked(seed: Path, expected: Expected) -> None:
    _check_masks(update(arrays={}, masking=WORDS), expected, seed, "wrong_fields")


def test_ten_times_the_size_is_refused_before_it_is_read(seed: Path, expected: Expected) -> None:
    large = update(arrays={"risk": np.zeros(1), "subgradient": np.zeros((1, expected.max_bytes * 10 // 8))})
    with pytest.raises(AdmissionError) as refusal:
        admit(encode(large, signer(seed)), expected)
    assert refusal.value.code == "too_large"


def test_another_key_and_no_key_are_refused(tmp_path: Path, expected: Expected) -> None:
    new_seed_file(tmp_path / "other.nk")
    for sign in (signer(tmp_path / "other.nk"), None):
        with pytest.raises(AdmissionError) as refusal:
            admit(encode(update(), sign), expected)
        assert refusal.value.code == "bad_signature"


def test_a_changed_byte_is_refused(seed: Path, expected: Expected) -> None:
    frame = bytearray(encode(update(), signer(seed)))
    frame[-70] ^= 1  # in the last array
    with pytest.raises(AdmissionError) as refusal:
        admit(bytes(frame), expected)
    assert refusal.value.code == "bad_signature"


@pytest.mark.parametrize("junk", [b"", b"BLS1", b"nonsense" * 9, b"BLS1\xff\xff\xff\x7f{}", b"BLS1\x02\x00\x00\x00[]"])
def test_junk_is_refused(junk: bytes, expected: Expected) -> None:
    with pytest.raises(AdmissionError) as refusal:
        admit(junk, expected)
    assert refusal.value.code == "bad_frame"


def test_a_refusal_passes_as_a_refusal(seed: Path, expected: Expected) -> None:
    refusal = SiteRefusal(
        kind="round", site_id="plant-1", run_id=RUN, round=7, task_sha256="d" * 64, code="too_few_samples", reason="no"
    )
    assert admit(encode(refusal, signer(seed)), expected) == refusal


def test_a_hello_is_no_answer(seed: Path, expected: Expected) -> None:
    with pytest.raises(AdmissionError) as refusal:
        admit(encode(Hello(site_id="plant-1", version="1"), signer(seed)), expected)
    assert refusal.value.code == "bad_type"
