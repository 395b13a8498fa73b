"""``install.sh`` takes what the bundle holds and nothing else, whatever the host's settings of pip say."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

INSTALL = Path(__file__).parents[2] / "infra" / "bundle" / "install.sh"
STAND_IN = """#!/bin/sh
echo "$PIP_CONFIG_FILE|$PIP_INDEX_URL|$@" >> {asked}
case "$*" in "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; cp "$0" "$3/bin/ballast-site"; esac
case "$*" in *"{failing}"*) exit 3; esac
"""


def installed(folder: Path, what: str, failing: str = "nothing") -> tuple[int, list[str]]:
    """Exit code, and what Python was asked, of an installation by a stand-in for Python."""
    bundle = folder / "bundle"
    bundle.mkdir()
    (bundle / "install.sh").write_text(INSTALL.read_text())
    (bundle / f"{what}.txt").write_text("ballast-diagnosis==9.9 --hash=sha256:00\n")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(bundle.iterdir())]
    (bundle / "SHA256SUMS").write_text("".join(sums))
    python = folder / "python"
    python.write_text(STAND_IN.format(asked=folder / "asked", failing=failing))
    python.chmod(0o755)
    environment = dict(os.environ) | {"PIP_CONFIG_FILE": "/etc/pip.conf", "PIP_EXTRA_INDEX_URL": "https://example.com"}
    words = ["sh", str(bundle / "install.sh"), what, str(folder / "environment"), str(python)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    return done.returncode, (folder / "asked").read_text().splitlines()


@pytest.mark.parametrize("what", ["site", "server"])
def test_only_wheels_of_the_bundle_with_their_digests_are_installed(tmp_path: Path, what: str) -> None:
    code, asked = installed(tmp_path, what)
    assert code == 0
    (install,) = [each for each in asked if " install " in each]
    settings, _, words = install.partition("||")
    assert settings == "/dev/null"
    given = words.split()
    assert {"--no-index", "--no-deps", "--require-hashes", "--isolated"} <= set(given)
    assert given[given.index("--find-links") + 1] == "wheels" and given[-2:] == ["-r", f"{what}.txt"]
    assert any(each.endswith("-m pip check") for each in asked)


@pytest.mark.parametrize("failing", ["pip install", "pip check"])
def test_an_installation_that_did_not_go_well_ends_so(tmp_path: Path, failing: str) -> None:
    code, _ = installed(tmp_path, "site", failing="--no-index" if failing == "pip install" else failing)
    assert code == 3
