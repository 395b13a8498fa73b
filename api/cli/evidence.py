"""``ballast evidence``: what a run keeps of a plant that contradicted itself, and the proof of it."""

from __future__ import annotations

import argparse
from pathlib import Path

from api.backend.wiring import open_backend
from api.cli.common import add_action, add_actions
from services.contracts.errors import InvalidInputError, NotFoundError
from services.contracts.settings import Settings
from services.verification.contradiction import verify_evidence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    proof = actions.add_parser("verify", help="prove it from the file alone; asks no server")
    proof.add_argument("file", type=Path, help="evidence file, as `ballast evidence save` writes it")
    save = add_action(actions, "save", lambda *_: 0, "write the evidence against a plant into a file", "RUN_ID", "SITE")
    save.add_argument("file", type=Path, help="file to write")


def run(args: argparse.Namespace) -> int:
    """Do it; 0 where the contradiction is proven, or the file written."""
    if args.action == "verify":
        for line in verify_evidence(_read(args.file)):
            print(line)
        return 0
    with open_backend(Settings.load(args.home)) as backend:
        backend.check_store()
        found = backend.store.runs.get_evidence(args.run_id, args.site)
    if found is None:
        raise NotFoundError(f"run {args.run_id} keeps no two answers of {args.site} that contradict one another")
    try:
        args.file.write_bytes(found)
    except OSError as error:
        raise InvalidInputError(f"cannot write to {args.file}: {error.strerror}") from None
    print(f"{args.file} holds the evidence; `ballast evidence verify {args.file}` proves it")
    return 0


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
