"""A site that is made says at once where its data do not fit the asset type, and is made all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.site_agent.cli import main
from tests.services.site_agent.commands import Capture, config
from tests.services.site_agent.conftest import TWO_CLASSES

ROWS = "".join(f"{20 + i % 50},{i % 7},{'leak' if i % 3 else 'healthy'}\n" for i in range(80))
FITS = "flow,ripple,label\n" + ROWS


def _init(folder: Path, *more: str, data: str | bytes | None = FITS) -> int:
    if data is not None:
        (folder / "rows.csv").write_bytes(data if isinstance(data, bytes) else data.encode())
    (folder / "pump.toml").write_text(TWO_CLASSES)
    named = ["--asset-type", str(folder / "pump.toml"), "--data", str(folder / "rows.csv")]
    return main(["init", "--site-id", "p", "--dir", str(folder / "p"), *named, *more])


@pytest.mark.parametrize(("data", "told"), [
    ("flow,label\n1,leak\n", "rows.csv has no column 'ripple' for feature ripple"),
    (FITS.replace(",", ";"), "cells are divided by"),
    (FITS.encode("utf-16"), "rows.csv is not UTF-8 text"),
    ("".join(FITS.splitlines(keepends=True)[:9]), "training rows, the policy asks for 20"),
    ("", "rows.csv is empty"),
])
def test_data_that_do_not_fit_are_told_and_the_site_is_made(
    tmp_path: Path, capsys: Capture, data: str | bytes, told: str
) -> None:
    assert _init(tmp_path, data=data) == 0
    lines = capsys.readouterr().out.splitlines()
    line = next(line for line in lines if line.startswith("The data do not fit yet: "))
    assert told in line
    assert f"`ballast-site check --config {tmp_path / 'p' / 'site.toml'}`" in lines[lines.index(line) + 1]
    assert main(["check", *config(tmp_path / "p")]) == 1
    assert line.endswith(capsys.readouterr().err.removeprefix("ballast-site: ").strip())


@pytest.mark.parametrize("data", [FITS, None])
def test_nothing_is_told_of_data_that_fit_or_are_not_there_yet(
    tmp_path: Path, capsys: Capture, data: str | None
) -> None:
    assert _init(tmp_path, data=data) == 0
    assert "do not fit" not in capsys.readouterr().out


def test_the_document_has_it_too(tmp_path: Path, capsys: Capture) -> None:
    assert _init(tmp_path, "--json", data="flow,label\n1,leak\n") == 0
    assert json.loads(capsys.readouterr().out)["data_misfit"].startswith("rows.csv has no column 'ripple'")
