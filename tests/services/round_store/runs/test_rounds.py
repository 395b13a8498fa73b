"""Committing rounds: all or nothing, once, in order, bit for bit."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.history.run import AnswerStatus, RoundRecord, Run, SiteAnswer
from services.round_store.runs.run_rows import OVERTAKEN
from services.round_store.runs.run_states import DamagedStateError
from services.round_store.store import RoundStore
from services.round_store.tables.runs import RoundRow, RunStateRow, SiteUpdateRow
from tests.waiting import PATIENCE

MakeRecord = Callable[..., RoundRecord]
STATE = {
    "weights": np.array([[0.1, -0.0, np.inf], [5e-324, 1 / 3, -np.inf]]),
    "level": np.array(0.1 + 0.2),
    "cuts": np.zeros((0, 3)),
}


def counts(store: RoundStore) -> tuple[int, ...]:
    with store.database.read() as session:
        return tuple(
            session.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (RoundRow, SiteUpdateRow, RunStateRow)
        )


def test_round_and_state_come_back_bit_for_bit(store: RoundStore, running: Run, make_record: MakeRecord) -> None:
    assert store.runs.load_state(running.run_id) is None
    record = make_record(running.run_id, 1)
    store.runs.commit_round(record, STATE)
    assert store.runs.get_rounds(running.run_id) == [record]
    loaded = store.runs.load_state(running.run_id)
    assert loaded is not None
    round_, state = loaded
    assert round_ == 1
    assert list(state) == list(STATE)
    for name, array in STATE.items():
        assert state[name].shape == array.shape
        assert state[name].tobytes() == array.tobytes()
    run = store.runs.get_run(running.run_id)
    assert (run.rounds, run.upper, run.lower, run.gap, run.fresh_weight) == (
        1, record.upper, record.lower, record.gap, record.fresh_weight,
    )


def test_the_first_upper_bound_may_be_infinite(store: RoundStore, running: Run, make_record: MakeRecord) -> None:
    record = make_record(running.run_id, 1, upper=np.inf, lower=-np.inf, gap=np.inf)
    store.runs.commit_round(record, {})
    assert store.runs.get_rounds(running.run_id) == [record]
    run = store.runs.get_run(running.run_id)
    assert (run.upper, run.lower, run.gap) == (np.inf, -np.inf, np.inf)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.floats(allow_nan=False), values=st.lists(st.floats(), max_size=5))
def test_any_float_comes_back(
    store: RoundStore, running: Run, make_record: MakeRecord, number: float, values: list[float]
) -> None:
    round_ = store.runs.get_run(running.run_id).rounds + 1
    record = make_record(running.run_id, round_, lower=number, answers=())
    store.runs.commit_round(record, {"w": np.array(values)})
    (read,) = store.runs.get_rounds(running.run_id, after=round_ - 1)
    assert read.lower == number  # every digit; SQLite alone forgets the sign of a zero
    loaded = store.runs.load_state(running.run_id)
    assert loaded is not None
    assert loaded[1]["w"].tobytes() == np.array(values, dtype=np.float64).tobytes()


def test_rounds_are_committed_once_and_in_order(store: RoundStore, running: Run, make_record: MakeRecord) -> None:
    first = make_record(running.run_id, 1)
    with pytest.raises(ConflictError, match="round 2 .* cannot be committed: the next is round 1"):
        store.runs.commit_round(make_record(running.run_id, 2), STATE)
    store.runs.commit_round(first, {"w": np.zeros(2)})
    with pytest.raises(ConflictError, match="round 1 .* cannot be committed: the next is round 2") as overtaken:
        store.runs.commit_round(make_record(running.run_id, 1, upper=9.0), {"w": np.ones(2)})
    assert overtaken.value.code == OVERTAKEN, "who drives it has lost it to another process, and it goes on"
    assert store.runs.get_rounds(running.run_id) == [first]
    loaded = store.runs.load_state(running.run_id)
    assert loaded is not None
    np.testing.assert_array_equal(loaded[1]["w"], np.zeros(2))
    for round_ in (2, 3):
        store.runs.commit_round(make_record(running.run_id, round_), STATE)
    assert [record.round for record in store.runs.get_rounds(running.run_id)] == [1, 2, 3]
    assert [record.round for record in store.runs.get_rounds(running.run_id, after=1, limit=1)] == [2]
    assert counts(store) == (3, 6, 1)


def test_only_a_running_run_takes_rounds(store: RoundStore, running: Run, make_record: MakeRecord) -> None:
    store.runs.commit_round(make_record(running.run_id, 1), STATE)
    store.runs.finish_run(running.run_id, "cancelled", "asked to stop")
    with pytest.raises(ConflictError, match="is cancelled") as ended:
        store.runs.commit_round(make_record(running.run_id, 2), STATE)
    assert ended.value.code != OVERTAKEN
    assert store.runs.load_state(running.run_id) is None
    assert counts(store) == (1, 2, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gap": float("nan")}, "round 1: gap is not a number"),
        ({"answers": (SiteAnswer(site_id="a", status="absent"),) * 2}, "more than one answer of site a"),
    ],
)
def test_records_that_must_not_be_stored(
    store: RoundStore, running: Run, make_record: MakeRecord, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        store.runs.commit_round(make_record(running.run_id, 1, **changes), STATE)
    assert counts(store) == (0, 0, 0)


def test_who_is_excluded_is_committed_with_the_round_or_not_at_all(
    store: RoundStore, running: Run, make_record: MakeRecord
) -> None:
    gone = SiteAnswer(site_id="b", status="excluded", code="contradiction", reason="contradicts\x00 itself")
    with pytest.raises(ValueError):
        store.runs.commit_round(make_record(running.run_id, 1, answers=(gone,)), {"w": np.array(["no number"])})
    assert store.runs.get_run(running.run_id).excluded == ()
    store.runs.commit_round(make_record(running.run_id, 1, answers=(gone,)), STATE)
    other = SiteAnswer(site_id="a", status="excluded", code="implausible", reason="its risk is -1")
    store.runs.commit_round(make_record(running.run_id, 2, answers=(other,)), STATE)
    found = [(each.site_id, each.round, each.code) for each in store.runs.get_run(running.run_id).excluded]
    assert found == [("b", 1, "contradiction"), ("a", 2, "implausible")]
    assert "\x00" not in store.runs.get_run(running.run_id).excluded[0].reason
    assert store.runs.list_runs()[0].excluded == store.runs.get_run(running.run_id).excluded


def test_what_a_site_writes_cannot_break_a_commit(store: RoundStore, running: Run, make_record: MakeRecord) -> None:
    hostile = SiteAnswer(site_id="a", status="refused_by_site", code="x\x00y", reason="\ud800" + "z" * 5000)
    store.runs.commit_round(make_record(running.run_id, 1, answers=(hostile,)), STATE)
    (answer,) = store.runs.get_rounds(running.run_id)[0].answers
    assert answer.code == "x\ufffdy"
    assert len(answer.reason) == 1000
    assert store.runs.get_run(running.run_id).rounds == 1


def test_an_exception_in_mid_commit_leaves_nothing(store: RoundStore, running: Run, make_record: MakeRecord) -> None:
    store.runs.commit_round(make_record(running.run_id, 1), STATE)
    with pytest.raises(ValueError, match="could not convert"):
        store.runs.commit_round(make_record(running.run_id, 2), {"w": np.array(["no number"])})
    assert store.runs.get_run(running.run_id).rounds == 1
    assert counts(store) == (1, 2, 1)
    store.runs.commit_round(make_record(running.run_id, 2), STATE)


def test_a_kill_in_mid_commit_leaves_nothing(
    store: RoundStore, database_url: str, running: Run, make_record: MakeRecord
) -> None:
    """The process dies while the state is packed: the round and its answers have been written, not committed."""
    script = """
        import os, signal, sys
        from services.contracts.history.run import RoundRecord
        from services.round_store.store import RoundStore

        class Deadly:
            def __array__(self, dtype=None, copy=None):
                print("in mid-commit", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)

        record = RoundRecord.model_validate_json(sys.argv[2])
        RoundStore.open(sys.argv[1]).runs.commit_round(record, {"w": Deadly()})
    """
    record = make_record(running.run_id, 1)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), database_url, record.model_dump_json()],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (-9, "in mid-commit\n"), done.stderr
    assert counts(store) == (0, 0, 0)
    assert store.runs.get_run(running.run_id).rounds == 0
    store.runs.commit_round(record, STATE)
    assert counts(store) == (1, 2, 1)


def test_a_damaged_state_is_not_trained_on(store: RoundStore, running: Run, make_record: MakeRecord) -> None:
    store.runs.commit_round(make_record(running.run_id, 1), STATE)
    with store.database.write() as session:
        session.execute(update(RunStateRow).values(round=7))
    with pytest.raises(DamagedStateError, match="belongs to another run or round"):
        store.runs.load_state(running.run_id)
    with store.database.write() as session:
        session.execute(update(RunStateRow).values(frame=b"BLS1 and no more"))
    with pytest.raises(DamagedStateError, match="is damaged"):
        store.runs.load_state(running.run_id)


def test_frames_are_kept_while_a_run_lasts_and_evidence_for_good(
    store: RoundStore, running: Run, make_record: Callable[..., RoundRecord]
) -> None:
    runs, frames = store.runs, {"plant-1": (b"task", b"answer"), "plant-2": (b"other", b"\x00\xff")}
    runs.commit_round(make_record(running.run_id, 1), STATE, frames)
    runs.commit_round(make_record(running.run_id, 2), STATE, {"plant-1": (b"t2", b"a2")},
                      {"plant-3": b"another", "plant-2": b"proof"})
    assert runs.get_exchange(running.run_id, 1, "plant-2") == (b"other", b"\x00\xff")
    assert runs.get_exchange(running.run_id, 2, "plant-1") == (b"t2", b"a2")
    assert runs.get_exchange(running.run_id, 2, "plant-2") is None
    runs.finish_run(running.run_id, "completed", "")
    assert runs.get_exchange(running.run_id, 1, "plant-2") is None
    assert runs.get_evidence(running.run_id, "plant-2") == b"proof"
    assert runs.get_evidence(running.run_id, "plant-3") == b"another"
    assert runs.get_evidence(running.run_id, "plant-1") is None


def test_a_late_answer_is_kept_under_the_round_of_its_question(
    store: RoundStore, running: Run, make_record: MakeRecord
) -> None:
    """An auditor looks for what was answered to the question, whenever it came."""
    late = SiteAnswer(site_id="a", status="accepted", question=1)
    store.runs.commit_round(make_record(running.run_id, 1, answers=()), STATE)
    own = SiteAnswer(site_id="b", status="accepted")
    frames = {"a": (b"task 1", b"answer to 1"), "b": (b"task 2", b"answer to 2")}
    store.runs.commit_round(make_record(running.run_id, 2, answers=(late, own)), STATE, frames)
    found = [store.runs.get_exchange(running.run_id, number, site) for number in (1, 2) for site in "ab"]
    assert found == [frames["a"], None, None, frames["b"]]


def test_only_who_is_excluded_is_left_out_for_good(store: RoundStore, running: Run, make_record: MakeRecord) -> None:
    answers = tuple(
        SiteAnswer(site_id=f"s{number}", status=status) for number, status in enumerate(get_args(AnswerStatus))
    )
    store.runs.commit_round(make_record(running.run_id, 1, answers=answers), STATE)
    (gone,) = store.runs.get_run(running.run_id).excluded
    assert gone.site_id == f"s{get_args(AnswerStatus).index('excluded')}"


@pytest.mark.parametrize("name", ["seconds", "upper", "lower", "gap", "fresh_weight"])
def test_no_figure_of_a_round_is_no_number(store: RoundStore, running: Run, make_record: MakeRecord, name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"round 1: {name} is not a number"):
        store.runs.commit_round(make_record(running.run_id, 1, **{name: float("nan")}), STATE)
    assert counts(store) == (0, 0, 0)


def test_a_hostile_code_is_cut(store: RoundStore, running: Run, make_record: MakeRecord) -> None:
    hostile = SiteAnswer(site_id="a", status="refused_by_site", code="c" * 500)
    store.runs.commit_round(make_record(running.run_id, 1, answers=(hostile,)), STATE)
    assert len(store.runs.get_rounds(running.run_id)[0].answers[0].code) == 80
