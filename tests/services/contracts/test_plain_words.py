"""What others wrote moves no cursor of a terminal, and begins no line of a log."""

from __future__ import annotations

import pytest

from services.contracts.plain_words import counted, joined, listed, plain
from services.contracts.wire.codec import FrameError, unpack

HOSTILE = "no rows\n2031-01-01 INFO all is well\x1b[2J\r\x00\u202e \u2028end"


def test_words_come_out_on_one_line_and_print() -> None:
    assert plain(HOSTILE) == "no rows 2031-01-01 INFO all is well [2J end"
    assert plain("Prüfstand 7, 12 µm") == "Prüfstand 7, 12 µm"
    assert plain("x" * 50, 10) == "x" * 9 + "…" and plain("x" * 10, 10) == "x" * 10


def test_what_stands_in_a_frame_is_quoted_so() -> None:
    text = b'{"arrays":[],"signed":false,"type":"\\u001b[2J\\nall is well\\ud800' + b"y" * 3000 + b'"}'
    with pytest.raises(FrameError) as refused:
        unpack(b"BLS1" + len(text).to_bytes(4, "little") + text).message()
    assert str(refused.value).isprintable() and "all is well" in str(refused.value) and len(str(refused.value)) <= 500


def test_one_is_one_and_others_are_many() -> None:
    assert [counted(number, "round") for number in (0, 1, 2)] == ["0 rounds", "1 round", "2 rounds"]
    assert counted(1, "entry", "entries") == "1 entry" and counted(3, "entry", "entries") == "3 entries"


def test_many_names_are_the_first_five_and_how_many_more() -> None:
    assert listed(["a", "b"]) == "a, b" and listed([]) == ""
    assert listed(list("abcde")) == "a, b, c, d, e" and listed(list("abcdefg")) == "a, b, c, d, e and 2 more"


def test_empty_sentences_are_left_out() -> None:
    assert joined("one", "", "two") == "one; two" and joined("", "") == ""
