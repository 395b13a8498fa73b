"""The files that a deployment in parts begins with: who may read them, which names they hold for, who may connect."""

from __future__ import annotations

import json
import os
import stat
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from api.cli.processes import first_files

HOSTS = ("ballast.example.com", "ballast")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deployment") / "deep" / "files"
    former = os.umask(0o022)  # modes are not left to who runs it
    try:
        first_files.make_files(folder, ["nats-1", "nats-2=two.inside"], list(HOSTS), "rows.inside")
    finally:
        os.umask(former)
    return folder


def names_of(certificate: Path) -> set[str]:
    found = x509.load_pem_x509_certificate(certificate.read_bytes()).extensions.get_extension_for_class(
        x509.SubjectAlternativeName).value
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}


def test_nobody_else_reads_the_files_or_lists_their_folders(made: Path) -> None:
    folders = [made, *(path for path in made.rglob("*") if path.is_dir())]
    assert len(folders) >= 5 and {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
    files = [path for path in made.rglob("*") if path.is_file()]
    assert len(files) >= 10 and {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


@pytest.fixture
def open_to_all() -> Iterator[None]:
    former = os.umask(0o022)
    yield
    os.umask(former)


def test_what_the_command_leaves_to_its_libraries_is_private_too(
    open_to_all: None, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert first_files.main([str(made)]) == 1 and "made once" in capsys.readouterr().err
    mask = os.umask(0o022)
    assert mask == 0o077


@pytest.mark.parametrize(("certificate", "names"), [
    ("api/server.pem", {*HOSTS, "api"}), ("nats/nats-1/server.pem", {*HOSTS, "nats-1"}),
    ("nats/nats-2/server.pem", {*HOSTS, "two.inside"}),
])
def test_certificates_hold_for_the_names_by_which_they_are_reached(
    made: Path, certificate: str, names: set[str]
) -> None:
    assert names <= names_of(made / certificate)


def test_each_database_has_a_user_of_its_own_and_no_other_may_connect(made: Path) -> None:
    lines = (made / "databases.sql").read_text().splitlines()
    for name, file, driver in (
        ("ballast", "database-url", "postgresql"), ("mlflow", "mlflow-url", "postgresql"),
        ("prefect", "prefect-url", "postgresql+asyncpg"),
    ):
        head, _, rest = (made / file).read_text().strip().partition(f"{driver}://{name}:")
        password, _, place = rest.partition("@")
        assert (head, place, len(password)) == ("", f"rows.inside:5432/{name}", 64)
        at = lines.index(f"CREATE USER {name} PASSWORD '{password}';")
        assert lines[at + 1:at + 3] == [
            f"CREATE DATABASE {name} OWNER {name} ENCODING 'UTF8' TEMPLATE template0;",
            f"REVOKE ALL ON DATABASE {name} FROM PUBLIC;",
        ]
    assert (made / "postgres-password").read_text().strip() not in (made / "databases.sql").read_text()


def test_a_secret_of_kubernetes_has_the_authority_of_the_plants_link(made: Path) -> None:
    manifest = json.loads(first_files.secret_manifest(made, "files"))
    assert (manifest["kind"], manifest["metadata"], manifest["type"]) == ("Secret", {"name": "files"}, "Opaque")
    data = manifest["data"]
    authority, other = ((made / part / "ca.pem").read_bytes() for part in ("nats", "api"))
    assert b64decode(data["ca.pem"]) == authority != other
    assert b64decode(data["server.pem"]) == (made / "api" / "server.pem").read_bytes()
    assert b64decode(data["nats-2.server.pem"]) == (made / "nats" / "nats-2" / "server.pem").read_bytes()


@pytest.mark.usefixtures("open_to_all")
def test_a_secret_is_printed_again_and_nothing_is_made_anew(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a pipe into another program lost is not lost for good."""
    before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
    assert first_files.main([str(made), "--kubernetes-secret", "files"]) == 0
    said = capsys.readouterr()
    assert said.out.strip() == first_files.secret_manifest(made, "files")
    assert "they are printed as they are" in said.err
    assert {path: path.read_bytes() for path in made.rglob("*") if path.is_file()} == before
