"""``ballast evidence``: an auditor's key, an audit, and the proof of what it found, from files alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.cli.main import main
from services.auditing.verdict import read_verdict
from tests.attacks.cohort import Cohort
from tests.services.auditing.conftest import LIAR, false_case, halved, problems


@pytest.fixture(autouse=True)
def open_to_all() -> Iterator[None]:
    """Modes are the command's own doing, not that of the one who runs it."""
    former = os.umask(0o022)
    yield
    os.umask(former)


def said(capture: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    capture.readouterr()
    code = main(["evidence", *map(str, arguments)])
    found = capture.readouterr()
    return code, found.out + found.err


def test_an_audit_from_files(cohort: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plants = cohort(liar=LIAR, lie=halved)
    while not plants.round():
        pass
    last = len(plants.rounds)
    case = next(
        each for each in (plants.case(one, last) for one in range(1, last)) if len(each.sealed) == len(plants.sites)
    )
    file, out = tmp_path / "case.json", tmp_path / "found"
    file.write_text(case.model_dump_json())

    code, text = said(capsys, "audit", file, "--key", plants.files["auditor"], "--out", out)
    assert code == 0 and text.startswith(f"contradiction: {LIAR} contradicts itself") and "verdict.json" in text
    verdict = read_verdict((out / "verdict.json").read_bytes(), plants.auditor, plants.cohort)
    assert set(verdict.convicted) == {LIAR}
    assert {each.name for each in out.iterdir()} == {"verdict.json", f"{LIAR}.json"}
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in out.iterdir())
    assert stat.S_IMODE(out.stat().st_mode) == 0o700, "nor does anybody else see of which plants there is evidence"
    code, text = said(capsys, "verify", out / f"{LIAR}.json")
    assert code == 0 and text.startswith(f"proven: {LIAR} lied in run")

    key = tmp_path / "new.nk"
    code, text = said(capsys, "new-auditor", key)
    assert code == 0 and text.startswith("U") and stat.S_IMODE(key.stat().st_mode) == 0o600
    code, text = said(capsys, "audit", file, "--key", key, "--out", out)
    assert code == 1 and text == "ballast: the case is for another auditor: its key is not that of the key file\n"
    file.write_text("{}")
    code, text = said(capsys, "audit", file, "--key", key, "--out", out)
    assert code == 1 and "not a case for an audit" in text
    (out / f"{LIAR}.json").write_text((out / f"{LIAR}.json").read_text().replace('"round": 1,', '"round": 7,'))
    code, text = said(capsys, "verify", out / f"{LIAR}.json")
    assert code == 1 and "not signed by the key that the site enrolled" in text


def test_a_plant_that_is_called_as_the_verdict_takes_the_place_of_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else nobody could convict it: its evidence would stand where the verdict against it belongs."""
    named = {"verdict" if site == LIAR else site: problem for site, problem in problems().items()}
    plants = Cohort(named, tmp_path, liar="verdict", lie=halved)
    while not plants.round():
        pass
    file, out = tmp_path / "case.json", tmp_path / "found"
    file.write_text(false_case(plants).model_dump_json())
    code, text = said(capsys, "audit", file, "--key", plants.files["auditor"], "--out", out)
    assert code == 0, text
    verdict = read_verdict((out / "verdict.json").read_bytes(), plants.auditor, plants.cohort)
    assert set(verdict.convicted) == {"verdict"}
    code, text = said(capsys, "verify", out / "verdict.evidence.json")
    assert code == 0 and text.startswith("proven: verdict lied in run")
