"""A NATS client that signs a server's challenge, and nothing else that the server would like to have signed.

With the key that opens the connection a site signs its answers, and the coordinator tasks and versions. A server proves
whose connection it is by a challenge to be signed: one that chose an answer, a statement or a version for its challenge
would get the signature of it. What NATS draws (15 characters of base 64) is signed here, and no text that any of our
signatures covers: these have braces, blanks, line ends or bytes that are no text.
"""

from __future__ import annotations

import re

from nats.aio.client import Client

_CHALLENGE = re.compile(r"[A-Za-z0-9+/_=-]{1,64}", re.ASCII)


class StrangeChallengeError(ConnectionError):
    """The server asks for a signature of what may be more than a challenge; nothing was signed."""


class NatsClient(Client):  # type: ignore[misc]  # the library says no types
    """The library's client, which shows the server no signature but of a challenge."""

    def _connect_command(self) -> bytes:
        challenge = self._server_info.get("nonce")
        if challenge is not None and not (isinstance(challenge, str) and _CHALLENGE.fullmatch(challenge)):
            raise StrangeChallengeError("the server asks for a signature of what is no challenge; nothing was signed")
        command: bytes = super()._connect_command()
        return command
