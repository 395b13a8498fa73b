"""Before an answer leaves: what it would isolate, whether the policy allows that, and the line in the record.

The order is: figures with the answer, policy, record (on the disk), and only then does the answer go on to the ledger.
After a crash in between the record holds an answer that never left, never the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from models.methods.row_account import RowAccount
from models.tuning.fold_guard import over_all
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.vault.dataset import Part
from services.site_agent.vault.isolation.factors import ANY_KIND
from services.site_agent.vault.isolation.guard import MOST_ABOVE, Choice, VaultGuard
from services.site_agent.vault.isolation.other_versions import row_numbers
from services.site_agent.vault.isolation.span import Figures
from services.site_agent.vault.records.exposure_record import RUNS_KEPT_DAYS, ExposureRecord
from services.site_agent.vault.records.told_models import ISOLATING, ISOLATING_IN_ALL, REFUSED
from services.site_agent.vault.records.version_exposure import Exposure, alike_rows, data_digest

_REFUSED_PART = "refused"  # of the record of what a run was told
_ISOLATING_PART = "isolating "  # the same, and the method
NOTHING = RowAccount()
"""Account of an answer without vectors: scalars and counts."""


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
        if self._record.told(self.digest(train), run_id, _REFUSED_PART) >= REFUSED:
            raise Refusal("budget_spent", f"{REFUSED} questions of this run were refused for a matter of the rows")
        since = self._clock().astimezone(UTC) - timedelta(days=1)
        spent = self._record.budget(self.digest(train), run_id, since.isoformat())
        most, runs = self._policy.max_answers_per_run, self._policy.max_runs_per_day
        if most is not None and spent.answers >= most:
            raise Refusal("budget_spent", f"{spent.answers} answers of this run have left already")
        if runs is not None and not spent.answers and spent.other_runs >= runs:
            raise Refusal("budget_spent", f"{spent.other_runs} runs began in the last 24 hours")

    def count_models(self, train: Part, run_id: str, part: str, models: Collection[bytes], most: int) -> None:
        """Raise :class:`Refusal` where a run would be told of more than ``most`` models, by digest, of a part.

        From here on the run is one of the day's, for a refusal that follows may say something of the rows too.
        """
        now = self._clock().astimezone(UTC).isoformat()
        if not self._record.count_models(self.digest(train), run_id, now, part, models, most):
            raise Refusal("question_refused", f"no honest run asks of more than {most} models: {part}")

    def note_refused(self, train: Part, run_id: str, question: bytes) -> None:
        """Write down that a question of a run was refused for what may be a matter of the rows."""
        now = self._clock().astimezone(UTC).isoformat()
        self._record.count_models(self.digest(train), run_id, now, _REFUSED_PART, [question], REFUSED)

    def secret(self, train: Part) -> bytes:
        """What is drawn by: of the vault and of the version of its rows."""
        return self._record.secret() + self.digest(train).encode()

    def check_isolating(self, train: Part, run_id: str, method: str) -> None:
        """Raise :class:`Refusal` where as many questions were refused as may be because they would isolate a row.

        Of the run, or with the method in all runs: then it is asked no more for vectors, whatever the question, until
        the rows change.
        """
        digest, part = self.digest(train), _ISOLATING_PART + method
        for what, told, most in (
            ("of this run", self._record.told(digest, run_id, part), ISOLATING),
            (f"with {method} about these rows", self._record.told_in_all(digest, part), ISOLATING_IN_ALL),
        ):
            if told >= most:
                raise Refusal("budget_spent", f"{told} questions {what} were refused, for each would isolate a row")

    def note_isolating(self, train: Part, run_id: str, method: str, question: bytes) -> None:
        """Write down that a question was refused because its answer would isolate a row."""
        now = self._clock().astimezone(UTC).isoformat()
        part = _ISOLATING_PART + method
        self._record.count_models(self.digest(train), run_id, now, part, [question], ISOLATING)

    def guard(
        self, train: Part, known: NDArray[np.bool_], *, kind: float = ANY_KIND, few: int = 1, on_sums: bool = False,
    ) -> VaultGuard:
        """What chooses the vectors of one answer; ``known`` and ``kind`` as in :meth:`admit`.

        ``few``: rows that no difference of two vectors is made of (``isolation.few_rows``). ``on_sums``: beside a cut
        that is not the exact one the risk is told above the exact one.
        """
        exposure = self._exposure(train)
        exposure.differences.kind, exposure.differences.few = kind, few
        return VaultGuard(
            exposure.differences, self.secret(train), lambda rows: _over_all(RowAccount((rows,)), known).rows[0],
            self._record.choice, exposure.left, most_above=MOST_ABOVE if on_sums else 0.0,
        )

    def admit(
        self, train: Part, known: NDArray[np.bool_], run_id: str, account: RowAccount,
        choices: Mapping[bytes, Choice] = MappingProxyType({}), kind: float = ANY_KIND,
    ) -> Figures:
        """Figures with this answer, which is in the record when this returns.

        ``known`` (N,) are the training rows that the task learns from, whose coefficients the account has; ``choices``
        those of the answer's :meth:`guard`, ``kind`` that of its vectors: of those of one kind nobody knows factors.

        Raises
        ------
        Refusal
            The answer would isolate more rows than the policy allows; nothing is recorded then.
        """
        exposure = self._exposure(train)
        exposure.differences.kind = kind
        before = exposure.counted()
        addition = exposure.add(_over_all(account, known))
        try:
            self._check(exposure.counted(), before, account.whole, len(train))
            now = self._clock().astimezone(UTC)
            old = now - timedelta(days=RUNS_KEPT_DAYS)
            self._record.add(exposure.digest, run_id, now.isoformat(), old.isoformat(), addition, choices)
        except Exception:
            self._kept = None  # what is in memory holds an answer that does not leave
            raise
        return addition.figures

    def figures(self, train: Part) -> Figures:
        """What the answers so far isolate of the rows."""
        return self._exposure(train).figures()

    def _check(self, after: tuple[int, int], before: tuple[int, int], whole: bool, n_rows: int) -> None:
        """An answer that isolates no further row may leave whatever the limits: refusing it would protect nothing.

        One that says more than its account has may isolate every row.
        """
        limits = self._policy.exposure_limit, self._policy.leverage_limit
        if not whole and not self._policy.allow_unaccounted and min(limits) < 1:
            raise Refusal(
                "exposure_limit",
                "what the answer says of single rows is not known, so all of them count, and the policy allows a share "
                f"of {min(limits):g}",
            )
        for what, count, earlier, limit in zip(
            ("differences of answers", "combinations of all answers"), after, before, limits, strict=True
        ):
            if count > earlier and count > limit * n_rows:
                raise Refusal(
                    "exposure_limit",
                    f"with this answer {what} would isolate {count} of {n_rows} rows, "
                    f"the policy allows a share of {limit:g}", isolating=True,
                )

    def _exposure(self, train: Part) -> Exposure:
        digest = self.digest(train)
        if self._kept is None or self._kept.digest != digest:
            alike = alike_rows(train.features)
            rows = self._record.rows(row_numbers(self._record.secret(), train.marks)[alike])
            stored = self._record.stored(digest, len(train))
            others, late = self._record.others(digest, rows), self._record.late()
            self._kept = Exposure(digest, len(train), stored, train.features, alike, rows, others, late)
        return self._kept

    def digest(self, train: Part) -> str:
        """As :func:`data_digest`, made once for the rows at hand."""
        if self._digest is None or self._digest[0] is not train:
            self._digest = (train, data_digest(train))
        return self._digest[1]


def _over_all(account: RowAccount, known: NDArray[np.bool_]) -> RowAccount:
    """The account over all training rows, of sums as one of folds is; 0 for those that the task does not learn from."""
    return account if known.all() else over_all(account, known)
