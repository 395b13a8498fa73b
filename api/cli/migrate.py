"""``ballast migrate``: make the database, or bring it up to date."""

from __future__ import annotations

import argparse

from api.cli.common import add_home
from migrations.run import upgrade
from services.contracts.errors import UnavailableError
from services.contracts.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_home(parser)


def run(args: argparse.Namespace) -> int:
    """Run the migrations; a failure leaves the database as it was."""
    settings = Settings.load(args.home)
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnavailableError(f"the folder {settings.home} cannot be made: {error.strerror}") from error
    print(f"the database is at schema {upgrade(settings.database)}")
    return 0
