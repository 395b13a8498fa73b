"""The error of data that cannot be used."""

from __future__ import annotations

from services.contracts.errors import BallastError
from services.contracts.wire.messages import RefusalCode


class VaultError(BallastError):
    """The site's data cannot be used. The text names columns, rows and units and stays in the plant."""

    def __init__(self, message: str, code: RefusalCode = "bad_data") -> None:
        super().__init__(message, code=code)
        self.refusal_code: RefusalCode = code
