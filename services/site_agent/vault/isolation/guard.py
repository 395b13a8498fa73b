"""The plant's guard: of the answers that may stand for one another, the first that isolates no row leaves.

Held against everything that has left about the rows, and about earlier versions of them (``isolation.exposure``). What
is drawn, is drawn from a secret of the vault, the rows and the question, so the same question gets the same bytes;
which of the candidates was taken is remembered with the record, for what has left since could decide otherwise the
second time. Where that one would by now isolate a row, another is taken, and remembered in its place. A cut that is
told again stands there whole: the cuts that left are in memory alone, and after a restart those of before are not
repeated.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import deque
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from models.basics import FloatArray
from models.methods.guard import MOVES, AnswerT, Minorant, Near, Other, height_at, highest_first, tightest
from models.methods.row_account import row_vectors
from services.site_agent.vault.isolation.exposure import Differences

Choice = int | bytes
"""Number of a candidate, or a cut that left before as :func:`packed` has it."""
Draw = Callable[[], np.random.Generator]
Left = MutableMapping[bytes, deque[Minorant]]
"""Cuts that left, by the risk that they are of."""

CUTS_KEPT = 1024
"""Latest cuts of a risk that may be told again: at 12 in an answer those of 85 rounds, when earlier ones are loose."""
RISKS_KEPT = 8  # of heads and of plans: the last ones
_NEGLIGIBLE = 1e-5
"""Share of the risk that an earlier cut may be below the exact one and be told again at once: a tenth of the gap that a
benchmark asks for, a hundredth of a plan's; it saves the local steps of looking for a mean."""
MOST_ABOVE = 1.0
"""On sums: by how much of what a cut in place of the exact one is too low by the risk may be told too high. An
auditor takes more than 1 for a lie (``services.verification.contradiction``)."""
_NEW_OF_256 = 64
"""Of the questions that the exact cut may not answer, so many are told a mean even where an earlier cut is tighter at
the point: a run in which every plant only repeats itself learns nothing more and stalls short of its gap."""
_NEW_MOVES = 3  # from as near as that; farther ones are loose
_TRIED = 32  # cuts that left, from the tightest on, of which one may be told again where nothing else may leave


