"""Keeps the plant link's libraries from talking past us: what matters reaches our own callbacks and logs."""

from __future__ import annotations

import logging


def _is_worth_telling(record: logging.LogRecord) -> bool:
    # asyncio says this at every TLS connection that the other side ends; it means nothing.
    return "eof_received() has no effect" not in record.getMessage()


def silence_link_libraries() -> None:
    """Silence the NATS client's own traces (its errors come to ``error_cb``) and asyncio's remark on TLS."""
    logging.getLogger("nats").setLevel(logging.CRITICAL + 1)
    asyncio_log = logging.getLogger("asyncio")
    if _is_worth_telling not in asyncio_log.filters:
        asyncio_log.addFilter(_is_worth_telling)
