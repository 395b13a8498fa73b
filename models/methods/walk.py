r"""What methods of local steps have in common: a walk of the server's point, and the certificate around it.

A walk says what the sites are asked and where the server stands next. It is the whole method where no certificate is
wanted (a network has none). :class:`WalkServer` makes a server half of it: the exact losses and gradients that the
sites answer at the point asked are cuts of their mean losses, so the risk at the best point asked is an upper bound
and the cut model gives a lower one, as for every other method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from models.methods.certified import CertifiedServer
from models.methods.evidence import Evidence, no_evidence, raise_lower, record, unpack_evidence
from models.problem import Arrays, FloatArray, ServerProblem

WalkT = TypeVar("WalkT")
_EVERY_ROUND = 20
_RARELY = 10
_WALK = "walk_"


class Walk(Protocol[WalkT]):
    """How the server's point moves. Pure: the state goes in, the next state comes out; a state is model-sized."""

    def start(self, problem: ServerProblem, point: FloatArray) -> WalkT:
        """State before the first round, from the weights ``point`` (D,)."""
        ...

    def asked(self, state: WalkT) -> FloatArray:
        """Point (D,) at which the sites are asked in this round."""
        ...

    def weights(self, state: WalkT) -> FloatArray:
        """Weights (D,) with which the method would end here."""
        ...

    def messages(self, state: WalkT, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """Message for each site, by site id."""
        ...

    def step(self, state: WalkT, problem: ServerProblem, answers: Mapping[str, Arrays]) -> WalkT:
        """Next state from the answers of the sites that were there."""
        ...

    def answer_shapes(self, problem: ServerProblem) -> dict[str, tuple[int, ...]]:
        """Names and shapes that a valid answer has."""
        ...

    def pack(self, state: WalkT) -> dict[str, FloatArray]:
        """State as arrays of float64, exactly."""
        ...

    def unpack(self, arrays: Arrays) -> WalkT:
        """State from :meth:`pack`; other arrays are left alone."""
        ...


@dataclass(frozen=True)
class WalkState(Generic[WalkT]):
    """What is known of the risks, and where the walk stands."""

    evidence: Evidence
    walk: WalkT


@dataclass(frozen=True)
class WalkServer(CertifiedServer[WalkState[WalkT]]):
    """Server half of a walk on a convex problem of the linear model.

    The lower bound is raised in each of the first 20 rounds and in every tenth after that: it costs a cone program that
    grows with the rounds.
    """

    walk: Walk[WalkT]

    def init(self, problem: ServerProblem) -> WalkState[WalkT]:
        """Start from zero weights."""
        return WalkState(no_evidence(problem), self.walk.start(problem, np.zeros(problem.dimension)))

    def messages(self, state: WalkState[WalkT], problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """What the walk asks."""
        return self.walk.messages(state.walk, problem)

    def step(self, state: WalkState[WalkT], problem: ServerProblem, answers: Mapping[str, Arrays]) -> WalkState[WalkT]:
        """Add the cuts at the point asked, bound the optimum, walk on."""
        evidence = record(state.evidence, problem, self.walk.asked(state.walk), answers)
        rounds = evidence.points.shape[0]
        if rounds <= _EVERY_ROUND or rounds % _RARELY == 0:
            evidence, _ = raise_lower(evidence, problem)
        return WalkState(evidence, self.walk.step(state.walk, problem, answers))

    def answer_shapes(self, problem: ServerProblem) -> dict[str, tuple[int, ...]]:
        """What the walk's sites answer."""
        return self.walk.answer_shapes(problem)

    def pack(self, state: WalkState[WalkT]) -> dict[str, FloatArray]:
        """Evidence and walk."""
        return state.evidence.pack() | {_WALK + name: array for name, array in self.walk.pack(state.walk).items()}

    def unpack(self, arrays: Arrays) -> WalkState[WalkT]:
        """State from :meth:`pack`."""
        own = {name.removeprefix(_WALK): array for name, array in arrays.items() if name.startswith(_WALK)}
        return WalkState(unpack_evidence(arrays), self.walk.unpack(own))
