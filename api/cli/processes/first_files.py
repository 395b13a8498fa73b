"""The files that a deployment in parts begins with: ``python -m api.cli.processes.first_files FOLDER``.

Keys, certificates, passwords, and the addresses in which there is a password; a file each (mode 0600), made once.
``infra/compose.yaml`` and ``infra/helm`` mount them; nothing of them goes into an environment.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import sys
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

from services.bus.certificates import ensure_certificates
from services.bus.cluster import Member, make_cluster, read_server
from services.bus.configuration import TlsFiles, write_atomically
from services.contracts.errors import BallastError, ConflictError
from services.identity.server_secrets import ServerSecrets
from services.process.private_files import keep_private, private_folder

DATABASES = ("ballast", "mlflow", "prefect")
DRIVERS = {"ballast": "postgresql", "mlflow": "postgresql", "prefect": "postgresql+asyncpg"}
_DATABASE = "CREATE DATABASE {name} OWNER {name} ENCODING 'UTF8' TEMPLATE template0;"
"""In UTF-8, whatever locale the server was made with: of no known encoding, the driver does not read what is stored."""
FILES = {"ballast": "database-url", "mlflow": "mlflow-url", "prefect": "prefect-url"}


def are_made(folder: Path) -> bool:
    """Whether the folder holds all files: the last of them is there."""
    return (folder / "databases.sql").exists()


def make_files(folder: Path, servers: list[str], host_names: list[str], database_host: str) -> None:
    """Write all files; ``ConflictError`` where the folder holds them already, for databases know the old passwords.

    Who was killed before the first password was written is gone on from: nothing has used what he made.
    """
    if are_made(folder):
        raise ConflictError(f"{folder} holds the files of a deployment already; they are made once")
    private_folder(folder)
    members = [read_server(text if "=" in text else f"{text}={text}") for text in servers]
    nats, names = folder / "nats", {each.name for each in members}
    begun = nats.exists() and not (folder / "postgres-password").exists()
    if not begun or names != {path.name for path in nats.iterdir() if path.is_dir()}:
        _make_servers(nats, [replace(each, host_names=(*each.host_names, *host_names)) for each in members])
    ensure_certificates(TlsFiles(private_folder(folder / "api")), [*host_names, "api"], "API")
    ServerSecrets(folder / "servers").make()
    write_atomically(folder / "postgres-password", secrets.token_hex(32) + "\n")
    statements = []
    for name in DATABASES:
        password = secrets.token_hex(32)
        url = f"{DRIVERS[name]}://{name}:{password}@{database_host}:5432/{name}"
        write_atomically(folder / FILES[name], url + "\n")
        statements += [f"CREATE USER {name} PASSWORD '{password}';", _DATABASE.format(name=name),
                       f"REVOKE ALL ON DATABASE {name} FROM PUBLIC;"]
    write_atomically(folder / "databases.sql", "\n".join(statements) + "\n")


def _make_servers(folder: Path, members: list[Member]) -> None:
    """Make the files of the NATS servers, whole or not at all; ``ConflictError`` where there are some."""
    if folder.exists():
        raise ConflictError(f"{folder} holds the files of a cluster already; name another folder")
    making = folder.with_name(f".{folder.name}-in-the-making")
    shutil.rmtree(making, ignore_errors=True)
    make_cluster(making, members)
    making.rename(folder)


def secret_manifest(folder: Path, name: str) -> str:
    """The files as one Secret of Kubernetes, a key a file; a NATS server's are named ``<server>.<file>``."""
    top = {path.name: path for path in [*folder.iterdir(), *(folder / "servers").iterdir(), *(folder / "api").iterdir(),
                                        *(folder / "nats").iterdir()] if path.is_file()}
    top["ca.pem"] = folder / "nats" / "ca.pem"  # plants' and flows'; the API's own is in server.pem
    members = {f"{path.parent.name}.{path.name}": path for path in (folder / "nats").glob("*/*")}
    data = {key: b64encode(path.read_bytes()).decode() for key, path in sorted((top | members).items())}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque", "data": data}
    return json.dumps(manifest, indent=1)


def parser() -> argparse.ArgumentParser:
    """Arguments of the command."""
    made = argparse.ArgumentParser(prog="python -m api.cli.processes.first_files", description=__doc__)
    made.add_argument("folder", type=Path)
    made.add_argument("--host-names", default="localhost", help="names by which plants and callers reach the host")
    made.add_argument(
        "--servers", default="nats-1,nats-2,nats-3",
        help="NATS servers, NAME or NAME=HOST: the host is the name by which the others find it",
    )
    made.add_argument(
        "--kubernetes-secret", metavar="NAME",
        help="print the files as a Secret of this name, too; those that are there, where the folder holds them already",
    )
    made.add_argument("--database-host", default="postgres")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Make the files; one line on stderr and exit code 1 where that cannot be."""
    keep_private()
    chosen = parser().parse_args(arguments)
    try:
        if chosen.kubernetes_secret and are_made(chosen.folder):
            print(f"{chosen.folder} holds the files of a deployment: they are printed as they are", file=sys.stderr)
        else:
            make_files(chosen.folder, chosen.servers.split(","), chosen.host_names.split(","), chosen.database_host)
    except BallastError as error:
        print(f"ballast: {error}", file=sys.stderr)
        return 1
    if chosen.kubernetes_secret:
        print(secret_manifest(chosen.folder, chosen.kubernetes_secret))
    return 0


if __name__ == "__main__":
    sys.exit(main())
