"""Signs tasks with the coordinator's key, and tells each site once how that key follows from former ones."""

from __future__ import annotations

from pathlib import Path

from services.contracts.errors import BallastError
from services.contracts.keys.key_chain import FILE, KeyStatement, read_statements, up_to
from services.contracts.keys.signing import public_key, signer
from services.contracts.wire.task_signature import LINE, LONGEST_LINE, SIGNATURE, covered, written


class TaskSigner:
    """The key of a connection. The line of keys lies beside its file (``oem-keys.json``), where it was ever changed.

    ``BallastError`` where the key, or that line, cannot be read.
    """

    def __init__(self, seed_file: Path) -> None:
        self._sign = signer(seed_file)
        self._line = _line(seed_file)
        self._knowing: set[str] = set()

    def headers(self, site_id: str, frame: bytes) -> dict[str, str]:
        """What stands beside a task: its signature, and the line until the site has heard it."""
        found = {SIGNATURE: written(self._sign(covered(frame)))}
        return found | ({LINE: self._line} if self._line and site_id not in self._knowing else {})

    def answered(self, site_id: str) -> None:
        """The site has had a task of this key, and the line with it."""
        self._knowing.add(site_id)


def _line(seed_file: Path) -> str:
    """The statements up to the key in the file, on one line; those since a stolen one where all are too many."""
    try:
        text = seed_file.with_name(FILE).read_bytes()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise BallastError(f"{seed_file.with_name(FILE)} cannot be read: {error.strerror}") from None
    known = up_to(public_key(seed_file), read_statements(text))
    return _short(known) or _short(_since_a_stolen_one(known))


def _short(statements: tuple[KeyStatement, ...]) -> str:
    """The header's text; empty where it has none, or too many."""
    text = "[" + ",".join(each.model_dump_json() for each in statements) + "]"
    return text if statements and len(text) <= LONGEST_LINE else ""


def _since_a_stolen_one(statements: tuple[KeyStatement, ...]) -> tuple[KeyStatement, ...]:
    last = max((place for place, each in enumerate(statements) if each.stolen), default=-1)
    return statements[last + 1 :]
