"""The systemd units: what they run is there, they come back after a failure, and their files are their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from api.cli.commands import health, up
from api.cli.main import make_parser
from api.cli.processes.supervisor import STOP_SECONDS
from services.site_agent.cli import _parser as site_parser

FOLDER = Path(__file__).parents[2] / "infra" / "systemd"


def settings(name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (FOLDER / f"{name}.service").read_text().splitlines():
        if re.match(r"[A-Z]\w+=", line):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def test_a_unit_runs_what_its_environment_has() -> None:
    """The bundle's `install.sh` makes it: `/opt/ballast` of the server, `/opt/ballast-site` of a plant."""
    ours, plants = settings("ballast"), settings("ballast-site@")
    parser = make_parser({"up": up, "health": health})
    program, *words = ours["ExecStart"][0].split()
    assert program == "/opt/ballast/bin/ballast" and parser.parse_args(words).command == "up"
    (asked,) = re.findall(r"/opt/ballast/bin/ballast (health \w+) && exit 0", ours["ExecStartPost"][0])
    assert parser.parse_args(asked.split()).part == "api" and ours["ExecStartPost"][0].endswith("; exit 1'")
    program, *words = plants["ExecStart"][0].split()
    assert program == "/opt/ballast-site/bin/ballast-site"
    given = site_parser().parse_args(words)
    assert str(given.config) == f"{plants['WorkingDirectory'][0]}/site.toml" == "/var/lib/ballast-site/%i/site.toml"


def test_the_home_folder_is_that_of_the_state_and_its_owners_alone() -> None:
    ours = settings("ballast")
    assert ours["StateDirectory"] == ["ballast"] and ours["StateDirectoryMode"] == ["0700"]
    assert ours["WorkingDirectory"] == ["/var/lib/ballast"]
    assert "BALLAST_HOME=/var/lib/ballast" in ours["Environment"][0].split()
    assert settings("ballast-site@")["ReadWritePaths"] == settings("ballast-site@")["WorkingDirectory"]


@pytest.mark.parametrize("name", ["ballast-site@", "ballast"])
def test_a_unit_comes_back_and_keeps_its_files_to_itself(name: str) -> None:
    found = settings(name)
    assert found["Restart"] == ["always"] and int(found["RestartSec"][0]) > 0
    assert found["UMask"] == ["0077"] and found["User"] == found["Group"] == [name.removesuffix("@")]
    assert found["WantedBy"] == ["multi-user.target"]
    for shut in ("ProtectHome", "PrivateDevices", "PrivateUsers", "ProtectKernelModules", "ProtectKernelTunables",
                 "ProtectControlGroups", "RestrictNamespaces", "RestrictSUIDSGID", "LockPersonality"):
        assert found[shut] == ["yes"]
    assert found["AmbientCapabilities"] == [""] and found["SystemCallFilter"][1].startswith("~@privileged")


def test_nobody_calls_a_plants_agent() -> None:
    assert settings("ballast-site@")["SocketBindDeny"] == ["any"]
    assert settings("ballast-site@")["MemoryDenyWriteExecute"] == ["yes"]


def test_all_children_of_the_service_end_with_it() -> None:
    """Its own Ctrl-C first, then whatever is left: a flow that stayed would drive a run beside the next one's."""
    assert settings("ballast")["KillMode"] == ["mixed"]
    assert int(settings("ballast")["TimeoutStopSec"][0]) > STOP_SECONDS
