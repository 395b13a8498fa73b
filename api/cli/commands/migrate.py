"""``ballast migrate``: make the database, or bring it up to date."""

from __future__ import annotations

import argparse

from api.cli.common import add_home, tell
from migrations.run import upgrade
from services.process.command_line import add_json
from services.process.private_files import private_file, private_folder
from services.process.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_home(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the migrations; a failure leaves the database as it was."""
    schema = migrate(Settings.load(args.home))
    tell(args, {"schema": schema}, f"the database is at schema {schema}")
    return 0


def migrate(settings: Settings) -> str:
    """Make the home's database, or bring it up to date; its schema then; ``UnavailableError``."""
    private_folder(settings.home)
    if not settings.database_url:
        private_file(settings.home / "ballast.db")
    return upgrade(settings.database)
