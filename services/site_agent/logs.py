"""Two loggers: one for console and file, one for details of the data, which go to the site's own file alone."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final, cast

from services.process.log_lines import LoggingSettings, formatter
from services.process.private_files import private_opener
from services.site_agent.settings import SettingsError

LOG = logging.getLogger("ballast.site")
PRIVATE = logging.getLogger("ballast.site.private")
"""For what may name rows, labels or values: never reaches the console, which others may collect."""

MOST_BYTES: Final = 16 * 1024 * 1024
"""Of the site's file: years of an agent that goes on undisturbed."""

PRIVATE.propagate = False
PRIVATE.addHandler(logging.NullHandler())


@contextmanager
def open_logs(path: Path, site_id: str, wanted: LoggingSettings | None = None) -> Iterator[None]:
    """Write both loggers to the site's log (mode 0600), and the first one to the console as well.

    :class:`SettingsError` where the log cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _OwnFile(path, encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"the log {path} cannot be written: {error.strerror}") from None
    wanted = wanted or LoggingSettings()
    in_file = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    on_console = logging.Formatter(f"%(asctime)s {site_id}: %(message)s", datefmt="%H:%M:%S")
    file.setFormatter(formatter(wanted, in_file, site_id=site_id))
    console = logging.StreamHandler()
    console.setFormatter(formatter(wanted, on_console, site_id=site_id))
    LOG.setLevel(wanted.level.upper())
    PRIVATE.setLevel(wanted.level.upper())
    pairs = ((LOG, file), (LOG, console), (PRIVATE, file))
    for logger, handler in pairs:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, handler in pairs:
            logger.removeHandler(handler)
        with suppress(OSError):  # what the disk did not take was told of
            file.close()


class _OwnFile(RotatingFileHandler):
    """The site's file, and beside it, as ``.1``, the one before.

    Of a line that it does not take, as on a full disk, the console is told that there was one. The library would print
    line and arguments there.
    """

    def __init__(self, path: Path, encoding: str) -> None:
        super().__init__(path, encoding=encoding, maxBytes=MOST_BYTES, backupCount=1)
        self._lost = self._told = False

    def _open(self) -> TextIOWrapper:
        opened = open(self.baseFilename, self.mode, encoding=self.encoding, opener=private_opener)  # noqa: SIM115 - closed with it
        return cast(TextIOWrapper, opened)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; once lines are taken again, the next loss is told anew."""
        self._lost = False
        super().emit(record)
        self._told = self._told and self._lost

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """Say once that lines are lost."""
        self._lost, told, self._told = True, self._told, True
        error = sys.exc_info()[1]
        if not told:
            why = error.strerror if isinstance(error, OSError) else type(error).__name__
            LOG.warning("the log %s cannot be written, and its lines are lost: %s", self.baseFilename, why)
