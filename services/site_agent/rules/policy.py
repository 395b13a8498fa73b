"""What this site lets out. The site owns the policy; what it does not list is not allowed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Self

from pydantic import Field

from services.contracts.base import Contract, Slug
from services.contracts.errors import BallastError
from services.contracts.reading import read_toml
from services.contracts.wire.masking import LEAST_MEMBERS, MaskingCohort
from services.contracts.wire.messages import Kind, RefusalCode, Reveal, Task
from services.site_agent.settings import SettingsError

_LEAST_SHARE = 1e-3
"""A plant with less counts for nothing in a sum: the others' part would show nearly alone."""
_LEAST_OF_OWN = 1e-2
"""Of the site's own share; where the others have less, the sum is the site's own answer to as many digits."""

REASONS: dict[RefusalCode, str] = {
    "method_not_allowed": "the site's policy does not allow this method",
    "asset_type_not_allowed": "the site's policy does not allow this asset type, or the site has no such machine",
    "message_not_allowed": "the site's policy does not allow this message, or no more of them in this run",
    "message_too_large": "the message is larger than the site's policy allows",
    "too_few_samples": "the site has fewer samples than its policy asks for",
    "one_class_only": "the site's training part holds one class only",
    "no_labels": "the site has no classes, or no values of the target, for what is asked",
    "no_data": "the site has no data at present",
    "bad_data": "the site's data do not fit the feature contract; the site's own log says where",
    "contract_mismatch": (
        "the site's asset type is another version than the task's (at the OEM `ballast asset-type show` prints the "
        "newest), or the lift that it draws differs"
    ),
    "wrong_site": "the task is addressed to another site",
    "bad_task": "the task cannot be read or has no meaning",
    "exposure_limit": (
        "with this answer the site's answers would isolate more of its rows than its policy allows, or tell them under "
        "more numbers of lifts: take the lift of an earlier run, or one with fewer components or segments; a policy "
        "with allow_unaccounted = false answers under no lift, nor what else it cannot count"
    ),
    "budget_spent": "the site's policy allows no more answers in this run, or no more runs today, on the same data",
    "question_refused": "no honest run asks this: it is too steep for the problem, or next to an earlier question",
    "mode_not_allowed": (
        "the site's policy does not allow what the run reveals of its answers, or they cannot be summed with the method"
    ),
    "cohort_not_allowed": "the site's policy does not allow this cohort: its size, its plants, their keys or shares",
    "auditor_not_allowed": "the site's policy does not list the auditor that the plan names, or the message open",
    "masks_missing": "the site holds no masks for this: agree on keys anew",
    "masks_refused": "the masks were neither made nor taken off: something is wrong, or an answer would show",
    "noise_limit": "with this answer the site would tell more of a row than its policy allows, noise or no noise",
    "noise_refused": "the noise of the run hides too little of this site's rows, or the task does not go with noise",
    "work_limit": "the task takes more work than the site's policy allows: fewer steps or parts, or a smaller model",
    "task_not_signed": (
        "the task is not signed by the OEM's key that the site knows, nor by one that follows from it: at the OEM "
        "oem-keys.json belongs beside the coordinator's key, where that was changed; else the plant names the OEM's "
        "present key as oem_key in its settings; a coordinator of an earlier version does not sign"
    ),
    "internal_error": "the site could not compute an answer; the site's own log says why",
}
"""One fixed sentence for each code: a refusal quotes neither data nor anything made from data."""


class Refusal(BallastError):  # noqa: N818 - not an error of the agent: the site says no, and goes on
    """The site says no. The text is for the site's own log and never leaves; ``reason`` is what leaves.

    ``isolating``: the answer would isolate a row, which is a matter of the rows and not of the question alone.
    """

    def __init__(self, code: RefusalCode, detail: str = "", *, isolating: bool = False) -> None:
        super().__init__(detail or REASONS[code], code=code)
        self.refusal_code: RefusalCode = code
        self.isolating = isolating

    @property
    def reason(self) -> str:
        """The fixed sentence that leaves."""
        return REASONS[self.refusal_code]


