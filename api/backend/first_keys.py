"""What an API process does with the keys of its home folder before anything else."""

from __future__ import annotations

import logging

from api.backend.wiring import open_backend
from services.contracts.errors import BallastError
from services.identity.service_keys import MEANINGS, OtherKeyError
from services.process.settings import Settings

LOG = logging.getLogger("ballast.api")


def begin_with_keys(settings: Settings) -> None:
    """Hold each key to what the store knows of it; make, and enter there, those that the service has not yet.

    ``OtherKeyError`` where one is another key than the service's, or is missing here. While the store is away nothing
    is known: then a key is held to it where it is used.
    """
    with open_backend(settings) as backend:
        try:
            backend.check_store()
            for name in MEANINGS:
                backend.service_keys.get(name)
        except OtherKeyError:
            raise
        except BallastError as error:
            LOG.warning("the keys of the home folder are not looked at yet: %s", error)
