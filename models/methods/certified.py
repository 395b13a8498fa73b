"""What all server halves that keep evidence have in common: certificate, weights, site risks, when to stop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from models.basics import Arrays, FloatArray
from models.cuts.carried_proof import CarriedProof, carried_proof
from models.cuts.contradiction import Contradiction, find_contradiction, find_false_end, suspected
from models.cuts.evidence import Evidence, with_answers
from models.cuts.held_open import stands_still
from models.methods.protocol import NO_PARAMETERS
from models.problem import Certificate, ServerProblem, Status


class HasShapes(Protocol):
    """A site half that says what its answers look like."""

    def shapes(self, dimension: int, n_swings: int = 0) -> dict[str, tuple[int, ...]]:
        """Names and shapes of a valid answer."""


@dataclass(frozen=True)
class State:
    """What a run has gathered: points, risks, cuts and bounds so far."""

    evidence: Evidence


StateT = TypeVar("StateT", bound=State)
_STILL = 1e-14
"""Relative to 1 and the size of a point: some fifty times what float64 tells apart."""


class CertifiedServer(ABC, Generic[StateT]):
    """Answers about a state that follow from its evidence alone.

    ``per_site`` names the arrays of the state whose rows are the sites'. ``partial_sums``: where a site stands for a
    cohort (``models.cohorts``), the sum over a part of it is welcome too, with NaN for its risk.
    ``cut_at_point``: a site answers with the cut at the point where its risk is told, but for what its guard does.
    """

    per_site: ClassVar[tuple[str, ...]] = ()
    partial_sums: ClassVar[bool] = False
    cut_at_point: ClassVar[bool] = False

    @property
    @abstractmethod
    def asks(self) -> HasShapes:
        """The site half that answers."""

    @abstractmethod
    def asked(self, state: StateT) -> FloatArray | None:
        """Point (D,) at which the answers that are due have their risk and cuts; None where they have none."""

    def answer_shapes(
        self, dimension: int, n_swings: int = 0, parameters: Mapping[str, float] = NO_PARAMETERS
    ) -> dict[str, tuple[int, ...]]:
        """Names and shapes of a valid answer."""
        return self.asks.shapes(dimension, n_swings)

    def as_cuts(self, answer: Arrays) -> Arrays:
        """An answer by the names of ``models.methods.site_answers``."""
        return answer

    def contradictions(
        self, state: StateT, problem: ServerProblem, answers: Mapping[str, Arrays]
    ) -> dict[str, Contradiction]:
        """Sites whose answers, with those that they gave earlier, belong to no convex risk; by site id."""
        point = self.asked(state)
        if point is None:
            return {}
        cuts = {site: self.as_cuts(each) for site, each in answers.items()}
        grown = with_answers(state.evidence, problem, point, cuts)
        ids = [site.site_id for site in problem.sites]
        suspects = {ids[place] for place in suspected(grown, problem)}
        found = {site: find_contradiction(grown, problem, ids.index(site)) for site in answers if site in suspects}
        return {site: each for site, each in found.items() if each is not None}

    def false_ends(
        self, state: StateT, problem: ServerProblem, point: FloatArray, risks: Mapping[str, float]
    ) -> dict[str, Contradiction]:
        """Sites whose risk at the end, at a point (D,), cannot be true beside what they answered; by site id.

        For a method that minimises the worst-case risk which the problem states: others' answers are of other risks.
        """
        ids = [site.site_id for site in problem.sites]
        found = {
            site: find_false_end(state.evidence, problem, ids.index(site), point, risk)
            for site, risk in risks.items() if site in ids
        }
        return {site: each for site, each in found.items() if each is not None}

    def of_sites(self, state: StateT, problem: ServerProblem, kept: Sequence[int]) -> StateT:
        """State of a run that goes on with some of its sites, by index; ``problem`` is that of those sites.

        What the others said leaves no trace in the bounds. The same question is asked next, of fewer.
        """
        rows = {name: np.asarray(getattr(state, name))[list(kept)] for name in self.per_site}
        return replace(state, evidence=state.evidence.of_sites(kept), **rows)

    def status(self, state: StateT, problem: ServerProblem) -> Status:
        """Certified at the wanted gap; stalled where a site keeps it open and no better point comes."""
        if state.evidence.certificate.meets(problem.gap, problem.absolute_gap):
            return Status.CERTIFIED
        still = stands_still(state.evidence, problem, together=self.cut_at_point)
        return Status.STALLED if still else Status.CONTINUE

    def certificate(self, state: StateT) -> Certificate:
        """Bounds after the last step."""
        return state.evidence.certificate

    def weights(self, state: StateT) -> FloatArray:
        """The visited point that attains the upper bound."""
        return state.evidence.best_point

    def site_risks(self, state: StateT, problem: ServerProblem) -> dict[str, float]:
        """Worst-case risk of each site at the best point; NaN where it did not answer there."""
        return state.evidence.best_risks(problem)

    def carried_proof(self, state: StateT, problem: ServerProblem) -> CarriedProof | None:
        """What proves the bounds of the worst mixture's risk to others; None where there is nothing."""
        return carried_proof(state.evidence, problem)

    def convex_part(self, state: StateT) -> Certificate | None:
        """None: the certificate is that of the whole."""
        return None

    def note(self, states: Sequence[StateT], problem: ServerProblem) -> str:
        """Nothing to say."""
        return ""

    def mixture_weights(self, state: StateT, problem: ServerProblem) -> dict[str, float]:
        """Worst mixture of the sites at the best point."""
        return state.evidence.worst_mixture(problem)


