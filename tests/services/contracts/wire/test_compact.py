"""The compact frame: the answers of a round on sums, whole, in fewer bytes, and one form of bytes for each."""

from __future__ import annotations

import struct
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.wire.codec import COMPACT as COMPACT_WORD
from services.contracts.wire.codec import READS, FrameError, decode, encode, read_by_asker, unpack
from services.contracts.wire.compact import MAGIC, SIGNATURE_BYTES
from services.contracts.wire.masking import (
    Commitment,
    MaskedWords,
    MaskingAnswer,
    MaskingCohort,
    MaskKey,
    Preparation,
    Revealed,
    Unmasked,
)
from services.contracts.wire.messages import Kind, Message, SiteUpdate
from services.masking.keys import MaskKeyPair
from services.masking.member import Member
from services.masking.unmasking import deliveries, unmask_request

RUN, SITES, ROUND = "0123456789abcdef" * 2, ("plant-1", "plant-2", "plant-3", "plant-4"), 7
AT: dict[str, Any] = {"run_id": RUN, "site_id": "plant-1", "round": ROUND}


def sign(data: bytes) -> bytes:
    """A signature by its length alone."""
    return bytes(64)


def kept(signature: bytes, data: bytes) -> bytes:
    """The signature that a frame has, whatever it is."""
    return signature


def update(kind: Kind, masking: MaskingAnswer | None, **changes: Any) -> SiteUpdate:
    said: dict[str, Any] = {**AT, "kind": kind, "task_sha256": "a1" * 32, "masking": masking}
    return SiteUpdate(**(said | changes))


def preparation(number: int = ROUND + 1, **changes: Any) -> Preparation:
    said = {**AT, "round": number, "sealed": {site: site.encode() * 9 for site in SITES[1:]}, "recovery": b"r" * 136}
    return Preparation(**(said | {"commitments": (b"s" * 32, b"t" * 32)} | changes))


def revealed(**changes: Any) -> Revealed:
    shares = {site: site[:1].encode() * 34 for site in SITES[:3]}
    return Revealed(**({**AT, "self_shares": shares, "recovery_shares": {"plant-4": b"x" * 34}} | changes))


def unmasked(ready: Preparation | None = None, **changes: Any) -> Unmasked:
    return Unmasked(run_id=RUN, revealed=revealed(**changes), preparation=ready)


def commitment(**changes: Any) -> Commitment:
    digests = {"cohort": "b2" * 32, "question": "c3" * 32, "masked": "d4" * 32}
    known = {"words": b"w" * 32, "self_mask": b"m" * 32, "pairs": dict.fromkeys(SITES[1:], b"p" * 32)}
    return Commitment(**({**AT, **digests, **known, "signature": b"z" * 64} | changes))


def words(bound: Commitment | None = None, **changes: Any) -> MaskedWords:
    return MaskedWords(**({**AT, "words": bytes(range(256)), "commitment": bound} | changes))


ARRAYS = {
    "slope": np.arange(6.0).reshape(2, 3), "risk": np.array(0.5), "none": np.zeros((0, 2)), "cut_height": np.ones(2),
}
COMPACT = {
    "arrays": update("round", None, arrays=ARRAYS), "alone": update("evaluate", None, arrays={"loss": np.array(-0.0)}),
    "words": update("round", words()), "committed": update("round", words(commitment())), "none": update(
        "round", words(words=b"")), "scores": update("evaluate", words()), "tuned": update("tune", words()),
    "prepared": update("prepare", preparation(ROUND)), "last": update("unmask", unmasked()),
    "unmasked": update("unmask", unmasked(preparation())),
    "everybody": update("unmask", unmasked(preparation(), recovery_shares={})),
}


def same(found: Message, said: SiteUpdate) -> bool:
    """Whether all of it is the same, numbers bit by bit."""
    assert isinstance(found, SiteUpdate)
    bits = [{name: (each.shape, each.tobytes()) for name, each in one.arrays.items()} for one in (found, said)]
    return bits[0] == bits[1] and found.model_dump(exclude={"arrays"}) == said.model_dump(exclude={"arrays"})


@pytest.mark.parametrize("name", COMPACT)
def test_what_is_read_is_what_was_said(name: str) -> None:
    frame = encode(COMPACT[name], sign, reads_compact=True)
    assert frame[:4] == MAGIC and same(decode(frame, 10**6), COMPACT[name])
    assert unpack(frame).signed == frame[:-SIGNATURE_BYTES] and unpack(frame).signature == frame[-SIGNATURE_BYTES:]
    whole = encode(COMPACT[name], sign)
    assert whole[:4] == b"BLS1" and same(decode(whole, 10**6), COMPACT[name]) and len(frame) < 0.9 * len(whole)


