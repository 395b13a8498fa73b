"""The wire codec: exact, of a size that depends on shapes alone, and deaf to nonsense."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from services.contracts.codec import FrameError, decode, encode, unpack_arrays
from services.contracts.messages import SiteUpdate, Task, TrainingSpec

RUN = "0123456789abcdef" * 2
ARRAYS = st.dictionaries(
    st.sampled_from(["risk", "subgradient", "weights"]),
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
)


def update(arrays: dict[str, np.ndarray]) -> SiteUpdate:
    return SiteUpdate(kind="round", site_id="plant-1", run_id=RUN, round=3, task_sha256="a" * 64, arrays=arrays)


@settings(max_examples=100, deadline=None, derandomize=True)
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


def test_an_infinite_label_flip_cost_travels() -> None:
    task = Task(
        kind="join", site_id="plant-1", run_id=RUN, round=0, method="fdr-admm-reg", asset_type="pump",
        contract="c" * 64, spec=TrainingSpec(label_flip_cost=math.inf),
    )
    assert decode(encode(task), 10**6) == task


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=200), st.integers(0, 200))
def test_cut_and_altered_frames_are_refused_or_read_as_what_they_say(noise: bytes, at: int) -> None:
    frame = encode(update({"risk": np.array([1.0])}))
    damaged = frame[: at % len(frame)] + noise
    if damaged != frame:
        try:
            decode(damaged, 10**6)
        except FrameError as error:
            assert "\n" not in str(error)


def test_a_frame_over_the_limit_is_refused() -> None:
    with pytest.raises(FrameError, match="over the limit of 100"):
        decode(encode(update({"risk": np.zeros(1000)})), 100)


@pytest.mark.parametrize("shape", ["[-1]", "[1,1,1,1,1]", '["x"]', "[1e99]", "{}"])
def test_shapes_that_make_no_sense_are_refused(shape: str) -> None:
    text = ('{"arrays":[["a",' + shape + ']],"signed":false,"type":"update"}').encode()
    with pytest.raises(FrameError):
        unpack_arrays(b"BLS1" + len(text).to_bytes(4, "little") + text)
