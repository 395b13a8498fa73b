"""What all server halves that keep evidence have in common: certificate, weights, site risks, when to stop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np

from models.basics import Arrays, FloatArray
from models.cuts.contradiction import Contradiction, find_contradiction
from models.cuts.evidence import Evidence, of_sites, with_answers
from models.problem import Certificate, ServerProblem, Status


class HasEvidence(Protocol):
    """A state that holds evidence."""

    @property
    def evidence(self) -> Evidence:
        """Points, risks, cuts and bounds so far."""
        ...


StateT = TypeVar("StateT", bound=HasEvidence)


class CertifiedServer(ABC, Generic[StateT]):
    """Answers about a state that follow from its evidence alone.

    ``per_site`` names the arrays of the state whose rows are the sites'. ``partial_sums``: where a site stands for a
    cohort (``models.cohorts``), the sum over a part of it is welcome too, with NaN for its risk.
    """

    per_site: ClassVar[tuple[str, ...]] = ()
    partial_sums: ClassVar[bool] = False

    @abstractmethod
    def asked(self, state: StateT) -> FloatArray | None:
        """Point (D,) at which the answers that are due have their risk and cuts; None where they have none."""

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
        found = {site: find_contradiction(grown, problem, ids.index(site)) for site in answers}
        return {site: each for site, each in found.items() if each is not None}

    def of_sites(self, state: StateT, problem: ServerProblem, kept: Sequence[int]) -> StateT:
        """State of a run that goes on with some of its sites, by index; ``problem`` is that of those sites.

        What the others said leaves no trace in the bounds. The same question is asked next, of fewer.
        """
        rows = {name: np.asarray(getattr(state, name))[list(kept)] for name in self.per_site}
        return replace(state, evidence=of_sites(state.evidence, kept), **rows)  # type: ignore[type-var] # every state is a dataclass

    def status(self, state: StateT, problem: ServerProblem) -> Status:
        """Certified at the wanted gap."""
        near = state.evidence.certificate.meets(problem.gap, problem.absolute_gap)
        return Status.CERTIFIED if near else Status.CONTINUE

    def certificate(self, state: StateT) -> Certificate:
        """Bounds after the last step."""
        return state.evidence.certificate

    def weights(self, state: StateT) -> FloatArray:
        """The visited point that attains the upper bound."""
        return state.evidence.best_point

    def site_risks(self, state: StateT, problem: ServerProblem) -> dict[str, float]:
        """Worst-case risk of each site at the best point; NaN where it did not answer there."""
        return state.evidence.best_risks(problem)

    def mixture_weights(self, state: StateT, problem: ServerProblem) -> dict[str, float]:
        """Worst mixture of the sites at the best point."""
        return state.evidence.worst_mixture(problem)
