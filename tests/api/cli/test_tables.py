"""Tables, fields, moments and servers as a command line writes and reads them."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from api.cli.common import add_times, print_fields, print_table
from services.bus.cluster import CLIENT_PORT, read_server
from services.contracts.errors import InvalidInputError


def test_columns_are_as_wide_as_what_stands_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = SimpleNamespace(x=0.123456), SimpleNamespace(x=True)
    rows = [SimpleNamespace(name="a", n=1, of=first), SimpleNamespace(name="longer", n=None, of=second)]
    print_table(rows, {"name": "name", "count": "n", "x": "of.x"})
    assert capsys.readouterr().out == "NAME    COUNT  X\na       1      0.1235\nlonger  -      yes\n"
    print_table([], {"name": "name"})
    assert capsys.readouterr().out == "NAME\n"


def test_a_cell_is_one_line_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    moment = datetime(2031, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    print_fields([("a", "x\ny\x1b[31m"), ("longer", ()), ("list", ("p", "q\nr")), ("at", moment), ("no", False)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and all(line.isprintable() for line in lines)
    assert lines[1:2] == ["longer  -"] and lines[2].startswith("list    p, q")
    assert lines[3:] == ["at      2031-01-02 03:04:05+00:00", "no      no"]


@pytest.mark.parametrize(("text", "moment"), [
    ("2031-01-02", datetime(2031, 1, 2, tzinfo=UTC)), ("2031-01-02T08:00", datetime(2031, 1, 2, 8, tzinfo=UTC)),
    ("2031-01-02T08:00+02:00", datetime(2031, 1, 2, 6, tzinfo=UTC)),
    ("2031-01-02T08:00Z", datetime(2031, 1, 2, 8, tzinfo=UTC)),
])
def test_a_moment_without_a_zone_is_one_in_utc(text: str, moment: datetime, elsewhere: None) -> None:
    parser = argparse.ArgumentParser()
    add_times(parser)
    found = parser.parse_args(["--since", text]).since
    assert found == moment and found.utcoffset() == timedelta(0)


def test_a_server_of_a_cluster_is_read() -> None:
    one = read_server("nats-1=a.example,10.0.0.1")
    assert (one.name, one.host_names, one.port) == ("nats-1", ("a.example", "10.0.0.1"), CLIENT_PORT)
    assert (read_server("x=h", 1, 2).port, read_server("x=h", 1, 2).route_port) == (1, 2)
    for wrong in ("", "x", "x=", "=h", "x=,", "../x=h", "a b=h"):
        with pytest.raises(InvalidInputError, match="a server is written NAME=HOST"):
            read_server(wrong)
