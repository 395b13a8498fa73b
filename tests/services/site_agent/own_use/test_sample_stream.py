"""Samples without end inside the plant, a line each."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.contracts.errors import ConflictError
from services.contracts.versions.model_version import ModelVersion
from services.site_agent.cli import main
from services.site_agent.own_use.sample_stream import diagnose_lines, opened_lines
from services.site_agent.settings import CsvSource
from services.site_agent.vault.json_line import LONGEST_LINE


def streamed(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("way", ["by its name", "asked for", "from a pipe"])
def test_a_stream_is_answered_line_by_line_as_the_table_is(
    model_file: Path, oem: tuple[Path, str], write_csv: Callable[..., Path], make_table: Any, tmp_path: Path, way: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [row[:3] for row in make_table(12)]
    arguments = ["diagnose", "--model", str(model_file), "--oem-key", oem[1], "--input"]
    assert main([*arguments, str(write_csv(rows)), "--json"]) == 0
    table = json.loads(capsys.readouterr().out)["rows"]
    lines = [json.dumps({name: float(cell) for name, cell in zip(rows[0], row, strict=True)}) for row in rows[1:]]
    lines.insert(3, " \t")  # passed over, and counted as a line
    path = tmp_path / ("x.NDJSON" if way == "by its name" else "x.txt")
    path.write_text("\r\n".join(lines))  # the last one without an end
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    given = [str(path)] if way == "by its name" else ["-"] if way == "from a pipe" else [str(path), "--ndjson"]
    assert main([*arguments, *given]) == 0
    *answers, end = streamed(capsys.readouterr().out)
    assert [each["line"] for each in answers] == [1, 2, 3, *range(5, 14)]
    assert [(each["fault_class"], each["severity"]) for each in answers] == [
        (row["fault_class"], row["severity"]) for row in table
    ]
    assert [each["robustness_radius"] for each in answers] == [row["robustness_radius"] for row in table]
    assert [row["row"] for row in table] == list(range(1, 13))
    assert end == {"end": True, "lines": 13, "answered": 12, "refused": 0, "model": "pump"}


def test_a_line_that_does_not_fit_is_told_and_the_next_is_answered(
    version: ModelVersion, make_table: Any
) -> None:
    source = CsvSource(kind="csv", path=Path("x.ndjson"), columns={"flow": "Q"})
    names, values = make_table(1)[0][:3], make_table(1)[1][:3]
    good = dict(zip(("Q", *names[1:]), map(float, values), strict=True))
    wrong = [
        b"{", b"[]", b'"x"', json.dumps(good | {"Q": "12"}).encode(), json.dumps(good | {"Q": True}).encode(),
        json.dumps(good | {"Q": float("nan")}).encode(), json.dumps(good | {"Q": 10**400}).encode(),
        json.dumps({**dict(zip(names, map(float, values), strict=True))}).encode(), b"[" * 100_000, b"\xff",
        json.dumps(good | {"note": "x" * 65_536}).encode(),
    ]
    fits = json.dumps(good | {"note": "machine 7"}).encode()
    *answers, end = diagnose_lines(version, [*wrong, fits], source)
    assert all(set(each) == {"line", "error"} and each["error"].startswith("line ") for each in answers[:-1])
    assert [
        next(word for word in ("JSON object", "JSON", "bytes", "a number", "finite", "no column 'Q'") if word in each)
        for each in (str(answer["error"]) for answer in answers[:-1])
    ] == [
        "JSON", "JSON object", "JSON object", "a number", "a number", "finite", "finite", "no column 'Q'", "bytes",
        "JSON", "bytes",
    ]
    assert answers[-1]["line"] == 12 and answers[-1]["fault_class"] in ("healthy", "leak")
    assert (end["lines"], end["answered"], end["refused"]) == (12, 1, 11)


@pytest.mark.parametrize(("lines", "code"), [(["{", "[]"], 1), (["{", "good"], 0), ([""], 0)])
def test_a_stream_of_which_no_line_was_answered_ends_with_1(
    model_file: Path, oem: tuple[Path, str], make_table: Any, tmp_path: Path, lines: list[str], code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    good = json.dumps(dict(zip(make_table(1)[0][:3], map(float, make_table(1)[1][:3]), strict=True)))
    stream = tmp_path / "x.ndjson"
    stream.write_text("\n".join(good if each == "good" else each for each in lines))
    arguments = ["diagnose", "--model", str(model_file), "--oem-key", oem[1], "--input", str(stream)]
    assert main(arguments) == code
    found = capsys.readouterr()
    assert streamed(found.out)[-1]["end"] is True
    assert found.err == ("ballast-site: no line was answered; each says why\n" if code else "")


def test_what_was_clipped_and_what_is_not_measured_is_said(
    model_file: Path, oem: tuple[Path, str], write_csv: Callable[..., Path], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A misspelt name of an optional sensor is a column more: that the sensor is not measured is what tells it."""
    lines = [{"flow": 50.0, "ripple": 1.0, "oil": 1.0}, {"flow": 1e6, "ripple": 1.0, "oill": 1.0}]
    stream = tmp_path / "x.ndjson"
    stream.write_text("\n".join(map(json.dumps, lines)))
    arguments = ["diagnose", "--model", str(model_file), "--oem-key", oem[1], "--input"]
    assert main([*arguments, str(stream)]) == 0
    found = capsys.readouterr()
    whole, partly, _ = streamed(found.out)
    assert (whole["clipped"], whole["imputed"], found.err) == ([], [], "")
    assert (partly["clipped"], partly["imputed"]) == (["flow"], ["oil"])
    for more in ([], ["--json"]):
        table = write_csv([["flow", "ripple", "oill"], [50.0, 1.0, 1.0], [1e6, 1.0, 1.0], [2e6, 1.0, 1.0]])
        assert main([*arguments, str(table), *more]) == 0
        assert capsys.readouterr().err.splitlines() == [
            "flow: 2 values outside the sensor range were clipped to it",
            "no column for oil (optional): the middle of the sensor range stands for each",
        ]


def test_a_line_without_end_is_not_held_and_the_line_after_it_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    path.write_bytes(b"a" * 500_000 + b"\nb\n" + b"c" * LONGEST_LINE + b"\n\n")
    with opened_lines(path) as lines:
        found = list(lines)
    assert [len(each) > LONGEST_LINE for each in found] == [True, False, False, False]
    assert len(found[0]) <= LONGEST_LINE + 2 and found[1:] == [b"b", b"c" * LONGEST_LINE, b""]


def test_a_coverage_that_cannot_be_had_ends_the_stream(version: ModelVersion, make_table: Any) -> None:
    line = json.dumps(dict(zip(make_table(1)[0][:3], map(float, make_table(1)[1][:3]), strict=True))).encode()
    with pytest.raises(ConflictError, match="carries no calibration"):
        list(diagnose_lines(version, [line], CsvSource(kind="csv", path=Path("-")), 0.9))
    with pytest.raises(ConflictError, match="carries no calibration"):
        next(diagnose_lines(version, [b"no sample", line], CsvSource(kind="csv", path=Path("-")), 0.9))
