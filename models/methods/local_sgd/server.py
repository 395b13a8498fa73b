r"""Server halves of methods with local steps: a rule says how to ask and how to go on, and one server proves for all.

A rule's memory is a set of arrays, of which ``point`` (D,) is where it stands and ``round`` () counts the rounds of the
paper, which may be two exchanges of messages: first the losses, then the local steps. Rules know nothing of
certificates, so they also drive models whose loss is not convex (see ``models.local_training``).

:class:`LocalServer` adds the certificate: every exact loss and gradient that the sites answer is a cut.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from models.certificates import check_certificate
from models.cut_model import minimise
from models.lower_bound import lower_bound
from models.methods.certified import CertifiedServer
from models.methods.evidence import Evidence, cut_model, no_evidence, raise_lower, record, unpack_evidence
from models.methods.local_steps import LocalStepsSite
from models.problem import Arrays, Certificate, FloatArray, ServerProblem
from models.relative_set import RelativeSet

Memory: TypeAlias = dict[str, FloatArray]
_PREFIX = "rule_"
_EXACT = 2**53
_EVERY_ROUND, _RARELY = 20, 10


class LocalRule(ABC):
    """How a method asks its sites and what it does with their answers."""

    @abstractmethod
    def begin(self, problem: ServerProblem, point: FloatArray) -> Memory:
        """Memory before the first exchange; has ``point`` (D,) and ``round`` ()."""

    @abstractmethod
    def messages(self, memory: Memory, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """Message for each site: see :func:`message`."""

    @abstractmethod
    def advance(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        """Next memory; absent sites are missing from ``answers``."""

    def asked(self, memory: Memory) -> FloatArray | None:
        """Point at which this exchange learns exact losses; None where it has them already."""
        return memory["point"]

    def ambiguity(self, problem: ServerProblem) -> RelativeSet | None:
        """Set over the sites whose worst member the objective is; None: the problem's own weights.

        With a set, ``shares`` (G,) of the memory is the member of its A that the lower bound is proven with; ``phi``
        (), where it is there, stands for the phi of the set.
        """
        return None

    def note(self, memories: Sequence[Memory], problem: ServerProblem) -> str:
        """What the rule says of its result: see :class:`models.methods.base.HasNote`."""
        return ""


@dataclass(frozen=True)
class LocalState:
    """Evidence, and the memory of the rule."""

    evidence: Evidence
    memory: Memory


@dataclass(frozen=True)
class LocalServer(CertifiedServer[LocalState]):
    """Server half around a rule, for a convex loss of a linear model.

    The lower bound is raised at each of the first 20 points and at every tenth after that: it costs a cone program that
    grows with the rounds.
    """

    rule: LocalRule

    def init(self, problem: ServerProblem) -> LocalState:
        """Start from zero weights."""
        return LocalState(no_evidence(problem), self.rule.begin(problem, np.zeros(problem.dimension)))

    def messages(self, state: LocalState, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """What the rule asks."""
        return self.rule.messages(state.memory, problem)

    def step(self, state: LocalState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> LocalState:
        """Add the cuts and bound the optimum where there is something new; let the rule go on."""
        evidence, point = state.evidence, self.rule.asked(state.memory)
        memory = self.rule.advance(state.memory, problem, answers)
        if point is None:
            return LocalState(evidence, memory)
        evidence = record(evidence, problem, point, answers)
        ambiguity, count = self.rule.ambiguity(problem), evidence.points.shape[0]
        if ambiguity is not None:
            ambiguity = replace(ambiguity, phi=float(memory.get("phi", ambiguity.phi)))
            evidence = judge_upper(evidence, problem, ambiguity)
        if raise_due(count):
            if ambiguity is None:
                evidence, _ = raise_lower(evidence, problem)
            else:
                evidence = judge_lower(evidence, problem, memory["shares"])
        return LocalState(evidence, memory)

    def answer_shapes(self, problem: ServerProblem) -> dict[str, tuple[int, ...]]:
        """Loss, gradient, and where the steps ended."""
        return LocalStepsSite().shapes(problem.dimension)

    def note(self, states: Sequence[LocalState], problem: ServerProblem) -> str:
        """What the rule says."""
        return self.rule.note([state.memory for state in states], problem)

    def pack(self, state: LocalState) -> dict[str, FloatArray]:
        """Evidence and memory."""
        return {**state.evidence.pack(), **{_PREFIX + name: array for name, array in state.memory.items()}}

    def unpack(self, arrays: Arrays) -> LocalState:
        """State from :meth:`pack`."""
        memory = {
            name.removeprefix(_PREFIX): np.asarray(array) for name, array in arrays.items() if name.startswith(_PREFIX)
        }
        return LocalState(unpack_evidence(arrays), memory)


def raise_due(count: int) -> bool:
    """Whether the lower bound is raised after so many points."""
    return count <= _EVERY_ROUND or count % _RARELY == 0


def judge_upper(evidence: Evidence, problem: ServerProblem, ambiguity: RelativeSet) -> Evidence:
    r"""Evidence whose best point and upper bound are those of ``max_{lambda in Lambda} <lambda, f(w)>`` (RF eq. 6).

    Absent sites enter by their cuts.
    """
    risks, missing = evidence.risks, np.isnan(evidence.risks)
    if missing[-1].any():
        modelled = cut_model(evidence, problem).site_values(evidence.points)
        risks = np.where(missing & missing[-1], modelled, risks)
    totals = np.array([math.inf if np.isnan(row).any() else ambiguity.largest(row) for row in risks])
    best = int(np.argmin(totals)) if np.isfinite(totals).any() else -1
    return replace(evidence, upper=float(totals[best]) if best >= 0 else math.inf, best=best)


def judge_lower(evidence: Evidence, problem: ServerProblem, shares: FloatArray) -> Evidence:
    r"""Evidence with the lower bound that the member ``shares`` a (G,) of A proves, where it is the better one.

    Wherever A and B have a member in common, ``max_Lambda <lambda, f> >= max_A <a, f> >= <a, f>``, and the cut model
    bounds the last from below. So for phi = 0 the gap closes. For phi > 0 both bounds hold, but the lower one is that
    of the convex part max_A alone: a gap stays.

    Raises
    ------
    CertificateError
        The bounds contradict each other.
    """
    model, near = cut_model(evidence, problem).with_mixture(np.maximum(shares, 0.0)), evidence.best_point
    bound = lower_bound(model, minimise(model, near).multipliers, near)
    held = check_certificate(Certificate(evidence.upper, max(evidence.lower, bound), evidence.fresh_weight))
    return replace(evidence, lower=held.lower)


def message(
    point: FloatArray,
    *,
    step_size: float = 0.0,
    draw: int = 0,
    correction: FloatArray | None = None,
    snapshot_step: int = 0,
) -> dict[str, FloatArray]:
    """Message of ``LocalStepsSite``: where to stand, and how to step from there (``step_size`` 0: not at all)."""
    return {
        "point": point,
        "correction": np.zeros_like(point) if correction is None else correction,
        "step_size": np.array(step_size),
        "draw": np.array(float(draw)),
        "snapshot_step": np.array(float(snapshot_step)),
    }


def draw_number(seed: float, round_number: float, index: int) -> int:
    """Number below 2^53, so exact in float64, for what a site draws in a round; its own for each seed, round, site."""
    words = np.random.SeedSequence([int(seed), int(round_number), index]).generate_state(1, np.uint64)
    return int(words[0]) % _EXACT


def server_draws(seed: float, round_number: float) -> np.random.Generator:
    """Random numbers of the server in a round: the same ones whenever the round is taken up again."""
    return np.random.default_rng([int(seed), int(round_number), _EXACT])


def site_weights(problem: ServerProblem) -> FloatArray:
    """Weights a_g (G,)."""
    return np.array([site.weight for site in problem.sites])


def stacked(problem: ServerProblem, answers: Mapping[str, Arrays], name: str, absent: FloatArray) -> FloatArray:
    """One array of all sites' answers under a name, (G, ..); the rows of absent sites from ``absent``."""
    rows = [
        answers[site.site_id][name] if site.site_id in answers else absent[g] for g, site in enumerate(problem.sites)
    ]
    return np.array(rows)