def test_a_round_of_a_cohort_of_four_takes_little_more_than_what_is_random(tmp_path: Path) -> None:
    """By what a round is made of: words of 8 bytes; shares of 34, three boxes of 108 and one of 136, two digests."""
    keys = {site: new_seed_file(tmp_path / site) for site in SITES}
    cohort = MaskingCohort(run_id=RUN, name="cohort-1", keys=keys, threshold=3)
    pairs = {site: MaskKeyPair.new() for site in SITES}
    known = {site: pairs[site].signed(cohort, site, signer(tmp_path / site)) for site in SITES}
    members = {site: Member(cohort, site, pairs[site], known) for site in SITES}
    prepared = {site: each.prepare(ROUND) for site, each in members.items()}
    numbers = np.arange(210, dtype=np.uint64)
    sent = {
        site: members[site].mask(each, numbers) for site, each in deliveries(cohort, ROUND, prepared).items()
    }
    told = Unmasked(
        run_id=RUN, revealed=members["plant-1"].reveal(unmask_request(cohort, ROUND, prepared, sent)),
        preparation=members["plant-1"].prepare(ROUND + 1),
    )
    answer, shares = update("round", sent["plant-1"]), update("unmask", told)
    sizes = [len(encode(each, sign, reads_compact=True)) for each in (answer, shares)]
    random = [8 * 210 + SIGNATURE_BYTES, 4 * 34 + 3 * 108 + 136 + 64 + SIGNATURE_BYTES]
    assert all(least < size < least + 150 for least, size in zip(random, sizes, strict=True)), sizes


@pytest.mark.parametrize("said", [
    update("round", words(), site_id="plant-2"), update("round", words(round=ROUND + 1)),
    update("round", words(run_id="f" * 32)), update("round", words(words=b"seven b")),
    update("round", words(commitment(site_id="plant-2"))), update("round", words(commitment(round=1))),
    update("round", preparation()), update("unmask", unmasked(preparation(site_id="plant-2"))),
    update("unmask", unmasked(round=1)), update("round", words(), task_sha256="A1" * 32),
    update("unmask", unmasked().model_copy(update={"run_id": "f" * 32})),
    update("round", words(), round=2**40), update("prepare", preparation(sealed={"plant-2": b"1", "plant-3": b"22"})),
    update("round", words(), arrays={"risk": np.ones(1)}), update("round", words(), data_digest="e5" * 32),
    update("join", None, arrays=ARRAYS), update("unmask", None, arrays=ARRAYS),
    update("round", None, arrays={"a b": np.ones(1)}), update("round", None, arrays={"a,b": np.ones(1)}),
    update("round", None, arrays={"deep": np.ones((1, 1, 1, 1, 1))}), update("round", None, arrays=ARRAYS, drift=0.5),
    update("round", words(), drift=0.5), update("round", words(), exposed=0.5), update("round", None),
    update("round", words(), own_scores=False),
    update("agree", MaskKey(run_id=RUN, site_id="plant-1", cohort="c", public_key=b"k" * 32, signature=b"s" * 64)),
])
def test_what_the_compact_form_cannot_say_is_said_whole(said: SiteUpdate) -> None:
    frame = encode(said, sign, reads_compact=True)
    assert frame[:4] == b"BLS1" and frame == encode(said, sign)


def test_every_bit_of_a_number_survives_and_no_size_depends_on_one() -> None:
    numbers = np.array([0.0, -0.0, 1 / 3, np.inf, 5e-324]), np.arange(5, dtype=np.uint64).view(np.float64)
    strange = np.array([0x7FF800000000BEEF, 0xFFF0000000000001] + [0] * 3, dtype=np.uint64).view(np.float64)
    said = [update("round", None, arrays={"risk": each}) for each in (*numbers, strange)]
    frames = [encode(each, sign, reads_compact=True) for each in said]
    assert len({len(frame) for frame in frames}) == 1
    back = unpack(frames[-1]).arrays["risk"]
    assert back.tobytes() == strange.tobytes() and back.dtype == np.float64


def test_unsigned_answers_have_no_compact_form() -> None:
    assert encode(COMPACT["words"], reads_compact=True) == encode(COMPACT["words"])


@pytest.mark.parametrize("name", COMPACT)
def test_every_cut_is_refused_or_has_fewer_words(name: str) -> None:
    frame = encode(COMPACT[name], sign, reads_compact=True)
    for end in range(len(frame)):
        try:
            found = decode(frame[:end], 10**6)
        except FrameError as error:
            assert "\n" not in str(error)
        else:
            assert isinstance(found, SiteUpdate) and isinstance(found.masking, MaskedWords), "arrays say how many"
            signature = frame[:end][-SIGNATURE_BYTES:]
            assert encode(found, partial(kept, signature), reads_compact=True) == frame[:end]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(COMPACT)), st.integers(0, 10**6), st.binary(max_size=40), st.integers(0, 40))
