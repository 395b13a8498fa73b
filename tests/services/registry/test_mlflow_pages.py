"""Which pages MLflow's own takes requests of, and what its process is told."""

from __future__ import annotations

import stat
from configparser import ConfigParser
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from services.registry.mlflow_pages import OwnPagesOnly
from services.registry.mlflow_users import ORIGIN, SECRETS, STORE, forget_users, pages_environment

OWN = "http://127.0.0.1:5000"


async def answer(_: Request) -> PlainTextResponse:
    return PlainTextResponse("taken")


@pytest.fixture
def pages() -> httpx.AsyncClient:
    app = Starlette(routes=[Route("/", answer, methods=["GET", "POST", "OPTIONS"])])
    return httpx.AsyncClient(transport=httpx.ASGITransport(OwnPagesOnly(app, OWN)), base_url=OWN)


@pytest.mark.parametrize(("method", "headers", "status"), [
    ("POST", {}, 200),
    ("POST", {"Origin": OWN, "Sec-Fetch-Site": "same-origin"}, 200),
    ("POST", {"Origin": "http://127.0.0.1:5001"}, 403),
    ("POST", {"Origin": "https://127.0.0.1:5000"}, 403),
    ("POST", {"Origin": "http://localhost:5000"}, 403),
    ("POST", {"Origin": "null"}, 403),
    ("POST", {"Sec-Fetch-Site": "same-site"}, 403),
    ("POST", {"Sec-Fetch-Site": "cross-site"}, 403),
    ("OPTIONS", {"Origin": "http://elsewhere.example"}, 403),
    ("GET", {"Origin": "http://elsewhere.example"}, 403),
    ("GET", {"Sec-Fetch-Site": "cross-site"}, 200),  # a link that somebody follows
])
async def test_no_other_page_may_ask(
    pages: httpx.AsyncClient, method: str, headers: dict[str, str], status: int
) -> None:
    assert (await pages.request(method, "/", headers=headers)).status_code == status


def test_no_secret_is_in_the_environment_and_every_file_with_one_is_private(tmp_path: Path) -> None:
    told = pages_environment(
        tmp_path, user="ballast", password=tmp_path / "password", form_key=tmp_path / "key", host="127.0.0.1",
        port=5000, tracking_uri="postgresql://mlflow:hush@db/mlflow", artifact_root="file:///x",
    )
    assert [told[name] for name in SECRETS] == [str(tmp_path / "password"), str(tmp_path / "key")]
    assert not set(SECRETS.values()) & set(told) and "hush" not in " ".join(told.values())
    assert "hush" in Path(told[STORE]).read_text() and stat.S_IMODE(Path(told[STORE]).stat().st_mode) == 0o600
    assert told[ORIGIN] == OWN
    written = tmp_path / "mlflow-users.ini"
    assert "password" not in written.read_text() and "NO_PERMISSIONS" in written.read_text()
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


@pytest.mark.parametrize(("host", "name"), [("127.0.0.1", "127.0.0.1:5000"), ("::1", "[::1]:5000")])
def test_the_pages_are_for_one_address_and_for_who_says_who_he_is(tmp_path: Path, host: str, name: str) -> None:
    told = pages_environment(
        tmp_path, user="ballast", password=tmp_path / "password", form_key=tmp_path / "key", host=host, port=5000,
        tracking_uri="sqlite:///x.db", artifact_root="file:///x",
    )
    assert (told["MLFLOW_SERVER_ALLOWED_HOSTS"], told[ORIGIN]) == (name, f"http://{name}")
    assert told["MLFLOW_BASIC_AUTH_FAIL_CLOSED"] == "true" and told["MLFLOW_SERVER_X_FRAME_OPTIONS"] == "DENY"
    assert told["MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE"] == told["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] == "false"
    assert "auth_cache_ttl_seconds = 60\n" in (tmp_path / "mlflow-users.ini").read_text()


def test_a_home_with_a_percent_sign_in_its_path_has_pages(tmp_path: Path) -> None:
    """MLflow reads the file with what it puts in for each %."""
    home = tmp_path / "100%" / "a%41%(x)s"
    home.mkdir(parents=True)
    told = pages_environment(
        home, user="all%", password=home / "password", form_key=home / "key", host="127.0.0.1", port=5000,
        tracking_uri="sqlite:///x.db", artifact_root="file:///x",
    )
    read = ConfigParser()
    read.read(told["MLFLOW_AUTH_CONFIG_PATH"])
    assert read["mlflow"]["database_uri"] == f"sqlite:///{home / 'mlflow-users.db'}"
    assert read["mlflow"]["admin_username"] == "all%"


def test_users_are_forgotten_whole(tmp_path: Path) -> None:
    for name in ("mlflow-users.db", "mlflow-users.db-wal", "mlflow.db"):
        (tmp_path / name).write_text("")
    forget_users(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mlflow.db"]
