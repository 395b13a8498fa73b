"""What the endpoints of runs give."""

from __future__ import annotations

from services.contracts.base import Contract
from services.contracts.run import RoundRecord, Run


class Runs(Contract):
    """Runs, newest first."""

    runs: tuple[Run, ...]


class Rounds(Contract):
    """Rounds of a run, in order."""

    rounds: tuple[RoundRecord, ...]
