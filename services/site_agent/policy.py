"""What this site lets out. The site owns the policy; what it does not list is not allowed."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Self, get_args

from pydantic import Field

from models.methods.catalogue import METHODS
from services.contracts.asset_type import read_toml
from services.contracts.base import Contract, Slug
from services.contracts.errors import BallastError
from services.contracts.messages import Kind, RefusalCode, Task
from services.site_agent.settings import SettingsError

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
    "contract_mismatch": "the site's asset type, or the lift that it draws, differs from the one in the task",
    "wrong_site": "the task is addressed to another site",
    "bad_task": "the task cannot be read or has no meaning",
    "exposure_limit": "with this answer the site's answers would isolate more of its rows than its policy allows",
    "budget_spent": "the site's policy allows no more answers in this run, or no more runs today, on the same data",
    "question_refused": "no honest run asks this: it is too steep for the problem, or next to an earlier question",
    "internal_error": "the site could not compute an answer; the site's own log says why",
}
"""One fixed sentence for each code: a refusal quotes neither data nor anything made from data."""


class Refusal(BallastError):  # noqa: N818 - not an error of the agent: the site says no, and goes on
    """The site says no. The text is for the site's own log and never leaves; ``reason`` is what leaves."""

    def __init__(self, code: RefusalCode, detail: str = "") -> None:
        super().__init__(detail or REASONS[code], code=code)
        self.refusal_code: RefusalCode = code

    @property
    def reason(self) -> str:
        """The fixed sentence that leaves."""
        return REASONS[self.refusal_code]


class SitePolicy(Contract):
    """A site's own rules. Empty lists allow nothing.

    ``min_samples`` and ``min_test_samples``: with fewer training or held-out rows nothing leaves but a refusal, since a
    subgradient over one row is that row; no step of local training goes by fewer rows than ``min_samples`` either.
    A class with fewer held-out rows than ``min_class_samples`` is not in the counts of an evaluation: how two rows were
    diagnosed says what they are. ``max_rounds_per_run`` counts every answered round, repeats too.

    The others speak of all answers since the training rows last changed, whichever runs they were for.
    ``exposure_limit`` is the share of the rows that differences of answers may isolate, ``leverage_limit`` the share
    that any combination of them may (``vault.exposure``). ``max_answers_per_run`` and ``max_runs_per_day`` (24 hours)
    are budgets. ``steepness_limit`` and ``nearness_limit`` say which questions have no honest purpose (``questions``).
    """

    methods: tuple[Slug, ...] = ()
    asset_types: tuple[Slug, ...] = ()
    messages: tuple[Kind, ...] = ()
    max_message_bytes: int = Field(default=1_048_576, ge=1024)
    min_samples: int = Field(default=20, ge=1)
    min_test_samples: int = Field(default=5, ge=1)
    min_class_samples: int = Field(default=5, ge=1)
    max_rounds_per_run: int | None = Field(default=None, ge=1)
    exposure_limit: float = Field(default=0.5, ge=0, le=1)
    leverage_limit: float = Field(default=1.0, ge=0, le=1)
    max_answers_per_run: int | None = Field(default=1000, ge=1)
    max_runs_per_day: int | None = Field(default=50, ge=1)
    steepness_limit: float = Field(default=100.0, ge=1, allow_inf_nan=False)
    nearness_limit: float = Field(default=1e-7, ge=0, lt=1)

    @classmethod
    def from_toml(cls, path: Path) -> Self:
        """Read the policy; raise :class:`SettingsError` with one line that says what does not fit."""
        return read_toml(cls, path, "policy", SettingsError)

    def check_task(self, task: Task, rounds_answered: int) -> None:
        """Raise :class:`Refusal` unless the policy allows the task; ``rounds_answered`` are those of the task's run."""
        if task.kind not in self.messages:
            raise Refusal("message_not_allowed", f"policy lists no message {task.kind}")
        if task.asset_type not in self.asset_types:
            raise Refusal("asset_type_not_allowed", f"policy lists no asset type {task.asset_type}")
        if task.method not in self.methods:
            raise Refusal("method_not_allowed", f"policy lists no method {task.method}")
        if task.kind == "round" and self.max_rounds_per_run is not None and rounds_answered >= self.max_rounds_per_run:
            raise Refusal("message_not_allowed", f"{rounds_answered} rounds of this run are answered already")

    def check_samples(self, n_train: int, n_test: int, kind: Kind) -> None:
        """Raise :class:`Refusal` when the training part, or for an evaluation the held-out part, has too few rows."""
        if n_train < self.min_samples:
            raise Refusal("too_few_samples", f"{n_train} training rows, the policy asks for {self.min_samples}")
        if kind == "evaluate" and n_test < self.min_test_samples:
            raise Refusal("too_few_samples", f"{n_test} held-out rows, the policy asks for {self.min_test_samples}")


def default_policy_text(asset_types: tuple[str, ...], methods: tuple[str, ...] = ()) -> str:
    """Policy file that ``ballast-site init`` writes; without methods it lists all that there are."""
    methods = methods or tuple(METHODS)

    def listed(names: tuple[str, ...]) -> str:
        lines = textwrap.wrap(", ".join(f'"{name}"' for name in names), 100, break_on_hyphens=False)
        return "[" + "\n    ".join(lines) + "]"

    return f"""# What this plant lets out. You own this file: Ballast only reads it, at the start of the agent.
# What is not listed here is not allowed. See what has left with: ballast-site ledger show

# Training methods whose messages may be answered; strike out what you do not want.
methods = {listed(methods)}

# Kinds of machine for which this plant takes part.
asset_types = {listed(asset_types)}

# join: number of training rows; radius and its confidence. round: model-sized vectors.
# evaluate: counts, sums of errors and risks at given weights.
messages = {listed(get_args(Kind))}

# Largest message in bytes, both ways.
max_message_bytes = 1048576

# With fewer training rows than this nothing leaves but a refusal: a subgradient over one row is that row. Nor does a
# step of local training go by fewer rows, whatever the task asks.
min_samples = 20

# With fewer held-out rows than this no evaluation is answered.
min_test_samples = 5

# A class with fewer held-out rows than this is left out of the counts of true by diagnosed class, and so of the scores
# and of the confusion matrix in the OEM's reports.
min_class_samples = 5

# At most this many rounds of one run are answered; without the line there is no limit.
# max_rounds_per_run = 200

# Share of the training rows that the difference of two answers, or a difference of such differences, may isolate since
# the rows last changed, over all runs. One honest run isolates 3 to 8 in 100 rows, each further one on the same rows a
# few more, so half lets a plant train again and again and stops a run that asks for rows. Lower it where one row is
# worth hiding; 0 answers nothing that isolates a row. See where it stands with: ballast-site exposure
exposure_limit = 0.5

# Share of the rows that any combination of all answers may isolate. It takes numbers that only this plant has, so it is
# an upper bound of what is possible; honest runs reach 5 to 20 in 100 rows at once, hence no limit at the start.
leverage_limit = 1.0

# Answers in one run, and runs in 24 hours, on the same rows.
max_answers_per_run = 1000
max_runs_per_day = 50

# A question is refused at weights whose risk is more than this many times that of zero weights whatever the rows: the
# optimum of a run stays below one over the plant's weight in it.
steepness_limit = 100.0

# A question is refused that is so near to an earlier one of the run that no risk could change by this share of how far
# the risks moved in the run; 0 allows them all.
nearness_limit = 1e-7
"""
