"""Before an answer leaves: what it would isolate, whether the policy allows that, and the line in the record.

The order is: figures with the answer, policy, record (on the disk), and only then does the answer go on to the ledger.
After a crash in between the record holds an answer that never left, never the other way round.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.methods.row_account import RowAccount
from services.site_agent.policy import Refusal, SitePolicy
from services.site_agent.vault.dataset import Part
from services.site_agent.vault.exposure import Differences, Figures, Span, leveraged_rows
from services.site_agent.vault.exposure_record import (
    RUNS_KEPT_DAYS,
    Addition,
    ExposureRecord,
    Stored,
    directions_kept,
)

NOTHING = RowAccount()
"""Account of an answer without vectors: scalars and counts."""


def data_digest(train: Part) -> str:
    """SHA-256 of the training rows: features, classes and targets."""
    found = hashlib.sha256()
    for array in (train.features, train.classes, train.targets):
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


class Exposure:
    """What has been said of one version of the data, in memory."""

    def __init__(self, digest: str, n_rows: int, stored: Stored) -> None:
        seed = int(digest[:16], 16)
        self.digest, self._n_rows = digest, n_rows
        self._differences = Differences(n_rows, seed, stored.sketches, set(stored.pairs), set(stored.differences))
        self._span = Span(n_rows, stored.directions, directions_kept(n_rows), full=stored.span_full)
        self._unaccounted, self._vectors = stored.unaccounted, stored.vectors

    def figures(self) -> Figures:
        """The figures as they stand."""
        leverage = self._span.leverage
        return Figures(
            self._n_rows, len(self._differences.pairs), len(self._differences.differences),
            round(float(leverage.max()), 6), int(leveraged_rows(leverage).sum()), self._vectors, self._unaccounted,
        )

    def add(self, account: RowAccount) -> Addition:
        """Take in an answer."""
        sketches: list[FloatArray] = []
        directions: list[FloatArray] = []
        for rows in account.rows:
            sketch = self._differences.sketch(rows)
            if self._differences.knows(sketch):
                continue
            self._differences.add(sketch)
            sketches.append(sketch)
            direction = self._span.add(rows)
            directions += [] if direction is None else [direction]
        self._vectors += len(sketches)
        self._unaccounted += not account.whole
        pairs, differences = self._differences.pairs, self._differences.differences
        return Addition(tuple(sketches), tuple(directions), pairs, differences, self.figures(), self._span.full)


class ExposureGate:
    """Holds answers to the policy's limits and keeps the record. Not thread-safe."""

    def __init__(
        self, record: ExposureRecord, policy: SitePolicy, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._record = record
        self._policy = policy
        self._clock = clock
        self._kept: Exposure | None = None
        self._digest: tuple[Part, str] | None = None

    def check_budget(self, train: Part, run_id: str) -> None:
        """Raise :class:`Refusal` where the answers of the run, or the runs of the last 24 hours, are used up."""
        since = self._clock().astimezone(UTC) - timedelta(days=1)
        spent = self._record.budget(self._digest_of(train), run_id, since.isoformat())
        most, runs = self._policy.max_answers_per_run, self._policy.max_runs_per_day
        if most is not None and spent.answers >= most:
            raise Refusal("budget_spent", f"{spent.answers} answers of this run have left already")
        if runs is not None and not spent.answers and spent.other_runs >= runs:
            raise Refusal("budget_spent", f"{spent.other_runs} runs began in the last 24 hours")

    def admit(self, train: Part, known: NDArray[np.bool_], run_id: str, account: RowAccount) -> Figures:
        """Figures with this answer, which is in the record when this returns.

        ``known`` (N,) are the training rows that the task learns from, whose coefficients the account has.

        Raises
        ------
        Refusal
            The answer would isolate more rows than the policy allows; nothing is recorded then.
        """
        exposure = self._exposure(train)
        before = exposure.figures()
        addition = exposure.add(_over_all(account, known))
        try:
            self._check(addition.figures, before)
            now = self._clock().astimezone(UTC)
            old = now - timedelta(days=RUNS_KEPT_DAYS)
            self._record.add(exposure.digest, run_id, now.isoformat(), old.isoformat(), addition)
        except Exception:
            self._kept = None  # what is in memory holds an answer that does not leave
            raise
        return addition.figures

    def _check(self, after: Figures, before: Figures) -> None:
        """An answer that isolates no further row may leave whatever the limits: refusing it would protect nothing."""
        for what, count, earlier, limit in (
            ("differences of answers", after.by_differences, before.by_differences, self._policy.exposure_limit),
            ("combinations of all answers", after.leveraged, before.leveraged, self._policy.leverage_limit),
        ):
            if count > earlier and count > limit * after.rows:
                raise Refusal(
                    "exposure_limit",
                    f"with this answer {what} would isolate {count} of {after.rows} rows, "
                    f"the policy allows a share of {limit:g}",
                )

    def _exposure(self, train: Part) -> Exposure:
        digest = self._digest_of(train)
        if self._kept is None or self._kept.digest != digest:
            self._kept = Exposure(digest, len(train), self._record.stored(digest, len(train)))
        return self._kept

    def _digest_of(self, train: Part) -> str:
        if self._digest is None or self._digest[0] is not train:
            self._digest = (train, data_digest(train))
        return self._digest[1]


def _over_all(account: RowAccount, known: NDArray[np.bool_]) -> RowAccount:
    """The account over all training rows, 0 for those that the task does not learn from."""
    if known.all():
        return account
    spread = np.zeros((len(account.rows), known.shape[0]))
    if account.rows:
        spread[:, known] = np.stack(account.rows)
    return RowAccount(tuple(spread), account.whole)
