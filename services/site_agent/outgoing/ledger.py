"""Egress ledger: one line for each message that leaves the plant, chained by hashes, on the disk before it is sent.

A line is a JSON object; ``hash`` is the SHA-256 of the rest of it (sorted keys, no spaces), ``previous`` the hash of
the line before. Beside the ledger a head file keeps the count and the last hash, so that lines cut off at the end are
missed too. The order is: line to disk (fsync), head, send. After a crash, therefore, a last line without its end was
never sent and may be cut off; one whole line more than the head says may or may not have been sent and stays.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from services.contracts.wire.codec import digest
from services.contracts.wire.masking import MaskedWords, SealedOpenings
from services.contracts.wire.messages import Hello, SiteRefusal, SiteUpdate
from services.site_agent.outgoing.ledger_check import LedgerError, entries_of, entry_hash, head_path, read_sound
from services.site_agent.outgoing.one_agent import lock_for_one

OutboundMessage = SiteUpdate | SiteRefusal | Hello


def describe(message: OutboundMessage) -> dict[str, Any]:
    """What the ledger says of a message: its kind, run and round, the names and shapes of its arrays; no values.

    Of what goes under masks: what it is, and how many words; of openings, to whom.
    """
    arrays = message.arrays if isinstance(message, SiteUpdate) else {}
    entry: dict[str, Any] = {
        "message": message.type,
        "fields": sorted(arrays),
        "shapes": {name: list(array.shape) for name, array in arrays.items()},
    }
    if not isinstance(message, Hello):
        entry |= {"run": message.run_id, "round": message.round, "kind": message.kind}
    if isinstance(message, SiteUpdate) and message.masking is not None:
        entry["masking"] = {"message": type(message.masking).__name__}
        if isinstance(message.masking, MaskedWords):
            entry["masking"]["words"] = len(message.masking.words) // 8
        if isinstance(message.masking, SealedOpenings):
            entry["masking"]["auditor"] = message.masking.auditor
    if isinstance(message, SiteUpdate) and message.data_digest:
        entry["data_digest"] = message.data_digest
    if isinstance(message, SiteUpdate):
        figures = {"drift": message.drift, "exposed": message.exposed, "own_scores": message.own_scores}
        entry |= {name: value for name, value in figures.items() if value is not None}
    if isinstance(message, SiteRefusal):
        entry["code"] = message.code
    return entry


class Ledger:
    """The one writer of a ledger file. Holds a lock on it, so that a second agent of the same site cannot start."""

    def __init__(self, path: Path, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Open or begin the ledger, check it whole, and cut off a line that a crash left unfinished.

        ``LedgerError`` where another agent holds the ledger, it cannot be written, or it is not what was once written.
        """
        self._path = path
        self._clock = clock
        self._mutex = threading.Lock()
        self._failed = False
        self._descriptors = [lock_for_one(path, LedgerError, "the ledger")]
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        reading = read_sound(self._path)
        self._rounds = Counter(
            str(entry.get("run"))
            for entry in entries_of(self._path, reading.count)
            if entry.get("message") == "update" and entry.get("kind") == "round"
        )
        self._count, self._last_hash = reading.count, reading.last_hash
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            # The head first: an empty ledger without one is then never a crash's doing.
            self._head = self._opened(head_path(self._path), os.O_WRONLY | os.O_CREAT)
            self._file = self._opened(self._path, flags)
            if reading.unfinished_bytes:
                os.truncate(self._path, os.path.getsize(self._path) - reading.unfinished_bytes)
                os.fsync(self._file)
            self._write_head()
            _sync_folder(self._path.parent)
        except OSError as error:
            raise LedgerError(f"the ledger {self._path} cannot be written: {error.strerror}") from None

    def _opened(self, path: Path, flags: int) -> int:
        self._descriptors.append(os.open(path, flags, 0o600))
        return self._descriptors[-1]

    def rounds_answered(self, run_id: str) -> int:
        """How many rounds of a run have been answered, repeats too."""
        return self._rounds[run_id]

    def append(
        self, message: OutboundMessage, frame: bytes, exposure: Mapping[str, float] | None = None,
        peers: Mapping[str, str] | None = None,
    ) -> None:
        """Write a message down; when this returns, the line is on the disk and the frame may be sent.

        ``exposure`` are the figures of what the answers isolate with this one, ``peers`` the plants that masks are
        agreed on with, by their keys; lines without them are as before.
        ``LedgerError`` where the line could not be written: the frame must not be sent. The ledger takes no further
        line.
        """
        with self._mutex:
            if not self._descriptors:
                raise LedgerError(f"the ledger {self._path} is closed; nothing more leaves")
            if self._failed:
                raise LedgerError(f"the ledger {self._path} failed earlier; nothing more leaves")
            entry: dict[str, Any] = {
                "time": self._clock().astimezone(UTC).isoformat(),
                "sequence": self._count + 1,
                **describe(message),
                **({} if exposure is None else {"exposure": dict(exposure)}),
                **({} if peers is None else {"peers": dict(peers)}),
                "bytes": len(frame),
                "sha256": digest(frame),
                "previous": self._last_hash,
            }
            entry["hash"] = entry_hash(entry)
            self._write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")
            self._count += 1
            self._last_hash = entry["hash"]
            if isinstance(message, SiteUpdate) and message.kind == "round":
                self._rounds[message.run_id] += 1
            self._write_head()

    def _write(self, line: bytes) -> None:
        try:
            written = os.write(self._file, line)
            if written != len(line):
                raise OSError(0, "the disk took only a part of the line")
            os.fsync(self._file)
        except OSError as error:
            raise self._failure(self._path, error) from None

    def _write_head(self) -> None:
        """One small write in place: it either happened or not when the process dies."""
        try:
            os.pwrite(self._head, f"{self._count:020d} {self._last_hash}\n".encode(), 0)
        except OSError as error:
            raise self._failure(head_path(self._path), error) from None

    def _failure(self, path: Path, error: OSError) -> LedgerError:
        self._failed = True
        return LedgerError(f"{path} cannot be written: {error.strerror}; nothing was sent")

    def close(self) -> None:
        """Let go of the files and then of the lock. A second time does nothing: others may have the numbers by then."""
        with self._mutex:
            while self._descriptors:
                os.close(self._descriptors.pop())

    def __enter__(self) -> Self:
        """The ledger itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
