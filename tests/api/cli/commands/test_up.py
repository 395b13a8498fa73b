"""``ballast up`` refuses with one line, before it starts or writes anything."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api.cli.commands import demo, up
from api.cli.commands.up import addresses, prepare_stores
from api.cli.main import main
from api.cli.processes import child_environment, listening, stack
from api.cli.processes.parts import PARTS
from api.cli.processes.supervisor import Child, Supervisor
from services.contracts.errors import ConflictError, InvalidInputError, UnavailableError
from services.identity.server_secrets import ServerSecrets
from services.process.process_lock import held
from services.process.settings import Settings
from tests.ports import free_port

SECTIONS = ("api", "nats", "prefect", "mlflow")
NAMES = ("api", "models", "services", "flows", "migrations", "numpy", "prefect", "mlflow", "uvicorn")


@pytest.mark.parametrize("section", SECTIONS)
def test_a_taken_port_is_one_clear_line(tmp_path: Path, section: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        home = tmp_path / "home"
        home.mkdir()
        ports = {name: free_port() for name in SECTIONS} | {section: port}
        (home / "ballast.toml").write_text("".join(f"[{name}]\nport = {ports[name]}\n" for name in SECTIONS))
        assert main(["up", "--home", str(home)]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"port {port} on 127.0.0.1 is taken already" in said
    assert os.listdir(home) == ["ballast.toml"]


def test_settings_that_do_not_fit_are_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ballast.toml").write_text("[api]\nport = 99999\n")
    assert main(["up", "--home", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "api.port" in said


def test_the_demo_does_not_empty_a_folder_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(ConflictError, match="was not made by ballast demo"):
        demo.prepare_home(tmp_path)
    assert (tmp_path / "letters.txt").read_text() == "dear"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--sites", "0"], "sites must be between 1 and 200, got 0"),
        (["--sites", "201"], "sites must be between 1 and 200, got 201"),
        (["--method", "nope"], "there is no method 'nope'"),
        (["--scenario", "sunny"], "unknown scenario 'sunny'"),
        (["--json", "/no-such-folder/account.json"], "cannot be written: it is a folder, or its folder is not there"),
        (["--json", "/"], "/ cannot be written: it is a folder"),
    ],
)
def test_a_demo_that_cannot_be_is_refused_before_anything_starts(
    tmp_path: Path, asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "demo"
    assert main(["demo", "--exit", "--home", str(home), *asked]) == 1
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1
    assert not home.exists()


def test_the_account_of_a_demo_may_be_in_the_home_that_it_makes(tmp_path: Path) -> None:
    home = tmp_path / "demo"
    parser = argparse.ArgumentParser()
    demo.add_arguments(parser)
    demo.check(parser.parse_args(["--home", str(home), "--json", str(home / "account.json")]))
    assert not home.exists()


def test_the_demo_does_not_empty_the_folder_of_one_that_runs(tmp_path: Path) -> None:
    settings = demo.prepare_home(tmp_path / "demo")
    assert demo.prepare_home(settings.home).home == settings.home, "also one that was killed before it ran"
    with held(settings.home / demo.MARKED):
        (settings.home / "kept.txt").write_text("a model")
        with pytest.raises(ConflictError, match="a demo runs in .* already; stop it, or name another folder"):
            demo.prepare_home(settings.home)
        assert (settings.home / "kept.txt").exists()
    assert not (demo.prepare_home(settings.home).home / "kept.txt").exists()


def test_the_demo_takes_free_ports(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind(("127.0.0.1", 4222))
            holder.listen()
        except OSError:
            pass  # somebody else holds it: just as well
        settings = demo.prepare_home(tmp_path / "demo")
    assert settings.nats.port != 4222
    listening.check_ports(settings)


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("", "http://127.0.0.1:5000"),
        ("https://ada:sesame@mlflow.example:5000", "https://mlflow.example:5000"),
        ("postgresql://ada:sesame@db.example/mlflow?sslpassword=sesame", "is postgresql://ada:***@db.example/mlflow"),
    ],
)
def test_where_everything_is_names_no_password(tmp_path: Path, uri: str, said: str) -> None:
    prefect = "https://prefect.example/api?key=sesame"
    settings = Settings.load(
        tmp_path, {"BALLAST_MLFLOW_TRACKING_URI": uri, "BALLAST_PREFECT_API_URL": prefect} if uri else {}
    )
    lines = {line.partition(" ")[0]: line for line in addresses(settings).splitlines()}
    assert said in lines["MLflow"] and "sesame" not in lines["MLflow"]
    assert lines["Prefect"].split()[1] == ("https://prefect.example" if uri else "http://127.0.0.1:4200")


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to start from that holds modules of our names, and of others'."""
    folder = tmp_path / "work"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text("raise SystemExit('imported from the folder where we were started')\n")
    monkeypatch.chdir(folder)
    return folder