@dataclass(frozen=True)
class PointState(State):
    """Evidence and the ``point`` (D,) that is asked next; ``stagnated``: no answer to it leads any further."""

    point: FloatArray
    stagnated: bool = field(default=False, kw_only=True)


def is_still(moved: float, point: FloatArray, upper: float) -> bool:
    """Whether a next ``point`` (D,) is one that was asked, as near as ``moved``, or a risk of ``upper`` is rounding."""
    return moved <= _STILL * (1.0 + float(np.abs(point).max())) or upper <= _STILL


PointStateT = TypeVar("PointStateT", bound=PointState)
_PACKED_AS = {"stagnated": "still"}
"""Names in a packed state that differ from the fields': those of version 0.1, whose states are still read."""


class PointServer(CertifiedServer[PointStateT]):
    """A server half that asks all sites at one point, from a state of arrays and flags."""

    state: ClassVar[type[Any]]

    def init(self, problem: ServerProblem) -> PointStateT:
        """Nothing known; the first point is zero."""
        state: PointStateT = self.state(Evidence.empty(problem), np.zeros(problem.dimension))
        return state

    def asked(self, state: PointStateT) -> FloatArray:
        """The point."""
        return state.point

    def messages(self, state: PointStateT, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """The same point for every site."""
        return {site.site_id: {"point": state.point} for site in problem.sites}

    def status(self, state: PointStateT, problem: ServerProblem) -> Status:
        """Certified at the wanted gap; stalled where no further progress is possible in float64."""
        status = super().status(state, problem)
        return Status.STALLED if status is Status.CONTINUE and state.stagnated else status

    def pack(self, state: PointStateT) -> dict[str, FloatArray]:
        """Evidence, and the state's own arrays and flags."""
        own = {_PACKED_AS.get(name, name): np.asarray(getattr(state, name), np.float64) for name in self._own}
        return {**state.evidence.pack(), **own}

    def unpack(self, arrays: Arrays) -> PointStateT:
        """State from :meth:`pack`; a flag that version 0.1 did not have is down."""
        found = {name: arrays[packed] for name in self._own if (packed := _PACKED_AS.get(name, name)) in arrays}
        own = {name: array if array.ndim else bool(array) for name, array in found.items()}
        state: PointStateT = self.state(Evidence.unpack(arrays), **own)
        return state

    @property
    def _own(self) -> list[str]:
        return [each.name for each in fields(self.state) if each.name != "evidence"]
