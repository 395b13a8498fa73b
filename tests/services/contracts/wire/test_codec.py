"""The wire codec: exact, of a size that depends on shapes alone, and deaf to nonsense."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.codec import FrameError, decode, encode, pack_arrays, unpack
from services.contracts.wire.messages import SiteUpdate, Task

RUN = "0123456789abcdef" * 2
ARRAYS = st.dictionaries(
    st.sampled_from(["risk", "subgradient", "weights"]),
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
)


def update(arrays: dict[str, np.ndarray]) -> SiteUpdate:
    return SiteUpdate(kind="round", site_id="plant-1", run_id=RUN, round=3, task_sha256="a" * 64, arrays=arrays)


@settings(max_examples=100, derandomize=True)
@given(ARRAYS)
def test_every_bit_survives(arrays: dict[str, np.ndarray]) -> None:
    back = decode(encode(update(arrays)), 10**6)
    assert isinstance(back, SiteUpdate)
    assert set(back.arrays) == set(arrays)
    for name, array in arrays.items():
        assert back.arrays[name].shape == array.shape
        assert back.arrays[name].tobytes() == array.tobytes()


def test_the_size_depends_on_shapes_alone() -> None:
    sizes = {len(encode(update({"risk": np.array([value])}))) for value in (0.0, 1 / 3, -1e300, math.pi * 1e-200)}
    assert len(sizes) == 1


def test_the_order_of_a_headers_keys_changes_no_byte() -> None:
    """What is signed and hashed is made anew elsewhere, by another process that fills its tables in another order."""
    one = {"a": 1, "b": {"c": 2, "d": [3, {"e": 4, "f": 5}]}}
    other = {"b": {"d": [3, {"f": 5, "e": 4}], "c": 2}, "a": 1}
    arrays = {"risk": np.array([0.5])}
    assert pack_arrays(one, arrays) == pack_arrays(other, arrays)


def a_task(spec: TrainingSpec) -> Task:
    return Task(
        kind="join", site_id="plant-1", run_id=RUN, round=0, method="fdr-admm-reg", asset_type="pump",
        contract="c" * 64, spec=spec,
    )


def test_an_infinite_label_flip_cost_travels() -> None:
    task = a_task(TrainingSpec(label_flip_cost=math.inf))
    assert decode(encode(task), 10**6) == task


def test_what_is_not_asked_or_told_is_not_named_for_who_does_not_know_it() -> None:
    """A plant or a server of before refuses a name that it does not know."""
    asked, told = encode(a_task(TrainingSpec())), encode(update({"risk": np.array([1.0])}))
    assert all(name not in asked for name in (b"tuning", b"network"))
    assert all(name not in told for name in (b"drift", b"exposed", b"own_scores"))


@settings(max_examples=200, derandomize=True)
@given(st.binary(max_size=200), st.integers(0, 200))
def test_cut_and_altered_frames_are_refused_or_read_as_what_they_say(noise: bytes, at: int) -> None:
    frame = encode(update({"risk": np.array([1.0])}))
    damaged = frame[: at % len(frame)] + noise
    try:
        back = decode(damaged, 10**6)
    except FrameError as error:
        assert "\n" not in str(error) and damaged != frame
    else:
        assert encode(back) == damaged, "what is read is what the bytes say, no more and no less"


@pytest.mark.parametrize("more", [b"\x00", b"\x00" * 8, b"x" * 64])
def test_a_frame_with_bytes_left_over_is_refused(more: bytes) -> None:
    frame = encode(update({"risk": np.array([1.0])}))
    with pytest.raises(FrameError, match=f"frame has {len(frame + more)} bytes, its header promises {len(frame)}"):
        decode(frame + more, 10**6)
    for cut in range(1, len(more) + 1):
        with pytest.raises(FrameError):
            decode(frame[:-cut], 10**6)


@settings(max_examples=200, derandomize=True)
@given(st.integers(0, 7), st.integers(0, 10**6))
def test_a_changed_number_is_read_as_what_it_says(bit: int, at: int) -> None:
    """A bit that flips among the numbers changes that number alone; the signature is there to tell."""
    frame = bytearray(encode(update({"risk": np.array([1.0, 2.0])})))
    place = len(frame) - 16 + at % 16
    frame[place] ^= 1 << bit
    back = decode(bytes(frame), 10**6)
    assert isinstance(back, SiteUpdate) and encode(back) == bytes(frame)
    changed = back.arrays["risk"].view(np.uint64) != np.array([1.0, 2.0]).view(np.uint64)
    assert changed.tolist() == [place < len(frame) - 8, place >= len(frame) - 8]


@pytest.mark.parametrize("more", [b"\0", bytes(8), b"BLS1"])
def test_bytes_that_are_left_over_are_refused(more: bytes) -> None:
    frame = encode(update({"risk": np.array([1.0])}))
    with pytest.raises(FrameError, match="its header promises"):
        decode(frame + more, 10**6)


def test_two_negative_lengths_do_not_make_a_positive_one() -> None:
    text = b'{"arrays":[["a",[-1,-1]]],"signed":false,"type":"update"}'
    with pytest.raises(FrameError, match="none negative"):
        unpack(b"BLS1" + len(text).to_bytes(4, "little") + text + bytes(8))


def test_an_array_that_is_named_twice_is_refused() -> None:
    text = b'{"arrays":[["a",[1]],["a",[1]]],"signed":false,"type":"update"}'
    with pytest.raises(FrameError, match="named twice"):
        unpack(b"BLS1" + len(text).to_bytes(4, "little") + text + bytes(16))


def test_a_frame_over_the_limit_is_refused() -> None:
    with pytest.raises(FrameError, match="over the limit of 100"):
        decode(encode(update({"risk": np.zeros(1000)})), 100)


@pytest.mark.parametrize(
    "shape",
    [
        "[-1]", "[1,1,1,1,1]", '["x"]', "[1e99]", "{}", "[1e999]", "[NaN]", "[0,4611686018427387904]",
        "[0,1180591620717411303424]", "[0,999999999,999999999,999999999]",
    ],
)
def test_shapes_that_make_no_sense_are_refused(shape: str) -> None:
    text = ('{"arrays":[["a",' + shape + ']],"signed":false,"type":"update"}').encode()
    with pytest.raises(FrameError):
        unpack(b"BLS1" + len(text).to_bytes(4, "little") + text)
