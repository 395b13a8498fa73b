"""Puts back what somebody moved in the registry by hand: the store says which version is champion."""

from __future__ import annotations

import logging

from flows.again_and_again import again_and_again
from flows.wiring import FlowContext
from services.registry.alias_check import RESTORED, MovedAlias, moved_aliases

LOG = logging.getLogger("ballast.flows")
WATCH_SECONDS = 10.0  # a champion named in MLflow's pages is known after so long at most
ACTOR = "flows:alias-watch"


async def watch_aliases(context: FlowContext) -> None:
    """Look every ten seconds, for ever."""
    trouble = "cannot hold the registry against the store"
    await again_and_again(lambda: restore_aliases(context), WATCH_SECONDS, trouble)


def restore_aliases(context: FlowContext) -> list[MovedAlias]:
    """Put every alias that was moved by hand back, with an entry in the audit trail and a line in the log each."""
    restored: list[MovedAlias] = []
    for name in context.store.model_versions.models():
        if not moved_aliases(context.store.model_versions, context.registry, name):
            continue
        with context.store.atomic() as unit:
            # A promotion that is on its way has moved the registry and not committed yet: wait for it, and look again.
            unit.audit.take_turn()
            for each in moved_aliases(unit.model_versions, context.registry, name):
                unit.audit.append(
                    actor=ACTOR, role=None, action=RESTORED, target=f"model:{name}", reason=str(each),
                    before={each.alias: each.found}, after={each.alias: each.expected},
                )
                context.registry.point(name, each.alias, each.expected)
                LOG.warning("%s; it is put back", each)
                restored.append(each)
    return restored
