r"""Server half around a rule of local steps: every exact loss and gradient that the sites answer is a cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.basics import Arrays, FloatArray
from models.cuts.bounds import counted_risks, mixture_bound, record, tighten_lower_bound
from models.cuts.evidence import Evidence
from models.methods.certified import CertifiedServer, State
from models.methods.local_sgd.rule import LocalRule, Memory
from models.methods.local_sgd.site import LocalStepsSite
from models.methods.local_sgd.standstill import MOST_STILL, STANDS_STILL, still_exchanges
from models.problem import ServerProblem, Status

_PREFIX, _STILL = "rule_", "still"
_EVERY_ROUND, _RARELY = 20, 10
"""Points up to which the lower bound is raised each time, and every how manieth after: it moves most at first."""


@dataclass(frozen=True)
class LocalState(State):
    """Evidence, the memory of the rule, and the exchanges, one after the other, in which no site took a step."""

    memory: Memory
    still: int = 0


@dataclass(frozen=True)
class LocalServer(CertifiedServer[LocalState]):
    """Server half around a rule, for a convex loss of a linear model.

    The lower bound is raised at each of the first 20 points and at every tenth after that: it costs a cone program that
    grows with the rounds.
    """

    rule: LocalRule
    asks: LocalStepsSite = LocalStepsSite()

    def asked(self, state: LocalState) -> FloatArray | None:
        """Where the rule learns exact losses in this exchange."""
        return self.rule.asked(state.memory)

    def of_sites(self, state: LocalState, problem: ServerProblem, kept: Sequence[int]) -> LocalState:
        """The rule begins anew from where it stands; the cuts stay."""
        return LocalState(state.evidence.of_sites(kept), self.rule.begin(problem, state.memory["point"]))

    def init(self, problem: ServerProblem) -> LocalState:
        """Start from zero weights."""
        return LocalState(Evidence.empty(problem), self.rule.begin(problem, np.zeros(problem.dimension)))

    def messages(self, state: LocalState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """What the rule asks."""
        return self.rule.messages(state.memory, problem)

    def step(self, state: LocalState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> LocalState:
        """Add the cuts and bound the optimum where there is something new; let the rule go on."""
        evidence, point = state.evidence, self.rule.asked(state.memory)
        memory = self.rule.advance(state.memory, problem, answers)
        still = still_exchanges(state.still, self.rule.messages(state.memory, problem), answers)
        if point is None:
            return LocalState(evidence.passed(), memory, still)
        evidence = record(evidence, problem, point, answers)
        count = evidence.points.shape[0]
        raised = count <= _EVERY_ROUND or count % _RARELY == 0
        return LocalState(self.bounded(evidence, problem, memory, raised=raised), memory, still)

    def bounded(self, evidence: Evidence, problem: ServerProblem, memory: Memory, *, raised: bool) -> Evidence:
        """Evidence with the bounds of the objective; ``raised``: with a new lower one, not only the one so far."""
        ambiguity = self.rule.ambiguity(problem)
        if ambiguity is None:
            return tighten_lower_bound(evidence, problem)[0] if raised else evidence
        ambiguity = replace(ambiguity, phi=float(memory.get("phi", ambiguity.phi)))
        evidence = evidence.judged_by(ambiguity.totals(counted_risks(evidence, problem)))
        return evaluate_lower(evidence, problem, memory["shares"]) if raised else evidence

    def status(self, state: LocalState, problem: ServerProblem) -> Status:
        """Certified at the wanted gap; stalled where no site steps any more."""
        status = super().status(state, problem)
        return Status.STALLED if status is Status.CONTINUE and state.still >= MOST_STILL else status

    def note(self, states: Sequence[LocalState], problem: ServerProblem) -> str:
        """What the rule says, and whether all stands still."""
        still = STANDS_STILL if all(state.still >= MOST_STILL for state in states) else ""
        return "; ".join(filter(None, (self.rule.note([state.memory for state in states], problem), still)))

    def pack(self, state: LocalState) -> dict[str, FloatArray]:
        """Evidence, memory and what stands still."""
        memory = {_PREFIX + name: array for name, array in state.memory.items()}
        return {**state.evidence.pack(), **memory, _STILL: np.array(float(state.still))}

    def unpack(self, arrays: Arrays) -> LocalState:
        """State from :meth:`pack`; version 0.1 did not count what stands still."""
        memory = {
            name.removeprefix(_PREFIX): np.asarray(array) for name, array in arrays.items() if name.startswith(_PREFIX)
        }
        return LocalState(Evidence.unpack(arrays), memory, int(arrays.get(_STILL, 0.0)))


def evaluate_lower(evidence: Evidence, problem: ServerProblem, shares: FloatArray) -> Evidence:
    r"""Evidence with the lower bound that the member ``shares`` a (G,) of A proves, where it is the better one.

    Wherever A and B have a member in common, ``max_Lambda <lambda, f> >= max_A <a, f> >= <a, f>``, and the cut model
    bounds the last from below. So for phi = 0 the gap closes. For phi > 0 both bounds hold, but the lower one is that
    of the convex part max_A alone: a gap stays. ``CertificateError`` where the bounds contradict each other.
    """
    return evidence.with_lower(mixture_bound(evidence, problem, np.maximum(shares, 0.0)))
