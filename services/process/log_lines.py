"""Log lines of every process: for people, or one JSON object a line that says of which run, site and round it speaks.

The level is that of Ballast's own loggers. Libraries keep to warnings: their details may name what they were given to
open something with.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

ABOUT: Final = ("run_id", "site_id", "round")
"""Fields that a line has where they are known; ``extra`` of a call names them too."""
TEXT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
_ABOUT: ContextVar[Mapping[str, Any] | None] = ContextVar("ballast_log_about", default=None)


class LoggingSettings(BaseModel):
    """How lines look, and which there are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"


@contextmanager
def about(**fields: Any) -> Iterator[None]:
    """Lines that are written inside, in this task or thread, are about this run, site or round."""
    token = _ABOUT.set({**(_ABOUT.get() or {}), **fields})
    try:
        yield
    finally:
        _ABOUT.reset(token)


class JsonLines(logging.Formatter):
    """One JSON object a line: ``time`` (UTC), ``level``, ``logger``, ``message``, what it is about, and ``error``."""

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        """The record on one line."""
        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage(),
        }
        known = {**self._fields, **(_ABOUT.get() or {})}
        for name in ABOUT:
            value = getattr(record, name, known.get(name))
            if value is not None:
                said[name] = value
        if record.exc_info and record.exc_info[0] is not None:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str, ensure_ascii=False)


def formatter(wanted: LoggingSettings, text: logging.Formatter, **fields: Any) -> logging.Formatter:
    """Formatter of the wanted format; ``text`` is the one for people."""
    return JsonLines(**fields) if wanted.format == "json" else text


def set_up_logs(wanted: LoggingSettings) -> None:
    """Let this process's lines go to its standard error in the wanted format; once its libraries are there.

    In JSON the lines that libraries print (uvicorn, Prefect) are JSON too.
    """
    root = logging.getLogger()
    own = [handler for handler in root.handlers if getattr(handler, "is_ballast", False)]
    if not own:
        handler = logging.StreamHandler()
        handler.is_ballast = True  # type: ignore[attr-defined]
        root.handlers[:] = [handler]
        own = [handler]
    own[0].setFormatter(formatter(wanted, logging.Formatter(TEXT)))
    root.setLevel(logging.WARNING)
    logging.getLogger("ballast").setLevel(wanted.level.upper())
    if wanted.format == "json":
        for logger in list(logging.Logger.manager.loggerDict.values()):
            for handler in getattr(logger, "handlers", ()):
                if isinstance(handler, logging.StreamHandler) and not isinstance(handler, logging.FileHandler):
                    handler.setFormatter(JsonLines())
