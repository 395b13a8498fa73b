"""Method states in parts: what a commit writes, what stands after a crash in mid-commit, and what is damaged."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete, event, func, select
from sqlalchemy.orm import make_transient

from migrations.run import downgrade, upgrade
from models.basics import FloatArray
from models.methods.growth import Added
from services.contracts.errors import BallastError
from services.contracts.history.run import RoundRecord, Run
from services.contracts.plans.plan import Plan
from services.contracts.wire.codec import pack_arrays, unpack
from services.round_store.runs.run_states import DamagedStateError
from services.round_store.store import RoundStore
from services.round_store.tables.runs import RunStatePartRow
from tests.waiting import PATIENCE

MakeRecord = Callable[..., RoundRecord]
D = 20


def part(round_: int, start: int, rows: int = 3) -> dict[str, Added]:
    """Rows of a round, of heads side by side and of one apart."""
    random = np.random.default_rng([round_, start])
    return {
        "cut_slope": Added(1, start, random.normal(size=(2, rows, D))),
        "cut_offset of head 1": Added(0, start, random.normal(size=rows)),
    }


def present(round_: int) -> dict[str, FloatArray]:
    return {"point": np.full((2, D), float(round_)), "bounds": np.array([np.inf, -0.0])}


def commit(store: RoundStore, record: RoundRecord, added: dict[str, Added]) -> None:
    store.runs.commit_round(record, present(record.round), added=added)


def loaded(store: RoundStore, run: Run) -> tuple[int, dict[str, FloatArray]]:
    found = store.runs.load_state(run.run_id)
    assert found is not None
    return found


def parts(store: RoundStore) -> int:
    with store.database.read() as session:
        return session.execute(select(func.count()).select_from(RunStatePartRow)).scalar_one()


def check(store: RoundStore, run: Run, rounds: list[dict[str, Added]]) -> None:
    """The state is that of these rounds, bit for bit."""
    round_, state = loaded(store, run)
    assert round_ == store.runs.get_run(run.run_id).rounds
    np.testing.assert_array_equal(state["point"], present(round_)["point"])
    for name, axis in (("cut_slope", 1), ("cut_offset of head 1", 0)):
        assert state[name].tobytes() == np.concatenate([each[name].rows for each in rounds], axis=axis).tobytes()


def test_parts_come_back_as_one_and_a_part_from_row_0_replaces_them(
    store: RoundStore, running: Run, make_record: MakeRecord
) -> None:
    rounds: list[dict[str, Added]] = []
    for number in (1, 2, 3):
        rounds.append(part(number, 3 * (number - 1)))
        commit(store, make_record(running.run_id, number), rounds[-1])
        check(store, running, rounds)
    assert parts(store) == 3
    anew = part(4, 0, 5)
    commit(store, make_record(running.run_id, 4), anew)
    check(store, running, [anew])
    assert parts(store) == 1
    store.runs.finish_run(running.run_id, "failed", "")
    assert parts(store) == 0


def test_the_end_of_the_last_completed_run_of_a_plan_is_kept_and_no_other(
    store: RoundStore, running: Run, make_record: MakeRecord
) -> None:
    ended = [running]
    for number, status in enumerate(("completed", "failed", "completed")):
        run = ended[-1]
        commit(store, make_record(run.run_id, 1), part(number + 1, 0))
        assert store.runs.load_end(run.run_id) is None and store.runs.load_state(run.run_id) is not None
        store.runs.finish_run(run.run_id, status, "")
        assert store.runs.load_state(run.run_id) is None
        ended.append(store.runs.create_run(running.plan))
        store.runs.begin_run(ended[-1].run_id, running.sites, (), None, {"plant-1": "ab"})
        kept = [store.runs.load_end(each.run_id) is not None for each in ended]
        assert kept == [[True, False], [True, False, False], [False, False, True, False]][number]
    assert store.runs.get_digests(ended[-1].run_id) == {"plant-1": "ab"}
    store.runs.request_cancel(ended[-1].run_id)
    store.runs.finish_run(ended[-1].run_id, "cancelled", "")
    cold = running.plan.model_copy(update={"warm_start": False})
    run = store.runs.create_run(cold)
    store.runs.begin_run(run.run_id, running.sites)
    commit(store, make_record(run.run_id, 1), part(1, 0))
    store.runs.finish_run(run.run_id, "completed", "")
    assert [store.runs.load_end(each.run_id) for each in (*ended, run)] == [None] * 5 and parts(store) == 0


def test_a_run_ends_by_as_many_statements_however_many_came_before_it(
    store: RoundStore, running: Run, make_record: MakeRecord
) -> None:
    """A plan that retrains every night has thousands of runs behind it in ten years."""
    counts, statements = [], list[str]()
    event.listen(store.engine, "before_cursor_execute", lambda _c, _u, statement, *_: statements.append(statement))
    run = running
    for number in range(1, 8):
        commit(store, make_record(run.run_id, 1), part(number, 0))
        statements.clear()
        store.runs.finish_run(run.run_id, "completed", "")
        counts.append(len(statements))
        assert parts(store) == 1
        run = store.runs.begin_run(store.runs.create_run(running.plan).run_id, running.sites)
    assert len(set(counts)) == 1, counts


@pytest.mark.parametrize("changes", [{}, {"noise": {"epsilon": 1.0, "delta": 1e-6}}])
def test_the_end_of_a_run_takes_the_place_of_those_of_its_own_plan_alone_and_with_noise_none_is_kept(
    store: RoundStore, running: Run, make_record: MakeRecord, changes: dict[str, Any]
) -> None:
    other = Plan.model_validate(running.plan.model_dump() | {"name": "other"} | changes)
    ended = []
    for plan in (running.plan, other, running.plan):
        run = running if not ended else store.runs.begin_run(store.runs.create_run(plan).run_id, running.sites)
        commit(store, make_record(run.run_id, 1), part(1, 0))
        ended.append(store.runs.finish_run(run.run_id, "completed", "").run_id)
    kept = [store.runs.load_end(run_id) is not None for run_id in ended]
    assert kept == [False, not changes, True]


def test_a_late_round_writes_no_more_than_an_early_one(
    store: RoundStore, running: Run, make_record: MakeRecord
) -> None:
    written: list[tuple[int, int]] = []
    counted = [0, 0]

    def count(_c: Any, _u: Any, statement: str, values: Any, _x: Any, many: bool) -> None:
        if statement.lstrip().upper().startswith(("INSERT", "UPDATE")):
            rows = values if many else [values]
            counted[0] += len(rows)
            for row in rows:
                for value in row.values() if isinstance(row, dict) else row:
                    counted[1] += len(value) if isinstance(value, bytes) else 0

    event.listen(store.engine, "before_cursor_execute", count)
    for number in range(1, 13):
        counted[:] = 0, 0
        commit(store, make_record(running.run_id, number), part(number, 3 * (number - 1)))
        written.append((counted[0], counted[1]))
    rows, sizes = zip(*written[1:], strict=True)  # the first makes the row that the others change
    assert len(set(rows)) == 1
    assert max(sizes) - min(sizes) <= 8, "but for the digits of the numbers in its header"
    assert sum(array.nbytes for array in loaded(store, running)[1].values()) > 4 * max(sizes)


@pytest.mark.parametrize("start", [6, 0])
def test_a_kill_in_mid_commit_leaves_the_state_of_the_round_before(
    store: RoundStore, database_url: str, running: Run, make_record: MakeRecord, start: int
) -> None:
    """The process dies when the parts are written, or deleted and written anew, and the present state is not."""
    rounds = [part(1, 0), part(2, 3)]
    for number, added in enumerate(rounds, start=1):
        commit(store, make_record(running.run_id, number), added)
    script = """
        import os, signal, sys
        import numpy as np
        from models.methods.growth import Added
        from services.contracts.history.run import RoundRecord
        from services.round_store.store import RoundStore

        class Deadly:
            def __array__(self, dtype=None, copy=None):
                print("in mid-commit", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)

        record = RoundRecord.model_validate_json(sys.argv[2])
        added = {"cut_slope": Added(1, int(sys.argv[3]), np.ones((2, 3, 20)))}
        RoundStore.open(sys.argv[1]).runs.commit_round(record, {"point": Deadly()}, added=added)
    """
    record = make_record(running.run_id, 3)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), database_url, record.model_dump_json(), str(start)],
        capture_output=True, text=True, timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (-9, "in mid-commit\n"), done.stderr
    check(store, running, rounds)
    assert parts(store) == 2
    commit(store, record, part(3, 6))
    check(store, running, [*rounds, part(3, 6)])


@pytest.mark.parametrize("statement", ["INSERT INTO run_state_parts", "UPDATE run_states", "INSERT INTO site_updates"])
def test_a_failure_at_any_statement_leaves_the_state_of_the_round_before(
    store: RoundStore, running: Run, make_record: MakeRecord, statement: str
) -> None:
    commit(store, make_record(running.run_id, 1), part(1, 0))

    def fail(_c: Any, _u: Any, sent: str, *_: Any) -> None:
        if sent.startswith(statement):
            raise OSError("the disk is gone")

    event.listen(store.engine, "before_cursor_execute", fail)
    with pytest.raises((OSError, BallastError)):
        commit(store, make_record(running.run_id, 2), part(2, 0))
    event.remove(store.engine, "before_cursor_execute", fail)
    check(store, running, [part(1, 0)])
    commit(store, make_record(running.run_id, 2), part(2, 3))
    check(store, running, [part(1, 0), part(2, 3)])


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_lost_part_is_not_trained_without(
    store: RoundStore, running: Run, make_record: MakeRecord, lost: int
) -> None:
    for number in (1, 2, 3):
        commit(store, make_record(running.run_id, number), part(number, 3 * (number - 1)))
    with store.database.write() as session:
        session.execute(delete(RunStatePartRow).where(RunStatePartRow.round == lost))
    with pytest.raises(DamagedStateError, match="a part of it is missing"):
        store.runs.load_state(running.run_id)


def test_a_part_of_a_later_round_is_not_trained_with(
    store: RoundStore, running: Run, make_record: MakeRecord
) -> None:
    """As where a row of a later backup came into a store: its cuts would count though their round does not."""
    for number in (1, 2):
        commit(store, make_record(running.run_id, number), part(number, 3 * (number - 1)))
    with store.database.write() as session:
        (row,) = session.scalars(select(RunStatePartRow).where(RunStatePartRow.round == 2))
        frame = unpack(row.frame)
        row.round, row.frame = 3, pack_arrays({**frame.header, "round": 3}, frame.arrays)
    with pytest.raises(DamagedStateError, match="a part of it is missing"):
        store.runs.load_state(running.run_id)


def test_a_state_from_before_there_were_parts_is_read_and_written_back(
    store: RoundStore, database_url: str, running: Run, make_record: MakeRecord
) -> None:
    rounds = [part(1, 0), part(2, 3)]
    for number, added in enumerate(rounds, start=1):
        commit(store, make_record(running.run_id, number), added)
    _, before = loaded(store, running)
    assert downgrade(database_url, "0006") == "0006"
    upgrade(database_url)
    assert parts(store) == 0, "the older version has all of a state in one frame, which the newer one reads"
    round_, after = loaded(store, running)
    assert round_ == 2 and after.keys() == before.keys()
    assert all(after[name].tobytes() == before[name].tobytes() for name in before)
    commit(store, make_record(running.run_id, 3), part(3, 0, 9))
    check(store, running, [part(3, 0, 9)])


def test_an_older_version_has_the_parts_in_the_order_of_the_rounds_and_none_from_before_a_new_beginning(
    store: RoundStore, database_url: str, running: Run, make_record: MakeRecord
) -> None:
    """Of one array that begins anew, beside one that goes on; the server may give rows in any order."""
    anew = part(2, 3) | {"cut_offset of head 1": Added(0, 0, np.arange(3.0))}
    for number, added in enumerate((part(1, 0), anew, part(3, 6) | {"cut_offset of head 1": Added(0, 3, np.ones(3))})):
        commit(store, make_record(running.run_id, number + 1), added)
    with store.database.write() as session:
        first = session.scalars(select(RunStatePartRow).where(RunStatePartRow.round == 1)).one()
        session.execute(delete(RunStatePartRow).where(RunStatePartRow.round == 1))
        session.expunge(first)
        make_transient(first)
        session.add(first)
    _, before = loaded(store, running)
    assert before["cut_offset of head 1"].tolist() == [0.0, 1.0, 2.0, 1.0, 1.0, 1.0]
    downgrade(database_url, "0006")
    upgrade(database_url)
    _, after = loaded(store, running)
    assert after.keys() == before.keys()
    assert all(after[name].tobytes() == before[name].tobytes() for name in before)
