"""What must hold at every moment of every works, and what must hold at its end.

After a step in which something was committed: rounds follow one another and never change, an ended run stays as it
ended, the trail never gets shorter, who commits a round holds its lease, no answer of a revoked key is in it, and a
cancelled run commits one round more at most. Whenever something leaves a plant it stands in the plant's ledger, and
whenever masks come off the sum is that of the members it names. At the end the rest (:mod:`tests.simulation.endings`).
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

from services.contracts.wire.codec import FrameError, digest, unpack
from tests.simulation.endings import at_the_end
from tests.simulation.processes import Process
from tests.simulation.steps import Steps
from tests.simulation.sums import Sums

if TYPE_CHECKING:
    from tests.simulation.works import Works

FRESH_SECONDS = 0.6
"""A key that was taken away counts for half a second more (``flows.live_keys``), and the network for a moment."""
FINAL = ("completed", "failed", "cancelled")


class Invariants:
    """Looks at one works."""

    def __init__(self, works: Works) -> None:
        self.works, self.world = works, works.world
        self.base = sqlite3.connect(works.store_file, isolation_level=None)
        self.frames: dict[str, tuple[bytes, list[float]]] = {}
        self.ends: list[str] = []
        self._rounds: dict[tuple[str, int], str] = {}
        self._ended: dict[str, tuple[str, str]] = {}
        self._cancelled: dict[str, int] = {}
        self._trail = 0
        self._committers: list[Process] = []
        self._revoked: list[tuple[str, str, float]] = []
        self._counted: set[tuple[str, str, int]] = set()
        self._ledgers: dict[str, tuple[int, set[str]]] = {}
        self.sums, self.steps = Sums(self.world), Steps()
        works.bus.sent = self.left
        works.bus.arrived = self.arrived

    @property
    def rounds(self) -> int:
        """Rounds that were committed."""
        return len(self._rounds)

    def close(self) -> None:
        """Let go of the store."""
        self.base.close()

    def committed(self, process: Process) -> None:
        """A process has committed something."""
        self._committers.append(process)

    def arrived(self, frame: bytes) -> None:
        """An answer has reached the coordinator."""
        self.frames.setdefault(digest(frame), (frame, []))[1].append(self.world.loop.time())

    def left(self, site: str, frame: bytes) -> None:
        """A frame leaves a plant: it must stand in the ledger by now."""
        if site == self.works.scenario.liar:
            return  # what it sends is not what went through its door
        path = self.works.plants[site].ledger
        size, known = self._ledgers.get(site, (0, set()))
        with path.open("rb") as file:
            file.seek(size)
            for line in file.read().split(b"\n"):
                try:
                    known.add(json.loads(line)["sha256"])
                except (ValueError, KeyError, TypeError):
                    continue  # a line that was torn
        self._ledgers[site] = (max(0, path.stat().st_size - 2000), known)
        if digest(frame) not in known:
            self.world.breach(f"ledger: {site} sent what does not stand in its ledger")
        forced = self.works.ledger_os.forced.get(str(path), 0)
        if forced < path.stat().st_size:
            self.world.breach(f"ledger: {site} sent before the line was on the disk")

    def revoked(self, site: str, key: str, grace: float) -> None:
        """A key ("": every key of the site) holds no longer than so many seconds."""
        self._revoked.append((site, key, self.world.loop.time() + grace))

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so much: a key whose end is a moment of that clock holds so much longer."""
        self._revoked = [(site, key, since + seconds if key else since) for site, key, since in self._revoked]

    def restored(self, site: str) -> None:
        """The site may take part again."""
        self._revoked = [each for each in self._revoked if each[0] != site or each[1]]

    def unfinished(self) -> list[str]:
        """Runs that have not ended."""
        found = self.base.execute("SELECT run_id FROM runs WHERE status IN ('pending', 'running')")
        return [run_id for (run_id,) in found]

    def after_step(self) -> None:
        """Whatever a step may have broken."""
        if not self._committers:
            return
        committers, self._committers = self._committers, []
        self._check_runs()
        self._check_rounds(committers)
        (number,) = self.base.execute("SELECT number FROM audit_head").fetchone()
        if number < self._trail:
            self.world.breach(f"audit: the trail got shorter, {self._trail} to {number}")
        self._trail = number

    def at_the_end(self) -> None:
        """Whatever the whole may have broken."""
        self.after_step()
        self.ends = at_the_end(self.works, self.frames)

    def _check_runs(self) -> None:
        found = self.base.execute(
            "SELECT run_id, status, reason, rounds, cancel_requested, "
            "(SELECT count(*) FROM rounds WHERE rounds.run_id = runs.run_id) FROM runs"
        )
        for run_id, status, reason, rounds, cancel, count in found.fetchall():
            if rounds != count:
                self.world.breach(f"rounds: run {run_id[:8]} counts {rounds} rounds, {count} stand there")
            before = self._ended.get(run_id)
            if before is not None and before != (status, reason):
                self.world.breach(f"runs: {run_id[:8]} had ended {before}, and is {status} ({reason})")
            if status in FINAL:
                self._ended[run_id] = (status, reason)
                if not reason.strip():
                    self.world.breach(f"runs: {run_id[:8]} ended {status} without a reason")
            if cancel:
                at = self._cancelled.setdefault(run_id, rounds)
                if rounds > at + 1:
                    self.world.breach(f"cancel: run {run_id[:8]} went on for {rounds - at} rounds")

    def _check_rounds(self, committers: list[Process]) -> None:
        rows = self.base.execute("SELECT * FROM rounds ORDER BY run_id, round")
        places = [each[0] for each in rows.description]
        seen: dict[tuple[str, int], str] = {}
        for row in rows.fetchall():
            record = dict(zip(places, row, strict=True))
            seen[record["run_id"], record["round"]] = repr(row)
        for at, was in self._rounds.items():
            if seen.get(at) != was:
                self.world.breach(f"rounds: round {at[1]} of run {at[0][:8]} was committed, and is gone or another")
        for at in seen.keys() - self._rounds.keys():
            if at[1] > 1 and (at[0], at[1] - 1) not in seen:
                self.world.breach(f"rounds: round {at[1]} of run {at[0][:8]} stands there without the one before it")
            self._check_answers(*at)
            self._check_lease(at[0], committers)
        self._rounds = seen

    def _check_answers(self, run_id: str, number: int) -> None:
        """No answer that came after its key was taken away counts, and none but whole signed ones."""
        accepted = self.base.execute(
            "SELECT site_id, payload_sha256, question FROM site_updates "
            "WHERE run_id = ? AND round = ? AND status = 'accepted'", (run_id, number),
        )
        for site, sha256, late in accepted.fetchall():
            question = late or number
            if (run_id, site, question) in self._counted:
                self.world.breach(f"answers: round {number} counts the answer of {site} to question {question} again")
            self._counted.add((run_id, site, question))
            if sha256 not in self.frames:
                self.world.breach(f"answers: round {number} counts an answer of {site} that never arrived")
                continue
            frame, times = self.frames[sha256]
            where = f"round {number} counts an answer of {site}"
            try:
                parsed = unpack(frame)
                header = parsed.header
            except FrameError:
                self.world.breach(f"answers: {where} that is no frame")
                continue
            said = (header.get("site_id"), header.get("run_id"), header.get("round"), header.get("kind"))
            if said != (site, run_id, question, "round"):
                self.world.breach(f"answers: {where} that is to {said}")
            if not any(parsed.is_signed_by(key) for key in self.works.plants[site].keys):
                self.world.breach(f"answers: {where} that it never signed")
            for gone, key, since in self._revoked:
                came_later = all(time > since + FRESH_SECONDS for time in times)
                if gone == site and came_later and (not key or parsed.is_signed_by(key)):
                    self.world.breach(f"revoked: {where}, whose key was taken away")

    def _check_lease(self, run_id: str, committers: list[Process]) -> None:
        """Who commits holds the lease; where clocks jump or processes stand still nobody can know in time."""
        if self.works.scenario.clock_or_pause:
            return
        wanted = "SELECT lease_owner, status FROM runs WHERE run_id = ?"
        owner, status = self.base.execute(wanted, (run_id,)).fetchone()
        if status in FINAL:
            return  # it ended in the same step
        drivers = [each for each in committers if each.name.startswith("flow-")]
        if drivers and all(each.owner != owner for each in drivers):
            self.world.breach(f"lease: {drivers[0].name} committed a round of a run that {owner or 'nobody'} drives")
