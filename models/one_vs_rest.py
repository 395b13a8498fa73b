r"""One-vs-rest: K binary heads trained side by side, one message for all of them.

Every array of a message, an answer or a packed state gets a leading axis K; heads never mix. A head that is done goes
on being asked, so shapes stay as they are and the certificate of the sum (bounds add up) can only close further.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError, stack_arrays
from models.cuts.carried_proof import CarriedProof
from models.cuts.certificate import combined_certificate
from models.cuts.contradiction import Contradiction
from models.methods.guard import Guard
from models.methods.packed_change import OF_HEAD, PackedChange, packed_change, stack_heads
from models.methods.protocol import NO_PARAMETERS, AnswersLate, ForgetsSites, ServerHalf, SiteHalf, StartsWarm
from models.methods.row_account import Accounted, accounted_answer, accounted_remembering, joined
from models.problem import Certificate, ServerProblem, SiteProblem, Status

Heads = tuple[Any, ...]


def answer_heads(
    half: SiteHalf, problems: Sequence[SiteProblem], message: Arrays, parameters: Mapping[str, float]
) -> dict[str, FloatArray]:
    """Answers of K heads, stacked: a problem of the site for each, message arrays with leading axis K."""
    return accounted_heads(half, problems, message, parameters).arrays


def accounted_heads(
    half: SiteHalf, problems: Sequence[SiteProblem], message: Arrays, parameters: Mapping[str, float],
    guard: Guard | None = None,
) -> Accounted:
    """As :func:`answer_heads`, with the account of all heads' vectors, and as the guard lets them leave."""
    check_heads(message, len(problems))
    heads = [accounted_answer(half, each, _head(message, k), parameters, guard) for k, each in enumerate(problems)]
    return _stacked(heads)


def answer_heads_remembering(
    half: SiteHalf, problems: Sequence[SiteProblem], message: Arrays, parameters: Mapping[str, float],
    memory: Arrays, guard: Guard | None = None,
) -> tuple[Accounted, dict[str, FloatArray]]:
    """As :func:`accounted_heads` from a memory of all heads, {} at the start; with the memory after it."""
    check_heads(message, len(problems))
    told = [
        accounted_remembering(half, each, _head(message, k), parameters, _head(memory, k), guard)
        for k, each in enumerate(problems)
    ]
    return _stacked([found for found, _ in told]), stack_arrays([kept for _, kept in told])


def check_heads(message: Arrays, heads: int) -> None:
    """Refuse a message whose arrays have not a part for each head. :class:`ProblemError` names the array."""
    for name, array in message.items():
        if array.ndim == 0 or array.shape[0] != heads:
            raise ProblemError(f"message array {name} must have a leading axis of {heads} heads")


def _stacked(heads: Sequence[Accounted]) -> Accounted:
    return Accounted(stack_arrays([head.arrays for head in heads]), joined([head.account for head in heads]))


