r"""Server half around a rule of local steps for a loss that is not convex: no cuts, no bounds, one best point.

What a site answers about a network is no cut of its loss: where the loss bends down, a tangent lies above it. So
nothing is proven from below, and the certificate says so: its lower bound is minus infinity and its gap infinite. Its
upper one is the value of the method's objective at the visited point where that is least: exact, for every site tells
its exact mean loss at every point. A point counts only where all sites told it, since nothing stands in for one that
is away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from models.basics import Arrays, FloatArray
from models.cuts.carried_proof import CarriedProof
from models.cuts.contradiction import Contradiction
from models.methods.answer_arrays import stacked
from models.methods.local_sgd.drfa import WorstMixtureServer
from models.methods.local_sgd.rule import Memory
from models.methods.local_sgd.sampled_sites import reckoned
from models.methods.local_sgd.server import LocalServer
from models.methods.local_sgd.standstill import MOST_STILL, STANDS_STILL, still_exchanges
from models.methods.protocol import NO_PARAMETERS
from models.problem import Certificate, ServerProblem, Status
from models.site_ambiguity.ball import worst_mixture

NO_CERTIFICATE: Final = "no certificate: the objective is not convex, so nothing bounds it from below"
_PREFIX = "rule_"


@dataclass(frozen=True)
class UncertifiedState:
    """The rule's ``memory``; the best ``point`` (D,) with its ``risks`` (G,) and their ``value``; who answered last.

    ``still``: exchanges, one after the other, in which no site took a step.
    """

    memory: Memory
    point: FloatArray
    risks: FloatArray
    value: float = math.inf
    fresh_weight: float = 0.0
    still: int = 0


@dataclass(frozen=True, eq=False)
class UncertifiedServer:
    """A :class:`models.methods.protocol.ServerHalf` with the rule of ``certified``, from the parameters ``start`` (D,).

    Its state does not grow with the rounds.
    """

    certified: LocalServer
    start: FloatArray

    def init(self, problem: ServerProblem) -> UncertifiedState:
        """Nothing known but where to start."""
        memory = self.certified.rule.begin(problem, self.start)
        return UncertifiedState(memory, self.start, np.full(len(problem.sites), np.nan))

    def messages(self, state: UncertifiedState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """What the rule asks."""
        return self.certified.rule.messages(state.memory, problem)

    def step(self, state: UncertifiedState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> UncertifiedState:
        """Let the rule go on; keep the point of this exchange where all told their loss and it is the best so far."""
        point = self.certified.rule.asked(state.memory)
        memory = self.certified.rule.advance(state.memory, problem, answers)
        still = still_exchanges(state.still, self.messages(state, problem), answers)
        if point is None:
            return replace(state, memory=memory, still=still)
        risks = stacked(problem, answers, "risk", np.full(len(problem.sites), np.nan))
        there = float(problem.weights[~np.isnan(risks)].sum())
        # The objective of a rule may change with its memory, so the best point is judged anew.
        held = self._value(state.risks, problem, memory)
        now = self._value(risks, problem, memory)
        if now < held:
            return UncertifiedState(memory, point, risks, now, there, still)
        return replace(state, memory=memory, value=held, fresh_weight=there, still=still)

    def _value(self, risks: FloatArray, problem: ServerProblem, memory: Memory) -> float:
        """The method's objective at the losses (G,) of the sites; infinite where one of them is not known."""
        if np.isnan(risks).any():
            return math.inf
        if isinstance(self.certified, WorstMixtureServer):
            problem = reckoned(problem)
        ambiguity = self.certified.rule.ambiguity(problem)
        if ambiguity is None:
            return float(worst_mixture(risks, problem.weights, problem.mixture).value)
        return float(replace(ambiguity, phi=float(memory.get("phi", ambiguity.phi))).totals(risks[None])[0])

    def answer_shapes(
        self, dimension: int, n_swings: int = 0, parameters: Mapping[str, float] = NO_PARAMETERS
    ) -> dict[str, tuple[int, ...]]:
        """Names and shapes of a valid answer: those of the method."""
        return self.certified.answer_shapes(dimension, n_swings, parameters)

    def status(self, state: UncertifiedState, problem: ServerProblem) -> Status:
        """To go on, while any site takes a step: nothing else ends it but a round limit."""
        return Status.STALLED if state.still >= MOST_STILL else Status.CONTINUE

    def certificate(self, state: UncertifiedState) -> Certificate:
        """The value at the best point, and nothing from below."""
        return Certificate(state.value, -math.inf, state.fresh_weight)

    def weights(self, state: UncertifiedState) -> FloatArray:
        """The best point; where none counted, the one where the rule stands."""
        return state.point if math.isfinite(state.value) else state.memory["point"]

    def site_risks(self, state: UncertifiedState, problem: ServerProblem) -> dict[str, float]:
        """Mean loss of each site at the best point; NaN before there is one."""
        return {site.site_id: float(risk) for site, risk in zip(problem.sites, state.risks, strict=True)}

    def mixture_weights(self, state: UncertifiedState, problem: ServerProblem) -> dict[str, float]:
        """The sites' own weights: what a rule last weighed them by proves nothing."""
        return {site.site_id: site.weight for site in problem.sites}

    def convex_part(self, state: UncertifiedState) -> Certificate | None:
        """None: it has none."""
        return None

    def note(self, states: Sequence[UncertifiedState], problem: ServerProblem) -> str:
        """That there is no certificate, and whether all stands still; what the rule says is of convex losses."""
        still = all(state.still >= MOST_STILL for state in states)
        return f"{NO_CERTIFICATE}; {STANDS_STILL}" if still else NO_CERTIFICATE

    def contradictions(
        self, state: UncertifiedState, problem: ServerProblem, answers: Mapping[str, Arrays]
    ) -> dict[str, Contradiction]:
        """None: honest answers about a loss that is not convex contradict every convex one."""
        return {}

    def false_ends(
        self, state: UncertifiedState, problem: ServerProblem, point: FloatArray, risks: Mapping[str, float]
    ) -> dict[str, Contradiction]:
        """None, as for :meth:`contradictions`."""
        return {}

    def of_sites(self, state: UncertifiedState, problem: ServerProblem, kept: Sequence[int]) -> UncertifiedState:
        """The rule begins anew from where it stands; the best point counts by those that stay once it is asked again.

        Its value was that of all of them.
        """
        memory = self.certified.rule.begin(problem, state.memory["point"])
        return UncertifiedState(memory, state.point, np.full(len(kept), np.nan))

    def carried_proof(self, state: UncertifiedState, problem: ServerProblem) -> CarriedProof | None:
        """None: there are no cuts."""
        return None

    def pack(self, state: UncertifiedState) -> dict[str, FloatArray]:
        """Memory and best point."""
        memory = {_PREFIX + name: array for name, array in state.memory.items()}
        figures = np.array([state.value, state.fresh_weight, float(state.still)])
        return {**memory, "best_point": state.point, "best_risks": state.risks, "figures": figures}

    def unpack(self, arrays: Arrays) -> UncertifiedState:
        """State from :meth:`pack`; version 0.1 did not count what stands still."""
        memory = {
            name.removeprefix(_PREFIX): np.asarray(array) for name, array in arrays.items() if name.startswith(_PREFIX)
        }
        value, fresh_weight, *still = (float(each) for each in arrays["figures"])
        point, risks = np.asarray(arrays["best_point"]), np.asarray(arrays["best_risks"])
        return UncertifiedState(memory, point, risks, value, fresh_weight, int(sum(still)))
