"""What all server halves that keep evidence have in common: certificate, weights, site risks, when to stop."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from models.methods.evidence import Evidence
from models.problem import Certificate, FloatArray, ServerProblem, Status


class HasEvidence(Protocol):
    """A state that holds evidence."""

    @property
    def evidence(self) -> Evidence:
        """Points, risks, cuts and bounds so far."""
        ...


StateT = TypeVar("StateT", bound=HasEvidence)


class CertifiedServer(Generic[StateT]):
    """Answers about a state that follow from its evidence alone."""

    def status(self, state: StateT, problem: ServerProblem) -> Status:
        """Certified at the wanted gap."""
        return Status.CERTIFIED if state.evidence.certificate.gap <= problem.gap else Status.CONTINUE

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