@dataclass(frozen=True)
class OneVsRestServer:
    """Server half for K heads out of a binary one; a :class:`models.methods.protocol.ServerHalf` itself."""

    binary: ServerHalf[Any]
    n_heads: int

    def init(self, problem: ServerProblem) -> Heads:
        """State of every head before the first round."""
        return tuple(self.binary.init(problem) for _ in range(self.n_heads))

    def messages(self, state: Heads, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """Message for each site, heads stacked."""
        heads = [self.binary.messages(each, problem) for each in state]
        return {site.site_id: stack_arrays([head[site.site_id] for head in heads]) for site in problem.sites}

    def step(self, state: Heads, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Heads:
        """Next state of every head."""
        return tuple(
            self.binary.step(each, problem, {site: _head(arrays, k) for site, arrays in answers.items()})
            for k, each in enumerate(state)
        )

    @property
    def answers_late(self) -> bool:
        """Whether a site may answer an earlier question; the methods below are for such halves alone."""
        return isinstance(self.binary, AnswersLate)

    def step_late(
        self, state: Heads, problem: ServerProblem, answers: Mapping[str, Arrays], due: Collection[str],
        away: Collection[str],
    ) -> Heads:
        """Next state of every head from new and late answers."""
        late = self._late()
        return tuple(
            late.step_late(each, problem, {site: _head(arrays, k) for site, arrays in answers.items()}, due, away)
            for k, each in enumerate(state)
        )

    def open_rounds(self, state: Heads, problem: ServerProblem) -> dict[str, int]:
        """Exchange of the question that each site at work was asked: the same of all heads."""
        return self._late().open_rounds(state[0], problem)

    def asks_next(self, state: Heads, problem: ServerProblem) -> set[str]:
        """Idle sites that some head is to ask next; then all heads ask."""
        return set().union(*(self._late().asks_next(each, problem) for each in state))

    def away(self, state: Heads, problem: ServerProblem) -> set[str]:
        """Sites that entered the last upper bound by their cuts: the same of all heads."""
        return self._late().away(state[0], problem)

    def told_rounds(self, state: Heads, problem: ServerProblem) -> dict[str, int]:
        """Exchange of the newest question that each site answered: the same of all heads."""
        return self._late().told_rounds(state[0], problem)

    def _late(self) -> AnswersLate:
        if not isinstance(self.binary, AnswersLate):
            raise ProblemError("this method needs the answers of an exchange before the next")
        return self.binary

    def answer_shapes(
        self, dimension: int, n_swings: int = 0, parameters: Mapping[str, float] = NO_PARAMETERS
    ) -> dict[str, tuple[int, ...]]:
        """Shapes of a valid answer, the heads first."""
        single = self.binary.answer_shapes(dimension, n_swings, parameters)
        return {name: (self.n_heads, *shape) for name, shape in single.items()}

    def status(self, state: Heads, problem: ServerProblem) -> Status:
        """Certified when the bounds of the sum are near enough; stalled when every head is still."""
        if self.certificate(state).meets(problem.gap, problem.absolute_gap):
            return Status.CERTIFIED
        heads = {self.binary.status(each, problem) for each in state}
        if not heads <= {Status.STALLED, Status.CRITICAL, Status.CERTIFIED}:
            return Status.CONTINUE
        return next((each for each in (Status.STALLED, Status.CRITICAL) if each in heads), Status.CONTINUE)

    def certificate(self, state: Heads) -> Certificate:
        """Certificate of the sum over the heads."""
        return combined_certificate([self.binary.certificate(each) for each in state])

    def weights(self, state: Heads) -> FloatArray:
        """Best weights of every head, (K, D)."""
        return np.stack([self.binary.weights(each) for each in state])

    def site_risks(self, state: Heads, problem: ServerProblem) -> dict[str, float]:
        """Worst-case risk of each site at the best weights, summed over the heads."""
        heads = [self.binary.site_risks(each, problem) for each in state]
        return {site.site_id: sum(head[site.site_id] for head in heads) for site in problem.sites}

    def mixture_weights(self, state: Heads, problem: ServerProblem) -> dict[str, float]:
        """Worst mixture at the best weights; every head has its own, this is their mean."""
        heads = [self.binary.mixture_weights(each, problem) for each in state]
        return {site.site_id: sum(head[site.site_id] for head in heads) / len(heads) for site in problem.sites}

    def convex_part(self, state: Heads) -> Certificate | None:
        """Bounds of the convex part, summed over the heads; None for a method that has no such part."""
        parts = [part for each in state if (part := self.binary.convex_part(each)) is not None]
        return combined_certificate(parts) if parts else None

    def carried_proofs(self, state: Heads, problem: ServerProblem) -> tuple[CarriedProof, ...]:
        """What proves the bounds of every head to others; none where a head has nothing."""
        proofs = [self.binary.carried_proof(each, problem) for each in state]
        return tuple(proof for proof in proofs if proof is not None) if all(proofs) else ()

    def carried_proof(self, state: Heads, problem: ServerProblem) -> CarriedProof | None:
        """None: the heads have one each (:meth:`carried_proofs`)."""
        return None

    def note(self, state: Heads, problem: ServerProblem) -> str:
        """What the method says of its result, on one line; empty where it says nothing."""
        return self.binary.note(state, problem)

    def contradictions(
        self, state: Heads, problem: ServerProblem, answers: Mapping[str, Arrays]
    ) -> dict[str, Contradiction]:
        """Sites that contradict themselves in some head, with the first such."""
        found: dict[str, Contradiction] = {}
        for k, each in enumerate(state):
            of_head = {site: _head(arrays, k) for site, arrays in answers.items()}
            found = {**self.binary.contradictions(each, problem, of_head), **found}
        return found

    def anew(self, state: Heads, problem: ServerProblem, site: int) -> Heads:
        """State of every head after a site, by index, became another: a cohort that a plant left for good."""
        if not isinstance(self.binary, ForgetsSites):
            return self.init(problem)
        return tuple(self.binary.anew(each, site) for each in state)

    def warm(self, earlier: Heads, before: ServerProblem, problem: ServerProblem, kept: Sequence[int]) -> Heads:
        """State of every head from the last one of an earlier run; as :meth:`init` where the method starts cold."""
        if not isinstance(self.binary, StartsWarm):
            return self.init(problem)
        return tuple(self.binary.warm(each, before, problem, kept) for each in earlier)

    def forget_earlier(self, state: Heads, site: int) -> Heads:
        """State of every head without what was taken over of a site, by index."""
        return tuple(
            self.binary.forget_earlier(each, site) if isinstance(self.binary, StartsWarm) else each for each in state
        )

    def false_ends(
        self, state: Heads, problem: ServerProblem, weights: FloatArray, risks: Arrays
    ) -> dict[str, Contradiction]:
        """Sites whose risks (K,) at the end, at weights (K, D), cannot be true beside what they answered."""
        found: dict[str, Contradiction] = {}
        for k, each in enumerate(state):
            of_head = {site: float(told[k]) for site, told in risks.items()}
            found = {**self.binary.false_ends(each, problem, weights[k], of_head), **found}
        return found

    def of_sites(self, state: Heads, problem: ServerProblem, kept: Sequence[int]) -> Heads:
        """State of every head, of some of the sites by index."""
        return tuple(self.binary.of_sites(each, problem, kept) for each in state)

    def pack(self, state: Heads) -> dict[str, FloatArray]:
        """States of all heads, stacked; an array that not all have, or not in one shape, is there by head."""
        return stack_heads([self.binary.pack(each) for each in state])

    def pack_change(self, before: Heads | None, state: Heads) -> PackedChange:
        """What :meth:`pack` gives of ``state`` and did not of an earlier one; None: of no earlier one."""
        known = None if before is None else [self.binary.pack(each) for each in before]
        return packed_change(known, [self.binary.pack(each) for each in state])

    def unpack(self, arrays: Arrays) -> Heads:
        """State from :meth:`pack`."""
        alike = {name: array for name, array in arrays.items() if OF_HEAD not in name}
        heads = [_head(alike, k) for k in range(self.n_heads)]
        for name in arrays.keys() - alike.keys():
            plain, _, k = name.partition(OF_HEAD)
            heads[int(k)][plain] = arrays[name]
        return tuple(self.binary.unpack(head) for head in heads)


def _head(arrays: Arrays, k: int) -> dict[str, FloatArray]:
    return {name: np.asarray(array[k]) for name, array in arrays.items()}
