"""The version of a run that is trained and evaluated, until the run ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sqlalchemy import update

from services.contracts.errors import ConflictError
from services.contracts.history.run import Run
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.contracts.versions.draft import VersionDraft
from services.round_store.runs.run_rows import OVERTAKEN
from services.round_store.runs.run_states import DamagedStateError
from services.round_store.store import RoundStore
from services.round_store.tables.runs import RunDraftRow
from tests.versions import a_version


@pytest.fixture
def draft(asset_type: AssetType, running: Run) -> VersionDraft:
    """Numbers that a careless way would change, and bytes of every value."""
    version = a_version(
        asset_type, np.array([[-0.0, 5e-324]]), run_id=running.run_id, lower_bound=-np.inf, worst_case_risk=0.1 + 0.2,
        note="“x”\u2028", signature="s",
    )
    return VersionDraft(version, "why; „so“", bytes(range(256)), np.array([[1.0, 2.0], [3.0, 2.0**52]]))


def test_it_comes_back_bit_for_bit(store: RoundStore, running: Run, draft: VersionDraft) -> None:
    assert store.runs.get_draft(running.run_id) is None
    assert store.runs.keep_draft(running.run_id, draft) is draft
    found = store.runs.get_draft(running.run_id)
    assert found is not None and repr(found.version.to_document()) == repr(draft.version.to_document())
    assert (found.stopped, found.certificate) == (draft.stopped, draft.certificate)
    assert found.counts is not None and np.array_equal(found.counts, draft.counts)


def test_without_certificate_and_counts_it_has_none(store: RoundStore, running: Run, draft: VersionDraft) -> None:
    store.runs.keep_draft(running.run_id, VersionDraft(draft.version, "why"))
    found = store.runs.get_draft(running.run_id)
    assert found is not None and (found.certificate, found.counts) == (None, None)


def test_the_first_one_stands(store: RoundStore, running: Run, draft: VersionDraft) -> None:
    """Two processes that made a version each go on with the same one."""
    store.runs.keep_draft(running.run_id, draft)
    other = VersionDraft(draft.version.model_copy(update={"signature": "other"}), "another reason")
    for found in (store.runs.keep_draft(running.run_id, other), store.runs.get_draft(running.run_id)):
        assert found is not None and (found.version.signature, found.stopped) == ("s", draft.stopped)


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_it_is_gone_when_the_run_ends_and_none_is_kept_after(
    store: RoundStore, running: Run, draft: VersionDraft, status: str
) -> None:
    store.runs.keep_draft(running.run_id, draft)
    store.runs.finish_run(running.run_id, status, "done")
    assert store.runs.get_draft(running.run_id) is None
    with pytest.raises(ConflictError, match=f"is {status} and makes no version") as raised:
        store.runs.keep_draft(running.run_id, draft)
    assert raised.value.code == OVERTAKEN and store.runs.get_draft(running.run_id) is None


def test_the_end_of_one_run_leaves_the_drafts_of_others(
    store: RoundStore, running: Run, plan: Plan, draft: VersionDraft
) -> None:
    other = store.runs.begin_run(
        store.runs.create_run(plan.model_copy(update={"name": "daily"})).run_id, running.sites
    )
    store.runs.keep_draft(running.run_id, draft)
    version = draft.version.model_copy(update={"run_id": other.run_id})
    store.runs.keep_draft(other.run_id, VersionDraft(version, "why"))
    store.runs.finish_run(other.run_id, "completed", "done")
    assert store.runs.get_draft(other.run_id) is None and store.runs.get_draft(running.run_id) is not None


@pytest.mark.parametrize(("change", "said"), [
    (lambda frame: frame[:-1], "damaged: frame has"),
    (lambda frame: frame.replace(b'"schema"', b'"schemb"'), "damaged: not a model version"),
    (lambda frame: frame.replace(b'"stopped"', b'"stoqped"'), "damaged: 'stopped'"),
    (None, "belongs to run " + "f" * 32),
])
def test_a_damaged_one_is_refused(
    store: RoundStore, running: Run, draft: VersionDraft, change: Any, said: str
) -> None:
    if change is None:
        draft = VersionDraft(draft.version.model_copy(update={"run_id": "f" * 32}), "why")
    store.runs.keep_draft(running.run_id, draft)
    if change is not None:
        with store.database.write() as session:
            row = session.get(RunDraftRow, running.run_id)
            assert row is not None
            session.execute(update(RunDraftRow).values(frame=change(row.frame)))
    with pytest.raises(DamagedStateError, match=said):
        store.runs.get_draft(running.run_id)
