"""An asset type that gets its next version while a run is on its way: the run and its model stay of the one before."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from services.contracts.errors import NotFoundError
from services.contracts.history.run import Run
from services.contracts.machines.asset_type import AssetType


def with_wider_ranges(asset_type: AssetType) -> AssetType:
    features = tuple(
        each.model_copy(update={"low": 10 * each.low, "high": 10 * each.high}) for each in asset_type.features
    )
    return asset_type.model_copy(update={"version": asset_type.version + 1, "features": features})


@pytest.fixture
def renewed(unasked_works: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A works whose asset type gets its next version at the moment that a run has begun."""
    store = unasked_works.context.store
    begin_run = store.runs.begin_run

    def begun(*given: Any) -> Run:
        run: Run = begin_run(*given)
        store.asset_types.add(with_wider_ranges(unasked_works.asset_type))
        return run

    monkeypatch.setattr(store.runs, "begin_run", begun)
    return unasked_works


def test_the_model_has_the_ranges_by_which_it_was_trained(renewed: Any) -> None:
    plan, before = renewed.plan("renewed", max_rounds=5), renewed.asset_type
    run, _, version = renewed.train(plan, registered=False)
    assert renewed.context.asset_type(before.name).version == before.version + 1
    assert run.start is not None and run.start.contract == before.fingerprint
    assert version.asset_type == before, "the weights are of these ranges"


def test_a_run_that_goes_on_in_another_process_asks_by_the_version_with_which_it_began(renewed: Any) -> None:
    context, transport = renewed.context, cast("Any", None)
    run = context.store.runs.create_run(renewed.plan("renewed-and-killed", max_rounds=5))

    async def joined() -> Run:
        async with renewed._plants(()), context.plant_link() as link:
            return await context.coordinator(run, link).join(run)

    begun = asyncio.run(joined())
    assert context.coordinator(begun, transport)._parts.asset_type == renewed.asset_type
    assert context.coordinator(run, transport)._parts.asset_type == with_wider_ranges(renewed.asset_type)
    with pytest.raises(NotFoundError, match="no version of asset type rig has the fingerprint ff"):
        context.store.asset_types.of_contract("rig", "f" * 64)
