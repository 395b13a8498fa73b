"""The site's own log: what is private never reaches the console, also where the disk takes no more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.process.log_lines import LoggingSettings
from services.site_agent import logs
from services.site_agent.logs import LOG, PRIVATE, open_logs

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_told_once_and_nothing_private_with_it(capfd: pytest.CaptureFixture[str]) -> None:
    with open_logs(FULL, "plant-1"):
        for _ in range(3):
            PRIVATE.warning("row %d has the label %s", 7, "leak")
        LOG.info("still there")
    told = capfd.readouterr().err.splitlines()
    assert [line.split("plant-1: ")[1] for line in told] == [
        "the log /dev/full cannot be written, and its lines are lost: No space left on device", "still there",
    ]


def test_lines_go_to_the_file_and_private_ones_there_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with open_logs(tmp_path / "site.log", "plant-1"):
        PRIVATE.warning("row %d has the label %s", 7, "leak")
        LOG.info("still there")
    written = (tmp_path / "site.log").read_text(encoding="utf-8")
    assert "row 7 has the label leak" in written and "still there" in written
    assert "row 7" not in capfd.readouterr().err


def test_in_json_each_line_names_the_site_wherever_it_goes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with open_logs(tmp_path / "site.log", "plant-1", LoggingSettings(format="json")):
        LOG.info("still there")
    for text in (capfd.readouterr().err, (tmp_path / "site.log").read_text(encoding="utf-8")):
        assert json.loads(text)["site_id"] == "plant-1"


def test_a_long_file_is_kept_beside_and_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One before it is kept, and both are the owner's alone."""
    monkeypatch.setattr(logs, "MOST_BYTES", 2000)
    path = tmp_path / "site.log"
    with open_logs(path, "north"):
        for number in range(100):
            logs.PRIVATE.info("line %d of a hundred", number)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["site.log", "site.log.1"]
    assert all(each.stat().st_size <= 2000 and each.stat().st_mode & 0o077 == 0 for each in tmp_path.iterdir())
    both = "".join((tmp_path / name).read_text() for name in ("site.log.1", "site.log"))
    lines = [line.split(" line ")[1] for line in both.splitlines()]
    assert lines == [f"{number} of a hundred" for number in range(100 - len(lines), 100)]
