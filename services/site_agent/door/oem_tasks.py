"""Whether a task is the OEM's: its signature, by the key that the site's settings name or by one that follows from it.

The server that carries tasks is the OEM's, but whoever else comes to have it can carry what he likes: no task of his
is looked at. The line of the OEM's keys comes with the tasks, and is kept: a change that was heard once is not undone
by one who says nothing of it, nor by another that the former key signs.

A stolen key signs nothing any more, and the one that follows it does. A thief could name a successor too, but needs
the server to have it heard, and has then what the stolen key gave him; a version outlives that, and is not believed on
such a word (``services.contracts.keys.key_chain``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from services.contracts.errors import BallastError
from services.contracts.keys.key_chain import KeyStatement, read_statements, write_statements
from services.contracts.keys.signing import verify
from services.contracts.wire.task_signature import LINE, LONGEST_LINE, covered, signature_in
from services.process.private_files import write_whole
from services.site_agent.logs import PRIVATE
from services.site_agent.rules.heard_keys import heard_line
from services.site_agent.rules.policy import Refusal

GRACE: Final = timedelta(minutes=5)
"""After a former key's end: clocks differ, and who still signs with it is cut off by the server a moment later."""


class OemTasks:
    """Holds tasks against the OEM's ``key``; ``file`` keeps the line of keys that was heard.

    :class:`SettingsError` as :func:`heard_line`.
    """

    def __init__(self, key: str, file: Path) -> None:
        self._key, self._file, self._heard = key, file, ""
        self._line = _forward(key, heard_line(file))

    def check(self, frame: bytes, headers: Mapping[str, str] | None) -> None:
        """:class:`Refusal` of a task that is not the OEM's."""
        self._hear((headers or {}).get(LINE, ""))
        signature, keys = signature_in(headers), self._trusted()
        if not verify(" ".join(keys), covered(frame), signature):
            said = "by none of them" if signature else "not at all"
            raise Refusal("task_not_signed", f"the OEM's keys are {', '.join(keys)}, and the task is signed {said}")

    def _trusted(self) -> list[str]:
        """Keys that may sign now: the present one, and those before it, down to the own one, until their ends."""
        now = datetime.now(UTC) - GRACE
        former = [each.former for each in self._line if not each.stolen and now < each.former_until]
        return [*former, self._line[-1].next if self._line else self._key]

    def _hear(self, text: str) -> None:
        """Take in and keep where the line leads from the own key on."""
        if not text or text == self._heard or len(text) > LONGEST_LINE:
            return
        self._heard = text
        try:
            line = _forward(self._key, (*read_statements(text), *self._line))
        except BallastError as error:
            PRIVATE.warning("the line of the OEM's keys was not taken: %s", error)
            return
        if line == self._line:
            return
        self._line = line
        try:
            write_whole(self._file, write_statements(line).encode())
        except OSError as error:  # it is heard again after the next start
            PRIVATE.warning("the line of the OEM's keys could not be kept in %s: %s", self._file, error.strerror)


def _forward(key: str, statements: Iterable[KeyStatement]) -> tuple[KeyStatement, ...]:
    """Statements that lead from the key on; of two about the same key the last of ``statements``.

    Not back: who holds a key that has come to its end could state that it followed one of his own.
    """
    after, found = {each.former: each for each in statements}, list[KeyStatement]()
    while (change := after.pop(key, None)) is not None:
        found.append(change)
        key = change.next
    return tuple(found)
