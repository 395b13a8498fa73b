from __future__ import annotations

from pathlib import Path

import pytest

from services.contracts.errors import InvalidInputError
from services.process.settings import Settings

URL = "postgresql://ballast:hush@db/ballast"


def test_a_file_that_the_environment_names_holds_the_value(tmp_path: Path) -> None:
    (tmp_path / "url").write_text(URL + "\n")
    settings = Settings.load(tmp_path, {"BALLAST_DATABASE_URL_FILE": str(tmp_path / "url")})
    assert settings.database == URL


def test_a_home_whose_path_would_end_the_address_of_its_databases_is_refused(tmp_path: Path) -> None:
    """The store of ``a?b`` was the file ``a``, beside the home and not in it."""
    for name in ("a?b", "a?mode=ro"):
        with pytest.raises(InvalidInputError, match=r"a\?.* cannot be a home folder: no \? may be in its path"):
            Settings.load(tmp_path / name, {})
    assert Settings.load(tmp_path / "a#b%", {}).database == f"sqlite:///{tmp_path}/a#b%/ballast.db"


def test_a_value_and_a_file_at_once_are_refused(tmp_path: Path) -> None:
    both = {"BALLAST_DATABASE_URL": URL, "BALLAST_DATABASE_URL_FILE": str(tmp_path / "url")}
    with pytest.raises(InvalidInputError, match="not both"):
        Settings.load(tmp_path, both)


def test_a_file_that_is_not_there_is_one_line_without_its_content(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="BALLAST_DATABASE_URL_FILE names .*cannot be read"):
        Settings.load(tmp_path, {"BALLAST_DATABASE_URL_FILE": str(tmp_path / "none")})


def test_an_empty_file_is_no_word_that_the_default_holds(tmp_path: Path) -> None:
    """A secret that was not written yet would begin a second, empty store beside the service's own."""
    (tmp_path / "url").write_text("\n")
    with pytest.raises(InvalidInputError, match="BALLAST_DATABASE_URL_FILE names .*, which is empty"):
        Settings.load(tmp_path, {"BALLAST_DATABASE_URL_FILE": str(tmp_path / "url")})
    assert Settings.load(tmp_path, {"BALLAST_DATABASE_URL_FILE": ""}).database.startswith("sqlite:")


def test_a_settings_file_that_is_not_to_be_read_is_no_word_that_the_defaults_hold(tmp_path: Path) -> None:
    """What a container mounts where there is no file is a folder, and a link may lead to nothing."""
    file = tmp_path / "ballast.toml"
    file.mkdir()
    with pytest.raises(IsADirectoryError):
        Settings.load(tmp_path, {})
    file.rmdir()
    file.symlink_to(tmp_path / "away.toml")
    with pytest.raises(FileNotFoundError, match="ballast.toml"):
        Settings.load(tmp_path, {})
    file.unlink()
    assert Settings.load(tmp_path, {}).api.port == 8000


def test_an_agents_and_a_coordinators_servers_may_be_several(tmp_path: Path) -> None:
    three = "tls://nats-1:4222,tls://nats-2:4222,tls://nats-3:4222"
    said = {"BALLAST_NATS_SERVERS": three, "BALLAST_NATS_CA_FILE": str(tmp_path / "ca.pem")}
    settings = Settings.load(tmp_path, said)
    assert settings.nats_servers == tuple(three.split(","))
    assert settings.nats_authority == tmp_path / "ca.pem"
    del said["BALLAST_NATS_CA_FILE"]
    assert Settings.load(tmp_path, said).nats_authority is None, "the system's, and not that of a server of ours"
    assert Settings.load(tmp_path, {}).nats_authority == tmp_path / "nats" / "ca.pem"


def test_blanks_beside_a_comma_are_of_no_name(tmp_path: Path) -> None:
    """A certificate for " 10.1.2.3" holds for nobody who comes by 10.1.2.3."""
    said = {"BALLAST_API_HOST_NAMES": " works.example.com, 10.1.2.3 ,", "BALLAST_NATS_SERVERS": "tls://nats:4222"}
    settings = Settings.load(tmp_path, said)
    assert settings.api.host_names == ("works.example.com", "10.1.2.3")
    assert settings.nats_servers == ("tls://nats:4222",)
    with pytest.raises(InvalidInputError, match="^BALLAST_NATS_SERVERS: nats.servers: "):
        Settings.load(tmp_path, {"BALLAST_NATS_SERVERS": " , "})


