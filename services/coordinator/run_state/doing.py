"""What a run does now, told in the store to who looks at it."""

from __future__ import annotations

import logging

from services.contracts.errors import UnavailableError
from services.coordinator.asking.ports import RunStore

LOG = logging.getLogger("ballast.coordinator")


def tell_doing(store: RunStore, run_id: str, doing: str) -> None:
    """Say what a run does now; where the store has no time for that the run goes on."""
    try:
        store.set_doing(run_id, doing)
    except UnavailableError as error:
        LOG.warning("run %s: what it does is not told: %s", run_id, error)
