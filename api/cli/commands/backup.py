"""``ballast backup``: everything that the OEM's side keeps, in one sealed file."""

from __future__ import annotations

import argparse
from pathlib import Path

from api.backend.wiring import open_backend
from api.cli.common import add_home
from api.cli.passphrase import add_passphrase, read_passphrase
from services.process.command_line import add_json, tell
from services.process.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_home(parser)
    add_json(parser)
    add_passphrase(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="file to write; must not be there")
    parser.epilog = (
        "The service may go on running. In the file: the store with its audit trail, the registry with its\n"
        "artifacts, and the home folder's keys, certificates and settings. Not in it: Prefect's history, logs,\n"
        "and files outside of the home folder. Whoever has the file and the passphrase is the OEM's side to all\n"
        "plants: keep the two apart."
    )


def run(args: argparse.Namespace) -> int:
    """Make the backup and say what is in it."""
    from api.recovery.backup import make_backup
    from services.backup.sealed_stream import check_passphrase

    passphrase = check_passphrase(read_passphrase(args.passphrase_file, twice=True))
    with open_backend(Settings.load(args.home)) as backend:
        done = make_backup(backend, args.file, passphrase)
    said = (
        f"{args.file}: {done.bytes / 1e6:.1f} MB; {done.rows} rows, {done.versions} model versions, "
        f"{done.artifacts} artifacts, {done.home_files} files of the home folder"
    )
    tell(args, {"file": str(args.file), **vars(done)}, said, *(f"note: {note}" for note in done.notes))
    return 0
