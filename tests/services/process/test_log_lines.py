"""Lines in JSON: one object each, with what is known of run, site and round."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest

from services.contracts.errors import InvalidInputError
from services.process.log_lines import JsonLines, LoggingSettings, about
from services.process.settings import Settings
from services.site_agent.logs import LOG, PRIVATE, open_logs

Capture = pytest.CaptureFixture[str]


def line(message: str, *arguments: object, site: str | None = None, error: bool = False, **fields: str) -> dict:
    extra = {} if site is None else {"site_id": site}
    record = logging.getLogger("ballast.test").makeRecord(
        "ballast.test", logging.WARNING, __file__, 1, message, arguments, None, extra=extra
    )
    if error:
        try:
            raise ValueError("of two\nlines")
        except ValueError as raised:
            record.exc_info = (ValueError, raised, raised.__traceback__)
    text = JsonLines(**fields).format(record)
    assert "\n" not in text
    return dict(json.loads(text))


def test_a_line_is_one_object_with_what_is_known() -> None:
    said = line("two\nlines of %s", "words", site="plant-2")
    assert said["message"] == "two\nlines of words" and said["level"] == "warning"
    assert said["logger"] == "ballast.test" and said["time"].endswith("+00:00")
    assert said["site_id"] == "plant-2" and "run_id" not in said and "error" not in said
    assert line("x", site="plant-2", site_id="plant-1")["site_id"] == "plant-2"
    assert "ValueError: of two\nlines" in line("x", error=True)["error"]


def test_whatever_a_line_is_about_is_written(tmp_path: Path) -> None:
    """A field that JSON has no form for is one of words; a line that is not written says nothing at all."""
    record = logging.getLogger("ballast.test").makeRecord(
        "ballast.test", logging.INFO, __file__, 1, "x", (), None, extra={"site_id": tmp_path, "round": 3}
    )
    said = json.loads(JsonLines().format(record))
    assert (said["site_id"], said["round"]) == (str(tmp_path), 3)
    assert line("Ventil Süd\u2028")["message"] == "Ventil Süd\u2028"


async def test_what_lines_are_about_is_that_of_their_own_task() -> None:
    async def work(number: int) -> tuple[int, int | None]:
        with about(run_id="run", round=number):
            await asyncio.sleep(0)
            inside = line("x")["round"]
            assert (await asyncio.to_thread(line, "x"))["round"] == number
        return inside, line("x").get("round")

    assert await asyncio.gather(*map(work, range(3))) == [(0, None), (1, None), (2, None)]


def test_a_site_writes_both_its_logs_in_the_wanted_format(tmp_path: Path, capsys: Capture) -> None:
    with open_logs(tmp_path / "site.log", "plant-1", LoggingSettings(format="json", level="debug")):
        LOG.debug("for everybody")
        PRIVATE.debug("for the plant alone")
    on_console = [json.loads(each) for each in capsys.readouterr().err.splitlines()]
    in_file = [json.loads(each) for each in (tmp_path / "site.log").read_text().splitlines()]
    assert [each["message"] for each in on_console] == ["for everybody"]
    assert [each["message"] for each in in_file] == ["for everybody", "for the plant alone"]
    assert {each["site_id"] for each in in_file} == {"plant-1"}


def test_the_settings_take_the_environment(tmp_path: Path) -> None:
    (tmp_path / "ballast.toml").write_text('[logging]\nformat = "json"\n')
    assert Settings.load(tmp_path, {}).logging == LoggingSettings(format="json")
    assert Settings.load(tmp_path, {"BALLAST_LOG_FORMAT": "text"}).logging == LoggingSettings()
    with pytest.raises(InvalidInputError, match="format"):
        Settings.load(tmp_path, {"BALLAST_LOG_FORMAT": "xml"})
