r"""The kin of DRFL (DRFL section 4.1), solved exactly by the level bundle: no ball at the sites.

- standard federated training: fixed site weights, ``min sum_s q_s E_s L``;
- AFL (Mohri et al. 2019): ``min max_{q in Q} sum_s q_s E_s L``, Q the ball over the sites as the problem states it;
- the problem of DRFA (Deng et al. 2020): Q is the whole simplex, so the worst plant counts; the stochastic method of
  that paper is ``models.methods.local_sgd.drfa``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from models.basics import Arrays, FloatArray
from models.methods.bundle.level import BundleServer, BundleState
from models.methods.protocol import SiteHalf
from models.problem import ServerProblem, SiteProblem
from models.site_ambiguity.ball import WHOLE_SIMPLEX


@dataclass(frozen=True)
class EmpiricalSite:
    """A site half on the rows as they are: radius 0, and no support, which only bounds moves."""

    half: SiteHalf

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """As the half answers without a ball."""
        plain = replace(problem.spec, radius=0.0, support=None)
        return self.half.answer(replace(problem, spec=plain), message, parameters)


@dataclass(frozen=True)
class WorstSiteServer(BundleServer):
    """The level bundle against the worst site, whatever ball over the sites the problem states."""

    def step(self, state: BundleState, problem: ServerProblem, answers: Mapping[str, Arrays]) -> BundleState:
        """As the bundle, on the whole simplex."""
        return super().step(state, replace(problem, mixture=WHOLE_SIMPLEX), answers)

    def mixture_weights(self, state: BundleState, problem: ServerProblem) -> dict[str, float]:
        """As the bundle, on the whole simplex."""
        return super().mixture_weights(state, replace(problem, mixture=WHOLE_SIMPLEX))
