"""What opens Prefect's server: our own by our secret, another one by what a file says, and by nothing of ours."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from api.cli.processes.prefect_profiles import PROFILE, client_profile, server_profile
from services.contracts.errors import UnavailableError
from services.identity.server_secrets import ServerSecrets
from services.process.settings import Settings


def settings(home: Path, **prefect: Any) -> Settings:
    made = Settings.model_validate({"home": home, "prefect": prefect})
    ServerSecrets(made.secrets_folder).make()
    return made


def written(environment: dict[str, str]) -> Any:
    """The profile that an environment names."""
    assert environment["PREFECT_PROFILE"] == PROFILE
    path = Path(environment["PREFECT_PROFILES_PATH"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.is_absolute()
    return tomllib.loads(path.read_text())["profiles"][PROFILE]


def test_our_own_server_is_opened_by_our_secret_whatever_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "auth").write_text("user:password")
    secret = ServerSecrets(settings(tmp_path).secrets_folder).prefect
    for ours in (settings(tmp_path), settings(tmp_path, auth_file=tmp_path / "auth")):
        assert written(client_profile(ours)) == {"PREFECT_API_AUTH_STRING": secret}
        assert written(server_profile(ours)) == {"PREFECT_SERVER_API_AUTH_STRING": secret}


def test_another_server_is_sent_what_the_file_holds_and_never_our_secret(tmp_path: Path) -> None:
    (tmp_path / "auth").write_text('ballast:a "word"\n')
    address = "https://prefect.example/api"
    named = settings(tmp_path, api_url=address, auth_file=tmp_path / "auth")
    assert written(client_profile(named)) == {"PREFECT_API_AUTH_STRING": 'ballast:a "word"'}
    assert client_profile(settings(tmp_path, api_url=address)) == {}


@pytest.mark.parametrize(("held", "said"), [
    (None, "cannot be read"), (b"\xff:word", "cannot be read"), (b"word", "must hold user:password in one line"),
    (b"", "must hold user:password"), (b"ballast:word\nballast:former\n", "must hold user:password in one line"),
])
def test_a_file_that_holds_no_user_and_password_is_named(tmp_path: Path, held: bytes | None, said: str) -> None:
    if held is not None:
        (tmp_path / "auth").write_bytes(held)
    named = settings(tmp_path, api_url="https://prefect.example/api", auth_file=tmp_path / "auth")
    with pytest.raises(UnavailableError, match=f"prefect.auth_file {tmp_path}/auth {said}"):
        client_profile(named)


def test_the_database_of_our_server_is_told_to_it_alone(tmp_path: Path) -> None:
    ours = settings(tmp_path, database_url="postgresql+asyncpg://prefect:word@db/prefect")
    assert written(server_profile(ours))["PREFECT_SERVER_DATABASE_CONNECTION_URL"] == ours.prefect.database_url
    assert set(written(client_profile(ours))) == {"PREFECT_API_AUTH_STRING"}
