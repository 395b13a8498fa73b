r"""q-FedAvg (Li, Sanjabi, Beirami, Smith 2020, Algorithm 2): sites with a larger loss count for more.

The objective is ``sum_g a_g f_g(w)^(q+1) / (q+1)``; with L = 1 / step_size and ``v_g = L (w - w_g)``,

    w <- w - sum_g a_g f_g^q v_g / sum_g a_g (q f_g^(q-1) ||v_g||^2 + L f_g^q).

q = 0 is FedAvg. The bounds are those of the plain mean loss ``sum_g a_g f_g``, which this method does not minimise for
q > 0: they say what fairness costs on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays
from models.methods.local_sgd.fedavg import AveragingRule, drawn_sites
from models.methods.local_sgd.rule import Memory, step_size
from models.problem import ServerProblem

_LEAST_LOSS = 1e-12


@dataclass(frozen=True)
class FairAveragingRule(AveragingRule):
    """Asks as FedAvg does, and weighs the answers by the losses."""

    def advance(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        """One step over the drawn sites that answered."""
        number, q, point = float(memory["round"]), problem.parameters["q"], memory["point"]
        inverse = 1.0 / step_size(problem, number)
        move, size = np.zeros_like(point), 0.0
        for g in drawn_sites(problem, number):
            site = problem.sites[g]
            answer = answers.get(site.site_id)
            if answer is None:
                continue
            loss = max(float(answer["risk"]), _LEAST_LOSS)
            change = inverse * (point - answer["local_point"])
            move = move + site.weight * loss**q * change
            size += site.weight * (q * loss ** (q - 1.0) * float(change @ change) + inverse * loss**q)
        return {"point": point - move / size if size > 0 else point, "round": np.array(number + 1.0)}

    def note(self, memories: Sequence[Memory], problem: ServerProblem) -> str:
        """What the bounds speak of, where that is not what the method minimises."""
        q = problem.parameters["q"]
        return f"q {q:.4g}: the bounds are those of the mean loss, which the method does not minimise" if q > 0 else ""