def test_children_import_nothing_from_the_folder_where_they_are_started(
    hostile: Path, tmp_path: Path, new_mlflow: Callable[[Path], str]
) -> None:
    settings = Settings.load(tmp_path / "home", {"BALLAST_API_PORT": str(free_port())})
    settings.home.mkdir()
    assert new_mlflow(settings.home) == settings.tracking_uri
    prepare_stores(settings)
    with Supervisor(tmp_path / "logs", print) as supervisor:
        stack.start_api(supervisor, settings)
        supervisor.wait_ready("api")
    found = "import sys, importlib.util; print(*[importlib.util.find_spec(name).origin for name in sys.argv[1:]])"
    done = subprocess.run(
        [sys.executable, "-c", found, *NAMES, "flows.runner"], env=child_environment.of_a_child(settings),
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    origins = [Path(origin) for origin in done.stdout.split()]
    assert len(origins) == len(NAMES) + 1 and not any(origin.is_relative_to(hostile) for origin in origins)
    assert origins[-1].is_relative_to(child_environment.PACKAGES)


def test_phone_home_is_off_for_every_child(tmp_path: Path) -> None:
    environment = child_environment.environment(Settings.load(tmp_path))
    assert environment["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert environment["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    assert environment["DO_NOT_TRACK"]


@pytest.mark.parametrize("section", ["prefect", "mlflow"])
@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.7", "::", "works.example.com", ""])
def test_the_embedded_servers_listen_on_the_loopback_alone(tmp_path: Path, section: str, host: str) -> None:
    (tmp_path / "ballast.toml").write_text(f'[{section}]\nhost = "{host}"\n')
    with pytest.raises(InvalidInputError, match=f"{section}.host: .*loopback alone"):
        Settings.load(tmp_path)


def in_profile(environment: dict[str, str]) -> dict[str, str]:
    """What the Prefect of this environment reads from the file that it names."""
    path = Path(environment["PREFECT_PROFILES_PATH"])
    assert path.stat().st_mode & 0o077 == 0
    profile: dict[str, str] = tomllib.loads(path.read_text())["profiles"][environment["PREFECT_PROFILE"]]
    return profile


def test_secrets_are_named_to_who_needs_them_and_stand_in_no_environment(tmp_path: Path) -> None:
    settings = Settings.load(tmp_path, {"BALLAST_PREFECT_DATABASE_URL": "postgresql+asyncpg://prefect:hush@db/prefect"})
    child_environment.make_secrets(settings)
    secrets = ServerSecrets(settings.secrets_folder)
    server, flows = child_environment.prefect_environment(settings), child_environment.flows_environment(settings)
    assert in_profile(server) == {
        "PREFECT_SERVER_API_AUTH_STRING": secrets.prefect,
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": settings.prefect.database_url,
    }
    assert in_profile(flows) == {"PREFECT_API_AUTH_STRING": secrets.prefect}
    assert server["PREFECT_SERVER_CSRF_PROTECTION_ENABLED"] == "true"
    assert "PREFECT_PROFILES_PATH" not in child_environment.environment(settings)
    said = " ".join([*server.values(), *flows.values(), *child_environment.mlflow_environment(settings).values()])
    hidden = (secrets.prefect.partition(":")[2], secrets.mlflow, secrets.mlflow_form_key, "hush")
    assert not [text for text in hidden if text in said]


def test_prefect_writes_below_the_home_folder_alone(tmp_path: Path) -> None:
    """Its package may belong to another user, and its runner's folder below /tmp has one name for all users."""
    settings = Settings.load(tmp_path, {})
    child_environment.make_secrets(settings)
    temporary = Path(child_environment.flows_environment(settings)["TMPDIR"])
    assert temporary.is_relative_to(tmp_path) and temporary.stat().st_mode & 0o077 == 0
    code = "from prefect.settings import PREFECT_UI_STATIC_DIRECTORY as pages; print(pages.value())"
    environment = {**os.environ, **child_environment.prefect_environment(settings)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)


def test_a_secret_of_ours_is_not_sent_to_a_prefect_server_of_somebody_else(tmp_path: Path) -> None:
    theirs = {"BALLAST_PREFECT_API_URL": "https://prefect.example.com/api"}
    settings = Settings.load(tmp_path, theirs)
    child_environment.make_secrets(settings)
    child_environment.flows_environment(Settings.load(tmp_path, {}))  # of a day when the server was ours
    assert "PREFECT_PROFILES_PATH" not in child_environment.flows_environment(settings)
    (tmp_path / "auth").write_text("ada:hush\n")
    settings = Settings.load(tmp_path, theirs | {"BALLAST_PREFECT_AUTH_FILE": str(tmp_path / "auth")})
    assert in_profile(child_environment.flows_environment(settings)) == {"PREFECT_API_AUTH_STRING": "ada:hush"}
    (tmp_path / "auth").write_text("hush\n")
    with pytest.raises(UnavailableError, match="must hold user:password"):
        child_environment.flows_environment(settings)


@pytest.mark.parametrize("part", sorted(PARTS))
def test_a_part_alone_is_told_no_secret(tmp_path: Path, part: str) -> None:
    settings = Settings.load(tmp_path, {"BALLAST_MLFLOW_TRACKING_URI": "postgresql://mlflow:hush@db/mlflow"})
    child_environment.make_secrets(settings)
    command, told = PARTS[part](settings, None)
    secrets = [path.read_text().strip().removeprefix("ballast:") for path in settings.secrets_folder.iterdir()]
    assert len(secrets) == 3
    said = " ".join([*command, *told.values()])
    assert not [text for text in (*secrets, "hush") if text in said]


@pytest.mark.parametrize("arguments", [["--listen", "0.0.0.0"], ["--only", "api", "--listen", "0.0.0.0"]])
def test_only_what_is_shut_by_a_secret_listens_elsewhere_by_an_argument(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--home", str(tmp_path), *arguments]) == 1
    assert "--listen goes with --only prefect or --only mlflow" in capsys.readouterr().err


def test_children_create_private_files_whatever_mode_they_ask_for(tmp_path: Path) -> None:
    made = tmp_path / "made"
    script = f"open({str(made)!r}, 'w').close(); import time; time.sleep(60)"
    before = os.umask(0o022)
    try:
        with Supervisor(tmp_path / "logs", print) as supervisor:
            supervisor.start(Child("writer", [sys.executable, "-c", script], made.exists))
            supervisor.wait_ready("writer")
    finally:
        os.umask(before)
    for path in (made, tmp_path / "logs", tmp_path / "logs" / "writer.log"):
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("here", [{"nats", "prefect", "api", "mlflow"}, {"nats", "api"}, {"api"}])
def test_what_runs_elsewhere_is_not_waited_for(
    here: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = list[str]()
    supervisor: Any = SimpleNamespace(names=frozenset(here), wait_ready=waited.append)
    for name in ("prepare_stores", "begin_with_keys"):
        monkeypatch.setattr(up, name, lambda _: None)
    for name in ("prefect", "bus", "api", "mlflow", "flows"):
        monkeypatch.setattr(stack, f"start_{name}", lambda *_: None)
    up.start_all(supervisor, Settings.load(tmp_path, {}), lambda _: None)
    assert sorted(waited) == sorted(here)
