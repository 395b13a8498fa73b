"""``ballast verify``: a version's bounds proven again, from the registry or from files, offline."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from api.backend.wiring import open_backend
from api.cli.common import add_home, tell
from api.models.queries import version_files
from services.contracts.errors import InvalidInputError, UnavailableError
from services.contracts.keys.signing import check_public_key, public_key
from services.process.command_line import add_json
from services.process.settings import Settings
from services.verification.bundle import read_files, saved
from services.verification.certificate_file import read_certificate
from services.verification.proof import verify
from services.verification.version import NoCertificateError, proof_lines, verify_version


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_home(parser)
    add_json(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("model", metavar="MODEL[:VERSION]", nargs="?", help="in the registry; default: its champion")
    what.add_argument(
        "--file", type=Path,
        help="a folder or zip file with model.json and certificate.npz, or a certificate file alone; asks no server",
    )
    parser.add_argument(
        "--save", type=Path, metavar="FOLDER",
        help="write model.json, certificate.npz (where there is one) and oem-keys.json there (with MODEL)",
    )
    parser.add_argument(
        "--oem-key", metavar="U...",
        help="public key of the signature (default: this host's own; with --file none, and no signature is checked)",
    )


def run(args: argparse.Namespace) -> int:
    """Print what was proven; 0 when all claims follow, 1 when one does not, 2 where there is no certificate file."""
    try:
        lines = _from_files(args) if args.file is not None else _from_registry(args)
    except NoCertificateError as error:
        print(f"ballast: {error}", file=sys.stderr)
        return 2
    tell(args, {"proven": lines}, *lines)
    return 0


def _from_registry(args: argparse.Namespace) -> list[str]:
    name, _, version = args.model.partition(":")
    settings = Settings.load(args.home)
    if not settings.home.is_dir():  # a registry would be made there
        raise UnavailableError(f"there is no home folder {settings.home}: name it with --home or BALLAST_HOME")
    with open_backend(settings) as backend:
        files = version_files(backend, name, version or "champion")
        seed = backend.settings.nats_seed
        key = args.oem_key or (public_key(seed) if seed.is_file() else None)
    try:
        lines = verify_version(files.document, files.certificate, key, files.line)[2]
    except NoCertificateError:
        if args.save is not None:  # signed all the same: plants diagnose by it
            saved(files, args.save)
        raise
    if args.save is not None:
        saved(files, args.save)
    return lines


def _from_files(args: argparse.Namespace) -> list[str]:
    key = None if args.oem_key is None else check_public_key(args.oem_key)
    if args.save is not None:
        raise InvalidInputError("--save writes what is in the registry: give MODEL, not --file")
    if args.file.suffix == ".npz":
        if key is not None:
            raise InvalidInputError("a signature is of a version: give the folder of model.json and certificate.npz")
        lines = proof_lines(verify(read_certificate(_read(args.file))))
        return [*lines, "not checked: of which version the certificate is; give the folder with model.json in it too"]
    files = read_files(args.file)
    return verify_version(files.document, files.certificate, key, files.line)[2]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
