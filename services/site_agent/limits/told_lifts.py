r"""Under how many lifts a plant answers about the same rows: not under so many that their numbers are the rows.

A vector of an answer is ``sum_i c_i z(x_i)`` over the N rows. At zero weights ``c_i = -y_i / N`` whatever the lift z,
so whoever asks that one question under K further known features has K further equations for the same rows, while the
account of the coefficients (``vault.isolation.exposure``) has one vector. Two kinds of numbers are counted, over all
runs about the same rows, be they in another order, or some more or fewer: what was told about another version counts
where that has :data:`ALIKE` of the present rows. What was told under a lift of before tells nothing new:

- ``waves``: components of distinct Fourier and Nystrom lifts, by fingerprint. By k in all, whether a given row is among
  the N, and with which label, is told with a noise of ``sqrt(N / k)`` of its size. From ``k = N P`` on there are as
  many equations as readings. A plant tells ``lift_limit`` of its policy for each row, and of a first lift
  :data:`FIRST_WAVES`.
- ``segments``: of distinct splines, alone or beside products, for each sensor. All counts from 1 to 64 have knots at
  1260 places, and a reading alone between two knots is told exactly: with m segments a share of ``exp(-N / m)`` of N
  even readings. A plant tells an eighth of the above, or :data:`LEAST_SEGMENTS`.

Products themselves are the same second moments whatever the list, at most ``P (P + 1) / 2`` in all, and not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from services.contracts.problems.lift import FourierLiftSpec, LiftSpec, NystromLiftSpec, draw_lift
from services.contracts.problems.tuning_task import TuningTask
from services.contracts.wire.messages import Task
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.vault.dataset import Part
from services.site_agent.vault.records.lift_record import LiftRecord
from services.site_agent.vault.records.version_rows import VersionRows

LEAST_SEGMENTS: Final = 64
"""Of a spline at most, and in all where rows are few: ten honest plans with 2 to 12 segments have about so many."""
FIRST_WAVES: Final = 320
"""Of the first lift about the same rows, where these are fewer than half of it, but no more than five for each row: an
honest plan has one lift, of some hundred numbers."""
_FIRST_A_ROW: Final = 5
ALIKE: Final = 0.5
"""Share of the present rows that another version has whose lifts count for this one too."""
_OF_WAVES: Final = 8
"""Segments weigh so many waves: at an eighth of two a row one reading in fifty is alone between knots."""

Kind = Literal["waves", "segments"]
_WORDS: Final[dict[Kind, str]] = {
    "waves": "components of Fourier and Nystrom lifts", "segments": "segments of different splines",
}


class ToldLifts:
    """Holds tasks to the numbers of lifts that a policy lets out."""

    def __init__(self, record: LiftRecord, rows: VersionRows, policy: SitePolicy) -> None:
        self._record, self._rows, self._policy = record, rows, policy

    def check(self, task: Task, digest: str, n_features: int, n_rows: int, train: Part) -> None:
        """Write down under which lifts a task is answered, before it is; ``n_rows`` N are those that it learns from.

        ``digest`` is that of the version of the rows, ``train`` are all of them. Every kind of task counts: a risk of
        an evaluation, at small weights, is such a number too.

        Raises
        ------
        Refusal
            With these lifts the rows would be told under more than the policy allows; nothing is written then.
        """
        for kind, lifts in counted(asked_lifts(task), n_features).items():
            told = self._told(digest, kind, train)
            new = {name: numbers for name, numbers in lifts.items() if name not in told}
            most, total = self.most(kind, n_rows), sum(told.values()) + sum(new.values())
            if kind == "waves" and self._policy.lift_limit > 0 and not told and len(new) == 1:
                most = max(most, min(FIRST_WAVES, _FIRST_A_ROW * n_rows))
            if new and total > most:
                raise Refusal(
                    "exposure_limit",
                    f"with this lift the {n_rows} rows would be told under {total} {_WORDS[kind]}, lift_limit allows "
                    f"{most}, of which {sum(told.values())} are told: take a lift of an earlier run, or a smaller one",
                )
            if new:
                self._rows.note(digest, train)
                self._record.add(digest, kind, new)

    def _told(self, digest: str, kind: Kind, train: Part) -> dict[str, int]:
        """Numbers of each lift that was told of a version, or of another one that is mostly this one."""
        told = self._record.told(digest, kind)
        for other, rows in self._rows.shared(digest, train).items():
            if rows.mean() >= ALIKE:
                told |= self._record.told(other, kind)
        return told

    def most(self, kind: Kind, n_rows: int) -> int:
        """Numbers of a kind that may be told of N rows."""
        waves = self._policy.lift_limit * n_rows
        return int(waves) if kind == "waves" else max(int(waves / _OF_WAVES), LEAST_SEGMENTS)

    def close(self) -> None:
        """Let go of the record."""
        self._record.close()


def asked_lifts(task: Task) -> tuple[LiftSpec | None, ...]:
    """The lift of a task's problem, and of a tuning those of its parts."""
    tuned = task.tuning if isinstance(task.tuning, TuningTask) else None
    return task.spec.lift, *(() if tuned is None else (tuned.lifts[part.lift] for part in tuned.parts))


def counted(lifts: Iterable[LiftSpec | None], n_features: int) -> dict[Kind, dict[str, int]]:
    """Numbers of each distinct lift by its name, of the kinds that are counted; ``ProblemError`` as ``draw_lift``."""
    found: dict[Kind, dict[str, int]] = {}
    for spec in dict.fromkeys(lifts):
        lift = draw_lift(spec, n_features)
        if spec is None or lift is None:
            continue
        if isinstance(spec, FourierLiftSpec | NystromLiftSpec):
            size = spec.size(n_features) - (n_features if spec.keep_linear else 0)
            found.setdefault("waves", {})[lift.fingerprint] = size
        elif spec.segments > 1:
            found.setdefault("segments", {})[str(spec.segments)] = spec.segments
    return found