class VaultGuard:
    """For one answer: what it chooses counts as left for its own next choices, and is the plant's only if admitted."""

    def __init__(
        self, differences: Differences, secret: bytes, spread: Callable[[FloatArray], FloatArray],
        chosen: Callable[[bytes], Choice | None], left: Left | None = None, *, most_above: float = 0.0,
    ) -> None:
        """``spread`` puts the coefficients of a task's rows over all training rows; ``chosen`` finds earlier choices.

        ``left`` is shared by the guards of one version of the data and grows with every cut that is chosen; what is
        told again is held to the differences as any other, so one that was not admitted does no harm. ``most_above``:
        by so much of what a cut in place of the exact one is too low by the risk is told too high at most.
        """
        self._trial, self._secret, self._spread, self._chosen = differences.copy(), secret, spread, chosen
        self._left: Left = {} if left is None else left
        self._most_above = most_above
        self.choices: dict[bytes, Choice] = {}
        self.asked = 0

    def choose(
        self,
        question: bytes,
        candidate: Callable[[int, np.random.Generator], AnswerT],
        vectors: Callable[[AnswerT], Sequence[FloatArray]],
    ) -> AnswerT:
        """What was taken for the same question before, if it may leave; else the first that isolates nothing."""
        key = self._key(question)

        def drawn(number: int, draw: Draw) -> AnswerT:
            return candidate(number, draw())

        before = self._before(key, drawn, vectors)
        return self._first(key, drawn, vectors) if before is None else before

    def _before(
        self, key: bytes, candidate: Callable[[int, Draw], AnswerT], vectors: Callable[[AnswerT], Sequence[FloatArray]]
    ) -> AnswerT | None:
        """What was taken for the question ``key`` before; None where nothing was, or it may not leave by now."""
        number = self._earlier(key)
        if not isinstance(number, int):
            return None
        found = candidate(number, partial(_drawn, key, number))
        rows = [self._spread(each) for each in vectors(found)]
        if number > MOVES:
            self._trial.take(rows)
        elif not self._trial.admits(rows):
            return None
        self.asked += 1
        self.choices[key] = number
        return found

    def _first(
        self, key: bytes, candidate: Callable[[int, Draw], AnswerT], vectors: Callable[[AnswerT], Sequence[FloatArray]]
    ) -> AnswerT:
        """The first candidate that isolates nothing, or the last one."""
        self.asked += 1
        number, last = 0, None
        while True:
            found = candidate(number, partial(_drawn, key, number))
            rows = [self._spread(each) for each in vectors(found)]
            if number > MOVES:
                self._trial.take(rows)
                break
            same = last is not None and all(np.array_equal(*pair) for pair in zip(rows, last, strict=True))
            if not same and self._trial.admits(rows):
                break
            number, last = number + 1, rows
        if number or self._earlier(key) is not None:
            self.choices[key] = number
        return found

    def choose_cut(self, question: bytes, near: Near, exact: Minorant, other: Other) -> Minorant:
        """What :meth:`_chosen_cut` gives, and where it is not the exact one how far above it the risk is told.

        Drawn by the secret and the question, so the same question is told the same.
        """
        found = self._chosen_cut(question, near, exact, other)
        if found is exact or not self._most_above:
            return found
        return replace(found, above=self._most_above * float(_drawn(self._key(question + b"risk"), 0).uniform()))

    def _chosen_cut(self, question: bytes, near: Near, exact: Minorant, other: Other) -> Minorant:
        """The exact cut, else a mean that is tighter at the point than all that left before, else the tightest.

        The tightest that may be told again, that is: with what came since, one that left long ago may isolate a row.
        Where none may, the cut that says nothing.
        """
        left, repeated = self._left_of(near.risk), None
        key, again = self._key(question), self._key(question + b"again" + near.exchange.to_bytes(8, "big"))
        told = self._earlier(again)
        if isinstance(told, bytes):
            return self._again(again, unpacked(told, exact))
        height = height_at(exact, near.point, near.norm)
        new = self._key(question + b"new")[0] < _NEW_OF_256

        @cache
        def highest() -> Minorant | None:
            return tightest(left, near)

        def candidate(number: int, draw: Draw) -> Minorant:
            nonlocal repeated
            if number == 0:
                return exact
            best = highest()
            if best is None:
                return other(number, draw())
            if number > MOVES:  # what is given now leaves unasked
                tight = _different(highest_first(left, near))
                repeated = next((each for each in tight[:_TRIED] if self._may(each)), None)
                return other(number, draw()) if repeated is None else repeated
            known = height_at(best, near.point, near.norm)
            if known < height - _NEGLIGIBLE * abs(height):
                found = other(number, draw())
                tighter = height_at(found, near.point, near.norm) > known
                if tighter or (new and number <= _NEW_MOVES):
                    repeated = None
                    return found
            repeated = best
            return best

        def recalled(number: int, draw: Draw) -> Minorant:
            return exact if number == 0 else other(number, draw())

        before = self._before(key, recalled, lambda each: row_vectors(each.rows))
        found = self._first(key, candidate, lambda each: row_vectors(each.rows)) if before is None else before
        if found is repeated:
            self.choices.pop(key, None)
            self.choices[again] = packed(found)
        else:
            left.append(found)
        return found

    def _may(self, cut: Minorant) -> bool:
        return cut.rows is None or self._trial.admits([self._spread(each) for each in row_vectors(cut.rows)])

    def _again(self, key: bytes, cut: Minorant) -> Minorant:
        """A cut that answered the question before, by telling it again."""
        self.asked += 1
        self.choices[key] = packed(cut)
        self._trial.take([self._spread(each) for each in row_vectors(cut.rows)])
        return cut

    def shares(self, question: bytes) -> FloatArray:
        """Shares (2,) from 0 to 1 that the secret and the question draw: the same for the same question."""
        return _drawn(self._key(question + b"steps"), 0).uniform(size=2)

    def _key(self, question: bytes) -> bytes:
        return hashlib.sha256(self._secret + question).digest()

    def _earlier(self, key: bytes) -> Choice | None:
        return self.choices[key] if key in self.choices else self._chosen(key)

    def _left_of(self, risk: bytes | None) -> deque[Minorant]:
        """Cuts of a risk, the latest last; of one without a name none are kept."""
        if risk is None:
            return deque()
        found = self._left.pop(risk, None)
        self._left[risk] = deque(maxlen=CUTS_KEPT) if found is None else found
        while len(self._left) > RISKS_KEPT:
            del self._left[next(iter(self._left))]
        return self._left[risk]


def _different(cuts: Sequence[Minorant]) -> list[Minorant]:
    """The first of those with the same coefficients: near an optimum one cut has left for many points."""
    found = dict[bytes, Minorant]()
    for each in cuts:
        assert each.rows is not None
        found.setdefault(each.rows.tobytes(), each)
    return list(found.values())


def _drawn(key: bytes, number: int) -> np.random.Generator:
    """What a candidate draws from."""
    drawn = hashlib.sha256(key + number.to_bytes(4, "big")).digest()
    return np.random.default_rng(int.from_bytes(drawn, "big"))


def packed(cut: Minorant) -> bytes:
    """Offset, norm weight, slope (D,) and coefficients (N,) of a minorant without a swing, float64.

    Compressed, for most coefficients are 0 or 1 / N.
    """
    assert cut.rows is not None
    numbers = np.concatenate([[cut.offset, cut.norm_weight], cut.slope, cut.rows.ravel()])
    return zlib.compress(numbers.tobytes(), 1)


def unpacked(numbers: bytes, like: Minorant) -> Minorant:
    """The minorant of :func:`packed`, with slope and coefficients as long as those of another."""
    offset, norm_weight, *others = np.frombuffer(zlib.decompress(numbers))
    size = like.slope.shape[0]
    rows = np.array(others[size:]).reshape((-1,) if like.rows is None else like.rows.shape)
    return Minorant(float(offset), np.array(others[:size]), float(norm_weight), None, rows)