class SitePolicy(Contract):
    """A site's own rules. Empty lists allow nothing.

    ``min_samples`` and ``min_test_samples``: with fewer training or held-out rows nothing leaves but a refusal, since a
    subgradient over one row is that row; no step of local training goes by fewer rows than ``min_samples`` either.
    A class with fewer held-out rows than ``min_class_samples`` is not in the counts of an evaluation: how two rows were
    diagnosed says what they are. ``min_new_rows``: rows of a part and class come and go by so many together
    (``vault.isolation.row_groups``), so that nothing that is told before and after differs by one row. ``one_class``:
    the site takes part also where all its training rows are of one class, as those of a plant that never had a fault
    are. ``max_rounds_per_run`` counts every answered round, repeats too.

    The next ones speak of all answers since the training rows last changed, whichever runs they were for.
    ``exposure_limit`` is the share of the rows that differences of answers may isolate, be it with answers about
    earlier versions of the rows; ``leverage_limit`` the share that any combination of them may
    (``vault.isolation.exposure``); ``allow_unaccounted`` lets answers out that may say more than these count.
    ``lift_limit``: components of different Fourier and Nystrom lifts for each training row, and an eighth as many
    segments of splines, until half of the rows are others (``told_lifts``).
    ``max_answers_per_run`` and ``max_runs_per_day`` (24 hours, whatever rows come) are budgets. ``steepness_limit`` and
    ``nearness_limit`` say which questions have no honest purpose (``questions``).

    ``reveal`` lists what a run may show the coordinator: masked sums, or each site's own answers. On sums a cohort has
    ``min_cohort`` plants or more with a share of 1 in 1000 or more, and of a hundredth of the site's or more; ``peers``
    are the plants, with their keys, that the site masks with, any where it is empty. ``own_scores``: whether the
    scalars of an evaluation may be told by themselves in a run on sums; they go into the cohort's sums in any case.
    ``calibration_counts``: whether counts
    of held-out scores, and for a target of residuals of training rows, on the fixed grids are told, by themselves
    or in sums as the scores are. ``tell_unchanged``: whether a keyed digest tells at a join that the rows and terms
    are those of an earlier run. ``tell_drift`` and ``tell_exposure``: whether two figures are told at a join, how
    far the readings have moved since the first one (``vault.drift``), and the share of the rows that differences of
    answers isolate. ``auditors``: public keys of those to whom the site opens two of its answers where the sums of
    its cohort contradict themselves. ``audit_every_round``: it also takes part where the plan has every round
    opened to them.

    ``max_operations``: a task that takes more operations (``services.site_agent.limits.work``) is refused uncomputed.

    ``noise_epsilon``: at most so much, at ``noise_delta``, is told of any row by the rounds of all runs, whatever rows
    come and go beside it; rounds without noise, and tunings, are refused then. None: any.
    """

    methods: tuple[Slug, ...] = ()
    asset_types: tuple[Slug, ...] = ()
    messages: tuple[Kind, ...] = ()
    max_message_bytes: int = Field(default=1_048_576, ge=1024)
    max_operations: float = Field(default=5e9, gt=0)
    min_samples: int = Field(default=20, ge=1)
    min_test_samples: int = Field(default=5, ge=1)
    min_class_samples: int = Field(default=5, ge=1)
    min_new_rows: int = Field(default=1, ge=1)
    one_class: bool = False
    max_rounds_per_run: int | None = Field(default=None, ge=1)
    exposure_limit: float = Field(default=0.0, ge=0, le=1)
    leverage_limit: float = Field(default=1.0, ge=0, le=1)
    allow_unaccounted: bool = True
    lift_limit: float = Field(default=2.0, ge=0, allow_inf_nan=False)
    max_answers_per_run: int | None = Field(default=1000, ge=1)
    max_runs_per_day: int | None = Field(default=50, ge=1)
    steepness_limit: float = Field(default=100.0, ge=1, allow_inf_nan=False)
    nearness_limit: float = Field(default=1e-7, ge=0, lt=1)
    reveal: tuple[Reveal, ...] = ("sums",)
    min_cohort: int = Field(default=LEAST_MEMBERS, ge=LEAST_MEMBERS)
    peers: dict[Slug, str] = Field(default_factory=dict)
    own_scores: bool = False
    calibration_counts: bool = True
    tell_unchanged: bool = True
    tell_drift: bool = False
    tell_exposure: bool = False
    auditors: tuple[str, ...] = ()
    audit_every_round: bool = False
    noise_epsilon: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    noise_delta: float = Field(default=1e-6, gt=0, le=0.01)

    @classmethod
    def from_toml(cls, path: Path) -> Self:
        """Read the policy; raise :class:`SettingsError` with one line that says what does not fit."""
        return read_toml(cls, path, "policy", SettingsError)

    def check_task(self, task: Task, rounds_answered: int) -> None:
        """Raise :class:`Refusal` unless the policy allows the task; ``rounds_answered`` are those of the task's run."""
        if task.kind not in self.messages:
            raise Refusal("message_not_allowed", f"policy lists no message {task.kind}")
        if task.reveal not in self.reveal:
            raise Refusal("mode_not_allowed", f"policy does not list reveal {task.reveal}")
        if task.kind == "evaluate" and task.reveal == "sums" and task.masking is None and not self.own_scores:
            raise Refusal("mode_not_allowed", "policy does not release the site's own scores")
        if task.kind == "evaluate" and "calibration" in task.arrays and not self.calibration_counts:
            raise Refusal("message_not_allowed", "policy releases no counts of held-out scores")
        if task.kind == "round" and task.reveal != "sums" and self.noise_epsilon is not None:
            raise Refusal("noise_limit", "policy has noise_epsilon, and only sums have noise")
        if task.kind == "tune" and self.noise_epsilon is not None:
            raise Refusal("noise_limit", "policy has noise_epsilon, and what a tuning asks has no noise")
        if task.asset_type not in self.asset_types:
            raise Refusal("asset_type_not_allowed", f"policy lists no asset type {task.asset_type}")
        if task.method not in self.methods:
            raise Refusal("method_not_allowed", f"policy lists no method {task.method}")
        if task.kind == "round" and self.max_rounds_per_run is not None and rounds_answered >= self.max_rounds_per_run:
            raise Refusal("message_not_allowed", f"{rounds_answered} rounds of this run are answered already")

    def check_cohort(self, cohort: MaskingCohort, site_id: str, own_key: str) -> None:
        """Raise :class:`Refusal` unless the site may be summed with these plants, by these shares."""
        if cohort.keys.get(site_id) != own_key:
            raise Refusal("cohort_not_allowed", f"cohort {cohort.name} knows this site by another key than its own")
        if cohort.auditor and (cohort.auditor not in self.auditors or "open" not in self.messages):
            raise Refusal("auditor_not_allowed", f"the policy does not list auditor {cohort.auditor} with message open")
        if cohort.audit_every_round and not self.audit_every_round:
            raise Refusal("auditor_not_allowed", "policy does not open every round to an auditor (audit_every_round)")
        for peer, key in cohort.keys.items():
            if self.peers and peer != site_id and self.peers.get(peer) != key:
                raise Refusal("cohort_not_allowed", f"the policy's peers do not have {peer} with the key {key}")
        if cohort.noise is None and self.noise_epsilon is not None:
            raise Refusal("noise_limit", f"policy has noise_epsilon, and cohort {cohort.name} has no noise")
        counted = _counted(cohort, site_id, cohort.members)
        if counted < self.min_cohort or cohort.share(site_id) > 1.0 - _LEAST_SHARE:
            raise Refusal(
                "cohort_not_allowed",
                f"{counted} plants of cohort {cohort.name} have a share of {_least_share(cohort, site_id):g} or more, "
                f"the policy asks for {self.min_cohort}",
            )

    def check_summed(self, cohort: MaskingCohort, site_id: str, summed: Iterable[str]) -> None:
        """Raise :class:`Refusal` where so few of the plants that a sum is over count for something in it.

        Who answers is the coordinator's word: with the others away, plants of hardly a share would hide nothing.
        """
        counted = _counted(cohort, site_id, summed)
        if counted < LEAST_MEMBERS:
            raise Refusal(
                "masks_refused",
                f"{counted} plants of a sum of cohort {cohort.name} have a share of "
                f"{_least_share(cohort, site_id):g} or more, and {LEAST_MEMBERS} are due",
            )

    def check_samples(self, n_train: int, n_test: int, kind: Kind) -> None:
        """Raise :class:`Refusal` when the training part, or for an evaluation the held-out part, has too few rows."""
        if n_train < self.min_samples:
            raise Refusal("too_few_samples", f"{n_train} training rows, the policy asks for {self.min_samples}")
        if kind == "evaluate" and n_test < self.min_test_samples:
            raise Refusal("too_few_samples", f"{n_test} held-out rows, the policy asks for {self.min_test_samples}")


def _least_share(cohort: MaskingCohort, site_id: str) -> float:
    """Share from which on a plant counts for something in a sum that a site is in."""
    return max(_LEAST_SHARE, _LEAST_OF_OWN * cohort.share(site_id))


def _counted(cohort: MaskingCohort, site_id: str, plants: Iterable[str]) -> int:
    """How many of the plants, the site's peers or itself, count for something in a sum."""
    least = _least_share(cohort, site_id)
    return sum(cohort.share(peer) >= least for peer in plants if peer in cohort.keys)
