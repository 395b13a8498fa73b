"""Hears the sites say hello and notes who is there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from services.contracts.codec import FrameError, unpack
from services.contracts.messages import Hello
from services.coordinator.nats_transport import NatsTransport

LOG = logging.getLogger("ballast.coordinator")
MAX_HELLO_BYTES = 4096  # a hello has some 200
KeyOf = Callable[[str], str | None]
Seen = Callable[[str, str], None]


async def hear_hellos(transport: NatsTransport, key_of: KeyOf, seen: Seen) -> None:
    """Begin to listen on ``hello.*``, for as long as the connection lives; a hello counts when its site signed it.

    ``key_of`` gives the public key of an active site (None for a stranger); ``seen`` takes site id and agent version.
    """

    async def hear(message: Any) -> None:
        site_id = message.subject.removeprefix("hello.")
        try:
            frame = unpack(message.data, MAX_HELLO_BYTES)
            hello = frame.message()
        except FrameError as error:
            LOG.warning("site %s said something that is not a hello: %s", site_id, error)
            return
        key = key_of(site_id)
        if not isinstance(hello, Hello) or hello.site_id != site_id or key is None:
            LOG.warning("a hello on the subject of site %s does not come from an active site of that name", site_id)
        elif not frame.is_signed_by(key):
            LOG.warning("the hello of site %s is not signed by its enrolled key", site_id)
        else:
            seen(site_id, hello.version)

    await transport.subscribe("hello.*", hear)
