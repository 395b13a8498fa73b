"""Files of arrays are read by one thread at a time."""

from __future__ import annotations

import io
import threading
from zipfile import BadZipFile, ZipFile

import numpy as np
import pytest

from services.contracts.array_files import UNREADABLE, opened_arrays
from tests.waiting import PATIENCE


def stored(**arrays: np.ndarray) -> io.BytesIO:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return io.BytesIO(file.getvalue())


def test_another_thread_waits_for_its_turn() -> None:
    """Two at once end in a SystemError of Python's, some dozen times in eight seconds of four threads."""
    read, other = threading.Event(), stored(b=np.arange(3))

    def read_other() -> None:
        with opened_arrays(other) as arrays:
            assert arrays["b"].tolist() == [0, 1, 2]
        read.set()

    with opened_arrays(stored(a=np.ones(2))) as arrays:
        thread = threading.Thread(target=read_other, daemon=True)
        thread.start()
        assert not read.wait(0.2)
        assert set(arrays) == {"a"} and arrays["a"].tolist() == [1.0, 1.0]
    assert read.wait(PATIENCE)
    thread.join(PATIENCE)


def test_a_file_that_is_none_lets_the_next_one_in() -> None:
    for content in (b"", b"no zip", b"PK\x03\x04"):
        with pytest.raises((ValueError, EOFError, OSError, BadZipFile)), opened_arrays(io.BytesIO(content)):
            raise AssertionError("it was read")
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        with opened_arrays(stored(a=np.array([{}]))) as arrays:
            arrays["a"]
    with opened_arrays(stored(a=np.ones(1))) as arrays:
        assert arrays["a"].tolist() == [1.0]


@pytest.mark.parametrize("header", ["{'descr': '<f8', 'shape': (1,", "'''", "  1\n 2", "(" * 300])
def test_a_header_that_is_no_python_is_unreadable(header: str) -> None:
    """numpy mends it with Python's tokenizer, and tells what that raises."""
    text = header.encode()
    array = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text
    file = io.BytesIO()
    with ZipFile(file, "w") as archive:
        archive.writestr("a.npy", array)
    with pytest.raises(UNREADABLE), opened_arrays(io.BytesIO(file.getvalue())) as arrays:
        arrays["a"]
