"""Bring the round store and the registry to their newest schema: ``python -m api.cli.commands.prepare``."""

from __future__ import annotations

import sys

from api.cli.commands.migrate import migrate
from services.contracts.errors import BallastError
from services.process.settings import Settings
from services.registry.mlflow_registry import ModelRegistry


def main() -> int:
    """Prepare both stores of the settings' home; one line on stderr and exit code 1 where one cannot be."""
    try:
        settings = Settings.load()
        migrate(settings)
        ModelRegistry(settings.tracking_uri, settings.artifact_root).prepare()
    except BallastError as error:
        print(f"ballast: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
