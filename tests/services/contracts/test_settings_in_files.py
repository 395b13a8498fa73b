from __future__ import annotations

from pathlib import Path

import pytest

from services.contracts.errors import InvalidInputError
from services.contracts.settings import Settings

URL = "postgresql://ballast:hush@db/ballast"


def test_a_file_that_the_environment_names_holds_the_value(tmp_path: Path) -> None:
    (tmp_path / "url").write_text(URL + "\n")
    settings = Settings.load(tmp_path, {"BALLAST_DATABASE_URL_FILE": str(tmp_path / "url")})
    assert settings.database == URL


def test_a_value_and_a_file_at_once_are_refused(tmp_path: Path) -> None:
    both = {"BALLAST_DATABASE_URL": URL, "BALLAST_DATABASE_URL_FILE": str(tmp_path / "url")}
    with pytest.raises(InvalidInputError, match="not both"):
        Settings.load(tmp_path, both)


def test_a_file_that_is_not_there_is_one_line_without_its_content(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="BALLAST_DATABASE_URL_FILE names .*cannot be read"):
        Settings.load(tmp_path, {"BALLAST_DATABASE_URL_FILE": str(tmp_path / "none")})


def test_an_agents_and_a_coordinators_servers_may_be_several(tmp_path: Path) -> None:
    three = "tls://nats-1:4222,tls://nats-2:4222,tls://nats-3:4222"
    said = {"BALLAST_NATS_SERVERS": three, "BALLAST_NATS_CA_FILE": str(tmp_path / "ca.pem")}
    settings = Settings.load(tmp_path, said)
    assert settings.nats_servers == tuple(three.split(","))
    assert settings.nats_authority == tmp_path / "ca.pem"


@pytest.mark.parametrize("text", ["api = 3", "[[api]]\nport = 1"])
def test_what_is_no_table_in_the_file_is_one_line_whatever_the_environment_says(tmp_path: Path, text: str) -> None:
    (tmp_path / "ballast.toml").write_text(text)
    with pytest.raises(InvalidInputError, match="ballast.toml: api: give a table of keys and values$"):
        Settings.load(tmp_path, {"BALLAST_API_PORT": "8001"})
