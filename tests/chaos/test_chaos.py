"""The checks of a campaign notice a planted break; faults befall real processes; a seed gives the same faults."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from services.bus.configuration import BusFiles
from services.bus.server import prepare
from services.contracts.history.run import Run, SiteTermsRecord
from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.plans.plan import Plan
from services.contracts.wire.codec import digest
from services.process.end_with_parent import end_with_parent
from services.round_store.store import RoundStore
from services.site_agent.outgoing.egress import Egress
from services.site_agent.outgoing.ledger import Ledger
from tests import versions
from tests.chaos.processes import command_line, descendants, fill_disk, send
from tests.chaos.schedule import schedule
from tests.chaos.watch import Watch
from tests.nats_server import start
from tests.ports import free_port
from tests.simulation.plants import RIG
from tests.standstill import stands
from tests.waiting import wait_until

TERMS = tuple(SiteTermsRecord(site_id=site, weight=0.5, radius=0.1, n_samples=9) for site in ("a", "b"))


@pytest.fixture
def store(new_sqlite: Callable[[], str]) -> Iterator[RoundStore]:
    opened = RoundStore.open(new_sqlite())
    yield opened
    opened.close()


@pytest.fixture
def run(store: RoundStore) -> Run:
    """A run on sums of two rounds that is on its way, ordered as an operator does."""
    run = store.runs.create_run(Plan(name="sums", asset_type="rig", reveal="sums", min_sites=3))
    store.audit.append(actor="ada", role=None, action="plan.trigger", target="plan:sums", after={"run_id": run.run_id})
    store.runs.begin_run(run.run_id, TERMS)
    for number in (1, 2):
        store.runs.commit_round(versions.a_round(run.run_id, number), {})
    return run


BREAKS = {
    "a round is lost": ("DELETE FROM rounds WHERE round = 2", "is gone or another"),
    "a round is another": ("UPDATE rounds SET upper = 7.5 WHERE round = 1", "is gone or another"),
    "a round is counted twice": ("UPDATE runs SET rounds = 3", "counts 3 rounds, 2 stand there"),
    "a run ends without a reason": ("UPDATE runs SET status = 'failed', reason = ' '", "without a reason"),
    "an entry of the trail is changed": ("UPDATE audit_events SET actor = 'eve'", "audit: event 1"),
    "the trail gets shorter": (
        "DELETE FROM audit_events; UPDATE audit_head SET number = 0, hash = '" + "0" * 64 + "'", "got shorter"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_planted_break_is_noticed(store: RoundStore, run: Run, name: str) -> None:
    watch = Watch(store, {})
    watch.look()
    watch.look()
    assert watch.broken == [] and watch.rounds == 2
    broken, expected = BREAKS[name]
    with store.engine.begin() as connection:
        for event in ("update", "delete"):  # whoever owns the file can do this too
            connection.execute(text(f"DROP TRIGGER audit_events_no_{event}"))
        for each in broken.split("; "):
            connection.execute(text(each))
    watch.look()
    assert [what for what in watch.broken if expected in what], watch.broken


def test_what_ended_stays_as_it_ended(store: RoundStore, run: Run) -> None:
    watch = Watch(store, {})
    store.runs.finish_run(run.run_id, "completed", "done")
    watch.look()
    assert watch.broken == [] and watch.ends == Counter(completed=1)
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE runs SET status = 'running'"))
    watch.look()
    assert any("had ended" in what for what in watch.broken)


@pytest.mark.parametrize(("reason", "broken"), [("no plant answered", 0), ("the round cannot be committed", 1)])
def test_a_run_that_failed_is_told_with_its_reason(store: RoundStore, run: Run, reason: str, broken: int) -> None:
    """A count of failed runs says nothing: whoever reads the account has to see that each was one that may fail."""
    watch = Watch(store, {})
    store.runs.finish_run(run.run_id, "failed", reason)
    watch.look()
    watch.look()
    assert watch.failures == [f"run {run.run_id[:8]} of {run.plan.name}: {reason}"]
    assert len(watch.broken) == broken


def test_the_end_asks_for_a_version_a_champion_and_a_ledger(store: RoundStore, run: Run, tmp_path: Path) -> None:
    new_seed_file(tmp_path / "site.nk")
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        from services.contracts.wire.messages import SiteRefusal

        way = Egress(ledger, signer(tmp_path / "site.nk"), 1 << 20)
        frame = way.release(SiteRefusal(
            kind="round", site_id="a", run_id=run.run_id, round=3, task_sha256="0" * 64, code="no_data", reason="x"
        ))
    sent = versions.an_answer("a", payload_sha256=digest(frame))
    store.runs.commit_round(versions.a_round(run.run_id, 3, sent), {})
    store.model_versions.add("sums", "1", run.run_id, {})
    store.runs.finish_run(run.run_id, "completed", "done")
    store.model_versions.record_alias("sums", "champion", "1", "ada", "good")

    def looked(pointed: str | None) -> list[str]:
        watch = Watch(store, {"a": path})
        watch.at_the_end({}, RIG, {"sums": pointed})
        return watch.broken

    assert looked("1") == []
    assert any("champion" in what for what in looked("2")) and any("champion" in what for what in looked(None))
    lines = path.read_text().splitlines()
    path.write_text(lines[0].replace(digest(frame), "f" * 64) + "\n")
    said = " ".join(looked("1"))
    assert "never wrote down" in said and "ledger: a:" in said
    store.runs.create_run(run.plan)
    assert any("does not end" in what for what in looked("1"))
    assert any("were ordered" in what for what in looked("1"))


def test_faults_befall_a_real_server(tmp_path: Path) -> None:
    files, port = BusFiles(tmp_path / "bus"), free_port()
    prepare(files, host="127.0.0.1", port=port, host_names=["127.0.0.1"], site_keys={})
    server = start(files, host="127.0.0.1", port=port)
    try:
        assert b"nats-server" in command_line(server.pid) and server.pid in descendants(os.getpid())
        assert send(server.pid, signal.SIGSTOP)
        wait_until(lambda: stands(server.pid), "standstill")
        assert fill_disk(server.pid, True)
        limits = Path(f"/proc/{server.pid}/limits").read_text()
        assert next(line for line in limits.splitlines() if line.startswith("Max file size")).split()[3] == "1"
        assert fill_disk(server.pid, False) and send(server.pid, signal.SIGKILL)
        assert server.wait() == -signal.SIGKILL
        assert not send(server.pid, signal.SIGKILL) and command_line(server.pid) == b""
    finally:
        server.kill()
        server.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's word is Linux's")
def test_a_child_ends_with_whoever_started_it() -> None:
    script = (
        "import subprocess, sys, time\n"
        "from services.process.end_with_parent import end_with_parent\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], preexec_fn=end_with_parent,\n"
        "                         start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    assert end_with_parent.__module__ in script
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert command_line(child)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    try:
        wait_until(lambda: not command_line(child), "end of the child")
    finally:
        send(child, signal.SIGKILL)


def test_a_seed_gives_the_same_faults() -> None:
    first, again = schedule(7, 200, "postgresql"), schedule(7, 200, "postgresql")
    assert first == again and [fault.number for fault in first] == list(range(1, 201))
    assert schedule(8, 200, "postgresql") != first
    assert {fault.kind for fault in first} == {
        "kill", "stop", "kill everything", "disk full", "store locked", "false tasks", "false answers", "cancel"
    }
    assert {"kill postgresql", "stop postgresql"} <= {fault.name for fault in first}
    assert not [fault for fault in schedule(7, 200, "sqlite") if fault.target == "postgresql"]
    assert json.dumps([vars(fault) for fault in first])
