"""A plant's words of a round with noise: charged to its own account, and the same ones for the same masks."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from models.basics import ProblemError
from models.cohorts.fixed_point import Words
from models.cohorts.noise import METHOD, noisy_words
from models.problem import SiteProblem
from services.contracts.wire.codec import encode
from services.contracts.wire.masking import MaskingCohort
from services.contracts.wire.messages import Task
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.vault.dataset import Part
from services.site_agent.vault.records.noise_account import NoiseRecord
from services.site_agent.vault.records.version_rows import VersionRows

_RUNS_KEPT = 4  # as many as masks are kept of


class NoisyAnswers:
    """Words with noise in them. Not thread-safe.

    The same task over the same masks gets the same words, for a second draw of the noise over one answer would halve
    its variance. New masks get new noise, which is charged again: summed with other plants' the old words would show
    a plant's own.
    """

    def __init__(self, record: NoiseRecord, rows: VersionRows, policy: SitePolicy) -> None:
        self._record, self._rows, self._policy = record, rows, policy
        self._kept: OrderedDict[str, tuple[str, Words]] = OrderedDict()

    def words(
        self, task: Task, cohort: MaskingCohort, problems: Sequence[SiteProblem], digest: str, train: Part
    ) -> Words:
        """Words (K (2 + D),) of K heads, on the data of a digest, all rows ``train``; charged when this returns.

        Raises
        ------
        Refusal
            The noise hides too little of the rows, or the account's limit is reached; nothing is charged then.
        """
        asked = hashlib.sha256(f"{cohort.fingerprint} {digest} ".encode() + encode(task)).hexdigest()
        kept = self._kept.get(task.run_id)
        if kept is not None and kept[0] == asked:
            return kept[1]
        words = self._drawn(task, cohort, problems)
        self._charge(cohort, len(problems), digest, train)
        self._kept[task.run_id] = (asked, words)
        self._kept.move_to_end(task.run_id)
        if len(self._kept) > _RUNS_KEPT:
            self._kept.popitem(last=False)
        return words

    def _drawn(self, task: Task, cohort: MaskingCohort, problems: Sequence[SiteProblem]) -> Words:
        if task.method != METHOD or cohort.noise is None:
            raise Refusal("noise_refused", f"noise is for method {METHOD}, the task is of {task.method}")
        first = problems[0]
        wanted = (len(problems), first.features.shape[1] + int(first.spec.fit_intercept))
        points = task.arrays.get("point")
        if points is None or points.shape != wanted or not np.isfinite(points).all():
            raise Refusal("bad_task", f"a point {wanted} of finite numbers was due")
        share, terms = cohort.share(task.site_id), cohort.noise.terms
        try:
            return np.concatenate([
                noisy_words(problem, point, share, terms) for problem, point in zip(problems, points, strict=True)
            ])
        except ProblemError as error:
            raise Refusal("noise_refused", str(error)) from None

    def _charge(self, cohort: MaskingCohort, heads: int, digest: str, train: Part) -> None:
        assert cohort.noise is not None
        limit = math.inf if self._policy.noise_epsilon is None else self._policy.noise_epsilon
        shared = self._rows.shared(digest, train)
        self._rows.note(digest, train)
        try:
            self._record.charge(digest, cohort.noise.rho, heads, limit, self._policy.noise_delta, shared)
        except ProblemError as error:
            raise Refusal("noise_limit", str(error)) from None
