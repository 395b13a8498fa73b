"""How commands end where files are in the way, and what counts as a number."""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

from services.process.command_line import (
    LONGEST,
    file_trouble,
    port,
    print_json,
    print_line,
    seconds,
    tell,
    whole_number,
)

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("full", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_or_a_quota_that_is_full_is_one_line(
    full: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.process.command_line.reader_left", lambda: 1)
    assert file_trouble("ballast", OSError(full, "no room")) == 1
    assert capsys.readouterr().err == "ballast: nothing more can be written: no room\n"


def test_a_failure_that_is_of_no_file_is_not_told_as_one() -> None:
    with pytest.raises(ConnectionResetError):
        file_trouble("ballast", ConnectionResetError(errno.ECONNRESET, "reset"))


def test_a_file_in_the_way_is_named_on_one_line_and_cut(capsys: Capture) -> None:
    assert file_trouble("ballast", PermissionError(errno.EACCES, "not yours", "a\n b\x1d/c")) == 1
    assert capsys.readouterr().err == "ballast: a b /c: not yours\n"
    file_trouble("ballast", PermissionError(errno.EACCES, "not yours", "x" * 5000))
    assert capsys.readouterr().err == f"ballast: {'x' * LONGEST}: not yours\n"


def test_a_count_has_a_least_and_is_whole() -> None:
    assert (whole_number("1"), whole_number("0", 0), whole_number("7", 7)) == (1, 0, 7)
    assert whole_number("9" * 30) == sys.maxsize, "no database takes a greater one"
    for text, least in (("0", 1), ("-1", 0), ("6", 7), ("1.5", 1), ("", 0), ("many", 3)):
        with pytest.raises(argparse.ArgumentTypeError, match=f"at or above {least}, not '{text}'"):
            whole_number(text, least)


def test_a_port_and_a_time_to_wait_are_what_can_be_one() -> None:
    assert (port("1"), port("65535"), seconds("0.25")) == (1, 65535, 0.25)
    assert timedelta(days=10_000) < timedelta(seconds=seconds("1e300")) and seconds("1e300") < threading.TIMEOUT_MAX
    for text in ("0", "65536", "-1", "80.0", "", "http"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"a port from 1 to 65535, not '{text}'"):
            port(text)
    for text in ("0", "-1", "nan", "inf", "soon"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"seconds above 0, not '{text}'"):
            seconds(text)


def test_a_result_is_json_or_lines_never_both(capsys: Capture) -> None:
    tell(argparse.Namespace(json=True), {"gap": float("inf")}, "for people")
    assert capsys.readouterr().out == '{\n  "gap": "Infinity"\n}\n'
    tell(argparse.Namespace(json=False), {"gap": 1}, "for", "people")
    assert capsys.readouterr().out == "for\npeople\n"


@pytest.mark.parametrize(
    ("encoding", "as_it_is"), [("utf-8", True), ("UTF8", True), ("latin-1", False), ("ascii", False)]
)
def test_json_can_be_read_whatever_the_encoding_of_the_output(
    encoding: str, as_it_is: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its readers take it for UTF-8, whatever the locale of the writer."""
    for said in (print_json, print_line):
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
        said({"unit": "\u00b5m \u2126"})
        sys.stdout.flush()
        assert json.loads(written.getvalue().decode()) == {"unit": "\u00b5m \u2126"}
        assert ("\u00b5".encode() in written.getvalue()) == as_it_is


@pytest.mark.parametrize("module", ["api.cli.main", "services.site_agent.cli"])
def test_a_letter_that_the_output_does_not_have_is_no_traceback(module: str) -> None:
    program = (
        f"import sys\nfrom {module} import main\nsys.argv[1:] = ['completion', 'bash']\nmain()\n"
        "print('20 \\u00b5m')"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == r"20 \xb5m" and done.stderr == ""