def test_other_bytes_are_refused_or_are_another_answer(name: str, at: int, noise: bytes, gone: int) -> None:
    """No two frames stand for one answer: what is read from changed bytes is written as these very bytes."""
    frame = encode(COMPACT[name], sign, reads_compact=True)
    place = at % len(frame)
    changed = frame[:place] + noise + frame[place + gone :]
    try:
        found = decode(changed, 10**6)
    except FrameError:
        assert changed != frame
        return
    assert isinstance(found, SiteUpdate)
    assert encode(found, partial(kept, changed[-SIGNATURE_BYTES:]), reads_compact=True) == changed


def replaced(name: str, old: bytes, new: bytes) -> bytes:
    """A frame of which one part, which stands there once, is another."""
    frame = encode(COMPACT[name], sign, reads_compact=True)
    assert frame.count(old) == 1
    return frame.replace(old, new)


THREE = b"plant-1,plant-2,plant-3"


@pytest.mark.parametrize(("name", "old", "new", "why"), [
    ("unmasked", struct.pack("<HI", 34, len(THREE)), struct.pack("<HI", 34, 2**32 - 1), "cut short"),
    ("unmasked", struct.pack("<HI", 34, len(THREE)), struct.pack("<HI", 34, len(THREE) - 8), "cut short"),
    ("unmasked", struct.pack("<HI", 34, len(THREE)), struct.pack("<HI", 2**16 - 1, len(THREE)), "cut short"),
    ("unmasked", THREE, b"plant-1,plant-2plant-33", "cut short|left over|ascii|ascend"),
    ("everybody", bytes(6) + b"\1\x08\0\0\0s", struct.pack("<HI", 34, 0) + b"\1\x08\0\0\0s", "items of no name"),
    ("prepared", b"plant-2,plant-3", b"plant-3,plant-2", "ascend"),
    ("prepared", b"plant-2,plant-3", b"plant-3,plant-3", "ascend"),
    ("prepared", b",plant-4", b",plant-;", "does not fit"), ("prepared", b",plant-4", b",plant-\xff", "ascii"),
    ("prepared", struct.pack("<I", 136), struct.pack("<I", 2**32 - 1), "cut short"),
    ("last", b"x" * 34 + b"\0", b"x" * 34 + b"\2", "0 or 1"),
    ("last", b"x" * 34 + b"\0", b"x" * 34 + b"\0\0", "left over"),
    ("words", b"\x07plant-1\0", b"\x07plant-1\1", "cut short|left over|ascii|ascend"),
    ("words", b"\x07plant-1\0", b"\x07plant-1\0\0", "no words of 8"),
    ("arrays", b"risk", b"slope", "named twice|numbers"), ("arrays", b"slope 2 3", b"slope 3 3", "the shapes have"),
    ("arrays", b"slope 2 3", b"risk 2 3 ", "whole numbers"), ("arrays", b"slope 2 3", b"slope-2 3", "name and a shape"),
    ("arrays", b"slope 2 3", b"slope 02 ", "whole numbers"), ("arrays", b"slope", b"Slope", "a name and a shape"),
    ("arrays", b"slope 2 3,risk,none", b"slop 1 1 1 1 6,none", "a name and a shape"),
    ("arrays", b"none 0 2,", b"risk,x 0,", "named twice"), ("alone", b"\2\4\0loss", b"\2\xff\xffloss", "cut short"),
    ("alone", b"\2\x04\0loss", b"\2\0\0loss", "a name and|no words|numbers"),
    ("alone", b"\2\x04\0loss", b"\2\4\0loss" + bytes(8), "2 numbers are there, and the shapes have 1"),
    ("alone", b"\2\x04\0loss", b"\2\4\0loss\0", "no words of 8"),
    ("words", b"BLS2\0", b"BLS2\5", "no kind 5"), ("words", b"\x07plant-1\0", b"\x07plant/1\0", "does not fit"),
])
def test_counts_sizes_and_names_that_make_no_sense_are_refused(name: str, old: bytes, new: bytes, why: str) -> None:
    with pytest.raises(FrameError, match=why):
        decode(replaced(name, old, new), 10**6)


def test_a_frame_over_the_limit_is_refused() -> None:
    frame = encode(COMPACT["words"], sign, reads_compact=True)
    with pytest.raises(FrameError, match=f"over the limit of {len(frame) - 1}"):
        decode(frame, len(frame) - 1)


@pytest.mark.parametrize(("headers", "reads"), [
    (None, False), ({}, False), ({READS: "BLS2"}, True), ({READS: "BLS3 BLS2"}, True), ({READS: "BLS"}, False),
    ({READS: "BLS2 own-scores"}, True), ({READS: "own-scores"}, False), ({"traceparent": "BLS2"}, False),
])
def test_who_asks_says_what_it_reads(headers: dict[str, str] | None, reads: bool) -> None:
    assert (COMPACT_WORD in read_by_asker(headers)) == reads
