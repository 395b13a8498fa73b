"""The one way out of the plant: sign, write down, release."""

from __future__ import annotations

from collections.abc import Mapping

from services.contracts.errors import BallastError
from services.contracts.wire.codec import Signer, encode
from services.site_agent.outgoing.ledger import Ledger, OutboundMessage


class TooLargeError(BallastError):
    """A message is over the policy's limit and was not released."""

    code = "message_too_large"


class Egress:
    """Turns a message into the bytes to send, after it stands in the ledger."""

    def __init__(self, ledger: Ledger, sign: Signer, max_bytes: int) -> None:
        self._ledger = ledger
        self._sign = sign
        self._max_bytes = max_bytes

    def release(
        self, message: OutboundMessage, exposure: Mapping[str, float] | None = None,
        peers: Mapping[str, str] | None = None, *, reads_compact: bool = False,
    ) -> bytes:
        """Signed frame of a message that is in the ledger, on the disk, ``exposure`` and ``peers`` beside it.

        ``reads_compact``: who gets it reads the compact form.

        ``TooLargeError`` where the frame is over the policy's limit, ``LedgerError`` where the ledger could not take
        the line.
        """
        frame = encode(message, self._sign, reads_compact=reads_compact)
        if len(frame) > self._max_bytes:
            raise TooLargeError(f"{message.type} of {len(frame)} bytes, the policy allows {self._max_bytes}")
        self._ledger.append(message, frame, exposure, peers)
        return frame

    def rounds_answered(self, run_id: str) -> int:
        """How many rounds of a run have left already."""
        return self._ledger.rounds_answered(run_id)