def test_a_file_of_another_editor_is_read_or_told_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "ballast.toml"
    file.write_text("[api]\nport = 8001\n", encoding="utf-8-sig")
    assert Settings.load(tmp_path, {}).api.port == 8001
    file.write_text("[api]\nport = 8001\n", encoding="utf-16")
    with pytest.raises(InvalidInputError, match="ballast.toml is not UTF-8 text"):
        Settings.load(tmp_path, {})


@pytest.mark.parametrize("text", ["api = 3", "[[api]]\nport = 1"])
def test_what_is_no_table_in_the_file_is_one_line_whatever_the_environment_says(tmp_path: Path, text: str) -> None:
    (tmp_path / "ballast.toml").write_text(text)
    with pytest.raises(InvalidInputError, match="ballast.toml: api: give a table of keys and values$"):
        Settings.load(tmp_path, {"BALLAST_API_PORT": "8001"})


@pytest.mark.parametrize(("variable", "text", "said"), [
    ("BALLAST_API_PORT", "abc", "api.port: Input should be a valid integer"),
    ("BALLAST_LOG_FORMAT", "xml", "logging.format: Input should be"),
    ("BALLAST_PREFECT_PORT", "0", "prefect.port: "),
    ("BALLAST_PREFECT_RUNS_AT_ONCE", "0", "prefect.runs_at_once: "),
    ("BALLAST_API_ABSTAIN_BELOW_RADIUS", "-1", "api.abstain_below_radius: "),
    ("BALLAST_API_ABSTAIN_BELOW_RADIUS", "inf", "api.abstain_below_radius: "),
    ("BALLAST_API_KEY", "key.pem", "api: certificate and key belong together"),
])
def test_what_does_not_fit_is_told_of_the_variable_that_says_it(
    tmp_path: Path, variable: str, text: str, said: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"^{variable}: {said}"):
        Settings.load(tmp_path, {variable: text})
    (tmp_path / "value").write_text(text)
    with pytest.raises(InvalidInputError, match=f"^{variable}_FILE: {said}"):
        Settings.load(tmp_path, {f"{variable}_FILE": str(tmp_path / "value"), variable: ""})


def test_file_and_variables_are_told_of_each_for_itself_and_of_a_section_together(tmp_path: Path) -> None:
    file = tmp_path / "ballast.toml"
    file.write_text("[nats]\nport = 0\nprot = 1\n[api]\nport = 1")
    with pytest.raises(InvalidInputError) as refused:
        Settings.load(tmp_path, {"BALLAST_API_PORT": "abc", "BALLAST_API_HOST": "::"})
    in_file, in_variable = str(refused.value).split("; BALLAST_API_PORT: api.port: ")
    assert in_file.startswith(f"{file}: nats.port: ") and "nats.prot: there is no such key" in in_file
    assert "ballast.toml" not in in_variable and "nats" not in in_variable
    file.write_text('[api]\ncertificate = "here.pem"')
    with pytest.raises(InvalidInputError) as refused:
        Settings.load(tmp_path, {"BALLAST_API_PORT": "1"})
    assert str(refused.value).startswith(f"{file} and BALLAST_API_PORT: api: certificate and key")


@pytest.mark.parametrize("address", ["https://ada:hush@prefect.example/api", "https://ada@prefect.example/api"])
def test_a_password_in_the_address_of_prefect_is_refused_and_not_repeated(tmp_path: Path, address: str) -> None:
    with pytest.raises(InvalidInputError, match="BALLAST_PREFECT_API_URL.*write user:password to auth_file") as told:
        Settings.load(tmp_path, {"BALLAST_PREFECT_API_URL": address})
    assert "hush" not in str(told.value)
    (tmp_path / "ballast.toml").write_text(f'[prefect]\napi_url = "{address}"\n')
    with pytest.raises(InvalidInputError, match=r"prefect\.api_url.*write user:password to auth_file") as told:
        Settings.load(tmp_path, {})
    assert "hush" not in str(told.value)
    named = Settings.load(tmp_path / "other", {"BALLAST_PREFECT_API_URL": "https://prefect.example/api?name=a@b"})
    assert named.prefect_api_url == "https://prefect.example/api?name=a@b"
