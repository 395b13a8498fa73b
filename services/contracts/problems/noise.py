"""What a plan asks of noise on sums, and what a version promises by it."""

from __future__ import annotations

from pydantic import Field

from models.cohorts.noise import NoisePlan, NoiseTerms
from services.contracts.base import Contract
from services.contracts.errors import InvalidInputError


class NoiseSpec(Contract):
    """Gaussian noise on the sums over cohorts (``models.cohorts.noise``), for plans whose rounds reveal sums alone.

    ``epsilon`` and ``delta`` are promised for one row of one plant replaced, over all ``rounds`` together; the run ends
    when they are spent. ``confidence``: with which probability the version's bounds hold. ``within``: Euclidean norm,
    intercept included, of the weights that are asked about and that the lower bound speaks of.
    """

    epsilon: float = Field(gt=0, le=1000, allow_inf_nan=False)
    delta: float = Field(default=1e-6, gt=0, le=0.01)
    confidence: float = Field(default=0.95, ge=0.5, lt=1)
    rounds: int = Field(default=40, ge=1, le=10_000)
    within: float = Field(default=20.0, gt=0, le=1000, allow_inf_nan=False)
    in_league: int = Field(default=0, ge=0, description="plants of a cohort that might tell others their noise")

    def honest(self, threshold: int) -> int:
        """How many plants' noise must be enough in a cohort whose rounds need ``threshold`` answers.

        ``InvalidInputError`` where none is left.
        """
        left = threshold - self.in_league
        if left < 1:
            raise InvalidInputError(
                f"noise of nobody is left: rounds need {threshold} answers, {self.in_league} plants may be in league; "
                "state larger cohorts, or fewer of them"
            )
        return left

    def plan(self, heads: int, cohorts: int) -> NoisePlan:
        """The budget of a run with so many heads, over so many cohorts."""
        return NoisePlan(self.epsilon, self.delta, self.confidence, self.rounds, self.within, heads, cohorts)


class CohortNoise(Contract):
    """The noise of one cohort, which all its plants sign with their mask keys: ``NoiseTerms`` on the wire."""

    row_share: float = Field(gt=0, le=1)
    honest: int = Field(ge=1)
    rho: float = Field(gt=0, allow_inf_nan=False)

    @property
    def terms(self) -> NoiseTerms:
        """As the mathematics takes them."""
        return NoiseTerms(self.row_share, self.honest, self.rho)


class NoisePromise(Contract):
    """What a version promises: of a row (``epsilon``, ``delta``), of its bounds ``confidence``.

    ``epsilon`` is that of the ``rounds`` that were run. Not in it: the scalars with which a plant joined, and what it
    tells at the end of a run (risks, scores), which its policy allows or not.
    """

    epsilon: float
    delta: float
    confidence: float
    rounds: int
    within: float

    @classmethod
    def of(cls, spec: NoiseSpec, plan: NoisePlan, rounds: int) -> NoisePromise:
        """Promise of a run that ended after so many rounds; ``ProblemError`` past the budget."""
        return cls(
            epsilon=plan.spent(rounds), delta=spec.delta, confidence=spec.confidence, rounds=rounds, within=spec.within
        )
