"""The line of champions of one model: what makes a rollback possible.

The alias ``champion`` is the truth, set in one write; the line is a note beside it. A process that dies between the two
writes leaves a line that is one step ahead or behind, and :func:`line_up_to` puts it right at the next reading.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

LONGEST = 100  # champions: more than anybody goes back through


def parse(text: str | None) -> tuple[str, ...]:
    """Line of champions from its tag, oldest first."""
    return tuple(part for part in (text or "").split(",") if part)


def render(line: Sequence[str]) -> str:
    """Tag of a line; the oldest are forgotten past :data:`LONGEST`."""
    return ",".join(line[-LONGEST:])


def line_up_to(line: Sequence[str], champion: str | None) -> tuple[str, ...]:
    """Line that ends with the champion that really is: cut after it, or with it added when it came from elsewhere."""
    if champion is None:
        return tuple(line)
    if champion not in line:
        return (*line, champion)
    last = len(line) - 1 - tuple(reversed(line)).index(champion)
    return tuple(line[: last + 1])


def promoted(line: Sequence[str], version: str) -> tuple[str, ...]:
    """Line after a promotion."""
    return tuple(line) if line and line[-1] == version else (*line, version)


def rolled_back(line: Sequence[str], existing: Container[str]) -> tuple[str, ...]:
    """Line after a rollback to the last champion before this one that still exists; empty when there is none."""
    champion = line[-1] if line else None
    for end in range(len(line) - 1, 0, -1):
        if line[end - 1] in existing and line[end - 1] != champion:
            return tuple(line[:end])
    return ()


def previous(line: Sequence[str], existing: Container[str]) -> str | None:
    """The champion that a rollback would go to; None where none before the present one still exists."""
    after = rolled_back(line, existing)
    return after[-1] if after else None
