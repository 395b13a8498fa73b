"""A process's lines: Ballast's at the wanted level, libraries' from warnings on, once each."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.process.log_lines import LoggingSettings, about, set_up_logs

NAME = "ballast.test.set-up"


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, and its and Ballast's state as it was afterwards."""
    found, own = logging.getLogger(), logging.getLogger("ballast")
    before = (found.handlers[:], found.level, own.level)
    yield found
    found.handlers[:], found.level, own.level = before[0], before[1], before[2]
    found.setLevel(before[1])  # forgets what the loggers keep of which lines there are


def test_the_level_is_that_of_our_own_lines(root: logging.Logger) -> None:
    set_up_logs(LoggingSettings(level="debug"))
    assert logging.getLogger(NAME).isEnabledFor(logging.DEBUG)
    library = logging.getLogger("some.library")
    assert not library.isEnabledFor(logging.INFO) and library.isEnabledFor(logging.WARNING)
    set_up_logs(LoggingSettings(level="error"))
    assert not logging.getLogger(NAME).isEnabledFor(logging.WARNING) and library.isEnabledFor(logging.WARNING)


def test_each_line_is_written_once_however_often_it_is_set_up(root: logging.Logger) -> None:
    root.addHandler(logging.StreamHandler(io.StringIO()))
    for wanted in (LoggingSettings(), LoggingSettings(format="json"), LoggingSettings(format="json")):
        set_up_logs(wanted)
    (handler,) = root.handlers
    assert isinstance(handler, logging.StreamHandler)
    stream = io.StringIO()
    handler.setStream(stream)
    with about(run_id="r"):
        logging.getLogger(NAME).warning("inside")
    logging.getLogger(NAME).warning("outside")
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["message"], line.get("run_id")) for line in said] == [("inside", "r"), ("outside", None)]


def test_lines_of_libraries_are_json_on_the_console_and_as_they_were_in_files(
    root: logging.Logger, tmp_path: Path
) -> None:
    library = logging.getLogger("some.other.library")
    to_console, to_file = logging.StreamHandler(io.StringIO()), logging.FileHandler(tmp_path / "library.log")
    for handler in (to_console, to_file):
        library.addHandler(handler)
    try:
        set_up_logs(LoggingSettings())
        assert to_console.formatter is None
        set_up_logs(LoggingSettings(format="json"))
        library.warning("of two\nlines")
        assert json.loads(to_console.stream.getvalue())["message"] == "of two\nlines"
        assert (tmp_path / "library.log").read_text() == "of two\nlines\n"
    finally:
        library.handlers.clear()
        to_file.close()


def test_what_lines_are_about_ends_with_its_block_also_by_an_exception(root: logging.Logger) -> None:
    stream = io.StringIO()
    set_up_logs(LoggingSettings(format="json"))
    root.handlers[0].setStream(stream)  # type: ignore[attr-defined]
    with about(run_id="r", site_id="a"):
        with pytest.raises(ZeroDivisionError), about(site_id="b"):
            logging.getLogger(NAME).warning("inner")
            _ = 1 / 0
        logging.getLogger(NAME).warning("outer")
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["run_id"], line["site_id"]) for line in said] == [("r", "b"), ("r", "a")]
