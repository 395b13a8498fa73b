"""Volumes of the deployment: the services may write to them, and a backup's commands have what they need mounted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.cli.commands import backup, restore
from api.cli.main import make_parser

INFRA = Path(__file__).parents[2] / "infra"
COMPOSE: dict[str, Any] = yaml.safe_load((INFRA / "compose.yaml").read_text())
IMAGE = (INFRA / "containers/server.Containerfile").read_text()
GUIDE = (INFRA / "README.md").read_text()


def named_volumes(service: dict[str, Any]) -> dict[str, str]:
    """Where a service mounts the volumes that the engine makes, by their name."""
    mounts = [each.split(":")[:2] for each in service.get("volumes", ())]
    return {name: place for name, place in mounts if name in COMPOSE["volumes"]}


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_a_new_volume_belongs_to_the_user_of_the_container(name: str) -> None:
    """It has the owner of the folder that it is mounted over; where the image has none, Docker gives it to root."""
    service = COMPOSE["services"][name]
    if name == "postgres":
        return  # its own image has its folder
    user = service["user"]
    for place in named_volumes(service).values():
        assert re.search(rf"^COPY --from=build --chown={user} {place} {place}$", IMAGE, re.MULTILINE), place
        assert re.search(rf"mkdir [^&]*{place}\b[^&]*&& chown {user}[^&\n]* {place}\b", IMAGE), place


def commands(program: str) -> list[list[str]]:
    """Commands of the guide that are given to a service of the compose file, without what is before its name."""
    text = GUIDE.replace("\\\n", " ")
    found = re.findall(rf"docker compose run [^\n]*?{program} ((?:backup|restore) [^\n#]*)", text)
    return [each.split() for each in found]


def test_the_guides_backup_runs_where_store_registry_and_keys_are() -> None:
    given = commands("api")
    assert [each[0] for each in given] == ["backup", "restore"]
    parser = make_parser({"backup": backup, "restore": restore})
    for each in given:
        assert parser.parse_args(each).file.is_relative_to("/backup")
    assert named_volumes(COMPOSE["services"]["api"]) == {"home-api": "/data", "artifacts": "/artifacts"}
    assert COMPOSE["services"]["api"]["environment"]["BALLAST_DATABASE_URL_FILE"] == "/run/secrets/database-url"
    for volume in re.findall(r"ballast_([a-z-]+)", GUIDE):
        assert volume in COMPOSE["volumes"]
