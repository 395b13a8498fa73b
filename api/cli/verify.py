"""``ballast verify``: a version's bounds proven again, from the registry or from files, offline."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from api.backend.wiring import open_backend
from api.cli.common import add_home
from services.contracts.errors import InvalidInputError
from services.contracts.settings import Settings
from services.contracts.signing import check_public_key, public_key
from services.verification.certificate_file import read_certificate
from services.verification.proof import verify
from services.verification.version import CERTIFICATE, NoCertificateError, proof_lines, verify_version

DOCUMENT = "model.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_home(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("model", metavar="MODEL[:VERSION]", nargs="?", help="in the registry; default: its champion")
    what.add_argument(
        "--file", type=Path, help="a certificate file, or a folder with model.json and certificate.npz; asks no server"
    )
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write model.json and certificate.npz there")
    parser.add_argument("--oem-key", metavar="U...", help="public key of the signature (default: this host's own)")


def run(args: argparse.Namespace) -> int:
    """Print what was proven; 0 when all claims follow, 1 when one does not, 2 where there is no certificate file."""
    try:
        lines = _from_files(args) if args.file is not None else _from_registry(args)
    except NoCertificateError as error:
        print(f"ballast: {error}", file=sys.stderr)
        return 2
    for line in lines:
        print(line)
    return 0


def _from_registry(args: argparse.Namespace) -> list[str]:
    name, _, version = args.model.partition(":")
    with open_backend(Settings.load(args.home)) as backend:
        found = backend.registry.get(name, version or "champion")
        data = backend.registry.certificate(found)
        document = found.to_document()
        seed = backend.settings.nats_seed
        key = args.oem_key or (public_key(seed) if found.signed_by and seed.is_file() else None)
    lines = verify_version(document, data, key)[2]
    if args.save is not None:
        _save(args.save, document, data)
    return lines


def _from_files(args: argparse.Namespace) -> list[str]:
    key = None if args.oem_key is None else check_public_key(args.oem_key)
    if not args.file.is_dir():
        if key is not None:
            raise InvalidInputError("a signature is of a version: give the folder of model.json and certificate.npz")
        lines = proof_lines(verify(read_certificate(_read(args.file))))
        return [*lines, "not checked: of which version the certificate is; give the folder with model.json in it too"]
    try:
        document = json.loads(_read(args.file / DOCUMENT))
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise InvalidInputError(f"{args.file / DOCUMENT} is not a version: a JSON object is needed")
    path = args.file / CERTIFICATE
    return verify_version(document, _read(path) if path.exists() else None, key)[2]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None


def _save(folder: Path, document: dict[str, Any], data: bytes | None) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / DOCUMENT).write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        (folder / CERTIFICATE).write_bytes(data or b"")
    except OSError as error:
        raise InvalidInputError(f"cannot write to {folder}: {error.strerror}") from None
