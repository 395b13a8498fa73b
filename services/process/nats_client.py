"""A NATS client that shows its key to no stranger, and signs a server's challenge and nothing else.

With the key that opens the connection a site signs its answers, and the coordinator tasks and versions. A server proves
whose connection it is by a challenge to be signed: one that chose an answer, a statement or a version for its challenge
would get the signature of it. What NATS draws (15 characters of base 64) is signed here, and no text that any of our
signatures covers: these have braces, blanks, line ends or bytes that are no text.

A server's first line comes before TLS, and says whether there is to be any. Who stands in the way can say no, and have
the challenge of the true server signed for a connection of his own: the library would sign it, and go on in the open.
"""

from __future__ import annotations

import re

from nats.aio.client import Client

_CHALLENGE = re.compile(r"[A-Za-z0-9+/_=-]{1,64}", re.ASCII)


class StrangeServerError(ConnectionError):
    """What answers is not to be shown the key; nothing was signed."""


class OpenConnectionError(StrangeServerError):
    """The connection was to be encrypted, and is not."""


class NatsClient(Client):  # type: ignore[misc]  # the library says no types
    """The library's client, which signs no more than a challenge, and over TLS alone where it is given a context."""

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection runs over TLS."""
        writer = getattr(self._transport, "_io_writer", None) or getattr(self._transport, "_ws", None)
        return writer is not None and writer.get_extra_info("ssl_object") is not None

    def _connect_command(self) -> bytes:
        if self.options.get("tls") is not None and not self.is_encrypted:
            raise OpenConnectionError("the server does not speak TLS; nothing was sent over the open connection")
        challenge = self._server_info.get("nonce")
        if challenge is not None and not (isinstance(challenge, str) and _CHALLENGE.fullmatch(challenge)):
            raise StrangeServerError("the server asks for a signature of what is no challenge; nothing was signed")
        command: bytes = super()._connect_command()
        return command
