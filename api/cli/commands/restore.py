"""``ballast restore``: a home folder from a backup."""

from __future__ import annotations

import argparse
from pathlib import Path

from api.cli.common import add_home
from api.cli.passphrase import add_passphrase, read_passphrase
from services.process.command_line import add_json, tell
from services.process.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_home(parser)
    add_json(parser)
    add_passphrase(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="what `ballast backup` wrote")
    parser.add_argument(
        "--self-contained", action="store_true",
        help="put store and registry into files in the home folder, whatever the backup's settings say",
    )
    parser.add_argument(
        "--later", type=Path, metavar="PATH",
        help="a later state of the same service: its home folder, or a newer backup. Plants that were unlearned since "
        "this backup are unlearned again; what else was ended since is told",
    )
    parser.epilog = (
        "The home folder must not be there yet, or be empty, and so must the databases that the settings name.\n"
        "A backup of an older version is brought up to date. Stop the service that the backup was made of first:\n"
        "two that speak with one key ask every plant twice.\n"
        "Name what is later than the backup where it is still there (--later; with the same passphrase, where it is a\n"
        "newer backup): a plant that left since would else be back."
    )


def run(args: argparse.Namespace) -> int:
    """Restore and say what there is now."""
    from api.cli.unlearned_again import unlearn_again
    from api.recovery.restore import restore_backup

    home = Settings.load(args.home).home
    passphrase = read_passphrase(args.passphrase_file, twice=False)
    later = None if args.later is None else (args.later, unlearn_again)
    done = restore_backup(args.file, home, passphrase, self_contained=args.self_contained, later=later)
    made = done.manifest.created_at.isoformat(sep=" ", timespec="seconds")
    value = {
        "home": str(done.home), "made": done.manifest.created_at, "rows": done.rows, "files": done.files,
        "audit_events": done.manifest.audit_events, "champions": done.champions, "unfinished": done.unfinished,
        "unlearned": done.unlearned, "notes": done.notes,
    }
    said = (
        f"{done.home}: the state of {made}; {done.rows} rows, {done.files} files; "
        f"the audit trail holds with its {done.manifest.audit_events} events"
    )
    champions = (f"champion of {model}: version {version}" for model, version in done.champions.items())
    unfinished = (
        f"run {run_id} is unfinished; it goes on with `ballast up` "
        f"(where it is not wanted: `ballast run cancel {run_id}`)"
        for run_id in done.unfinished
    )
    tell(args, value, said, *champions, *unfinished, *done.unlearned, *(f"note: {note}" for note in done.notes))
    return 0
