"""A stream of measurements diagnosed inside the plant: a line of NDJSON in, a line of JSON out; nothing is sent.

Each line is answered as it comes, also from a pipe that stays open. One that does not fit is answered by its error, and
the others go on. The last line says that the stream is whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from services.contracts.errors import InvalidInputError
from services.contracts.versions.model_version import ModelVersion
from services.process.command_line import standard_input
from services.site_agent.own_use.local_predictor import answers, check_coverage
from services.site_agent.settings import CsvSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.json_line import LONGEST_LINE, scaled_line

STANDARD_INPUT = Path("-")
_SUFFIXES = (".ndjson", ".jsonl")


def is_stream(path: Path, asked: bool) -> bool:
    """Whether an input is NDJSON: where that is asked for, the name ends so, or it is the standard input."""
    return asked or path == STANDARD_INPUT or path.suffix.lower() in _SUFFIXES


@contextmanager
def opened_lines(path: Path) -> Iterator[Iterator[bytes]]:
    """Lines of a file, or of the standard input for ``-``; ``InvalidInputError`` where it cannot be opened."""
    if path == STANDARD_INPUT:
        yield _lines(standard_input().buffer)
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    with file:
        yield _lines(file)


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Lines, of which no more is held than tells that one is too long."""
    while line := file.readline(LONGEST_LINE + 2):
        if not line.endswith(b"\n") and len(line) > LONGEST_LINE:
            while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
        yield line.rstrip(b"\r\n")


def diagnose_lines(
    version: ModelVersion, lines: Iterable[bytes], source: CsvSource, coverage: float | None = None
) -> Iterator[dict[str, Any]]:
    """Answers in the order of the lines, by their numbers from 1; empty lines are passed over. At last the counts.

    ``clipped`` and ``imputed`` of an answer name readings out of their range, and optional ones that the line has not.

    Raises
    ------
    InvalidInputError, ConflictError
        The coverage cannot be had of this version, see :func:`services.site_agent.own_use.local_predictor.diagnose`.
    """
    check_coverage(version, coverage)
    number = answered = refused = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            measured = scaled_line(line, f"line {number}", source, version.asset_type)
        except VaultError as error:
            refused += 1
            yield {"line": number, "error": str(error)}
            continue
        (found,) = answers(version, measured.features, coverage)
        answered += 1
        yield {"line": number, **found, "clipped": list(measured.clipped), "imputed": list(measured.absent)}
    yield {"end": True, "lines": number, "answered": answered, "refused": refused, "model": version.name}
