r"""Scaff-PD-IA (RF Algorithms 1 and 2), and its cases Scaff-PD (phi = 0) and SCAFFOLD (sets of a single point).

    min_w max_{lambda in Lambda_phi(A, B)} sum_g lambda_g f_g(w),     A = {a <= weights/alpha}, B = {b <= weights/beta}

(capped simplices; equal weights 1/n give the paper's ``1/(alpha n)``, alpha = beta = 1 the weights themselves). One
round of the paper is two exchanges of messages:

1. every site tells its loss f_g and gradient c_g at w; the server extrapolates the losses, takes the dual step to the
   next lambda, and makes the control variate ``c = sum_g lambda_g c_g``;
2. every site takes J local steps ``u <- u - eta (grad f_g(u; batch) - c_g + c)``, where c comes in the message and c_g
   is computed again, so that the site need not remember anything; the server steps
   ``w <- w - tau sum_g lambda_g (w - u_g) / (eta J)``. Weights lambda_g may be negative.

c_g is the gradient over all rows, which the paper's stochastic one may be. An absent site stays with its last loss and
gradient, and its local steps count as c. Step sizes: ``models.methods.local_sgd.scaff_steps``. Losses must be smooth.

phi is given, or chosen by eq. (8): with ``choose_after`` R above 0 the first R rounds run with phi 0, some exchanges
more find the curvature (``models.methods.local_sgd.phi_choice``), and the run goes on with the phi that they give.

For phi = 0 the bounds close on the optimum. For phi > 0 the upper one is the exact objective at the best point and the
lower one that of its convex part, max_A, so a gap stays (``models.methods.local_sgd.server.evaluate_lower``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from models.basics import Arrays, FloatArray
from models.fairness.ambiguity_set import RelativeSet
from models.fairness.dual_step import dual_step
from models.methods.answer_arrays import stacked
from models.methods.local_sgd.phi_choice import absorb, begin_choice, chosen_phi, probe, without_choice
from models.methods.local_sgd.rule import LocalRule, Memory, message, step_messages
from models.methods.local_sgd.scaff_steps import Steps, fairness_note, step_rule
from models.problem import ServerProblem

_LOSSES, _STEPS, _CURVATURE = 0.0, 1.0, 2.0
"""Phases: what an exchange is for."""
_WHOLE = {"phi": 0.0, "alpha": 1.0, "beta": 1.0}
"""The set where a method has no such parameter: the site weights alone."""


@dataclass(frozen=True)
class ScaffRule(LocalRule):
    """Two exchanges a round; memory: point, round, phase, losses, slopes, lambda, shares, and the step sizes."""

    reads_slopes: ClassVar[bool] = True

    def ambiguity(self, problem: ServerProblem) -> RelativeSet:
        """Lambda_phi(A, B) of the parameters; without them the single point of the site weights."""
        phi, alpha, beta = (problem.parameters.get(name, whole) for name, whole in _WHOLE.items())
        return RelativeSet.of_weights(problem.weights, phi, alpha, beta)

    def begin(self, problem: ServerProblem, point: FloatArray) -> Memory:
        """Start from a point, with the site weights for lambda."""
        count, weights = len(problem.sites), problem.weights
        size = replace(self.ambiguity(problem), phi=self._first_phi(problem)).sum_norm()
        return {
            "point": point,
            "round": np.array(0.0),
            "phase": np.array(_LOSSES),
            "losses": np.full(count, np.nan),
            "slopes": np.zeros((count, point.shape[0])),
            "lambda": weights,
            "shares": weights,
            "sum_norm": np.array(size),
            "phi": np.array(self._first_phi(problem)),
            **_packed(step_rule(problem.parameters, size).first),
        }

    def asked(self, memory: Memory) -> FloatArray | None:
        """The point, in the first exchange of a round; where the curvature is looked for, the point beside it."""
        if memory["phase"] == _CURVATURE:
            return probe(memory)
        return memory["point"] if memory["phase"] == _LOSSES else None

    def messages(self, memory: Memory, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """First the losses; then local steps, towards the mean gradient in place of the site's own."""
        asked = self.asked(memory)
        if asked is not None:
            return {site.site_id: message(asked) for site in problem.sites}
        control = memory["lambda"] @ memory["slopes"]
        sizes = np.full(len(problem.sites), float(memory["eta"]))
        return step_messages(problem, memory["point"], float(memory["round"]), sizes, control=control)

    def advance(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        """Dual step after the first exchange, primal step after the second; in between, once, the choice of phi."""
        if memory["phase"] == _CURVATURE:
            return self._choose(memory, problem, answers)
        if memory["phase"] == _LOSSES:
            return self._dual(memory, problem, answers)
        return self._primal(memory, problem, answers)

    def note(self, memories: Sequence[Memory], problem: ServerProblem) -> str:
        """Scaff-PD-IA: whether its convergence is proven, and what the bounds speak of."""
        if "phi" not in problem.parameters:
            return ""
        wait = problem.parameters["choose_after"]
        if wait > 0 and any(float(memory["round"]) <= wait for memory in memories):
            return "the run ended before phi was chosen: it trained with phi 0"
        largest = max(float(memory["phi"]) for memory in memories)
        return fairness_note(problem.parameters, replace(self.ambiguity(problem), phi=largest))

    def _dual(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        point = memory["point"]
        losses = stacked(problem, answers, "risk", memory["losses"])
        if np.isnan(losses).all():
            return memory
        slopes = memory["slopes"].copy()
        for g, site in enumerate(problem.sites):
            if site.site_id in answers:
                slopes[g] = answers[site.site_id]["slope"] + problem.parameters.get("ridge", 0.0) * point
        if memory["phi"] == 0.0 and 0 < problem.parameters.get("choose_after", 0.0) == memory["round"]:
            if len(answers) == len(problem.sites):
                told = {**memory, "losses": losses, "slopes": slopes, "phase": np.array(_CURVATURE)}
                return begin_choice(told, self.ambiguity(problem))
        known = np.where(np.isnan(losses), np.nanmean(losses), losses)
        before = np.where(np.isnan(memory["losses"]), known, memory["losses"])
        steps = _unpacked(memory)
        ahead = known + steps.extrapolation * (known - before)
        ambiguity = replace(self.ambiguity(problem), phi=float(memory["phi"]))
        taken = dual_step(ambiguity, ahead, memory["lambda"], steps.sigma)
        new = {"losses": losses, "slopes": slopes, "lambda": taken.weights, "shares": taken.worst}
        return {**memory, **new, "phase": np.array(_STEPS)}

    def _primal(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        steps, point = _unpacked(memory), memory["point"]
        rule = step_rule(problem.parameters, float(memory["sum_norm"]))
        away = point - memory["lambda"] @ memory["slopes"] * (steps.eta * rule.local_steps)
        ended = stacked(problem, answers, "local_point", np.broadcast_to(away, memory["slopes"].shape))
        direction = memory["lambda"] @ (point - ended) / (steps.eta * rule.local_steps)
        return {
            **memory,
            "point": point - steps.tau * direction,
            "round": memory["round"] + 1.0,
            "phase": np.array(_LOSSES),
            **_packed(rule.after(steps)),
        }

    def _choose(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        """One conjugate gradient where all sites are there; phi where that was the last."""
        if len(answers) < len(problem.sites):
            return memory
        slopes = stacked(problem, answers, "slope", memory["slopes"])
        found = absorb(memory, slopes + problem.parameters.get("ridge", 0.0) * probe(memory))
        if found["cg_left"] > 0:
            return found
        ambiguity = self.ambiguity(problem)
        phi = chosen_phi(found, ambiguity)
        size = replace(ambiguity, phi=phi).sum_norm()
        steps = _packed(step_rule(problem.parameters, size).first)
        chosen = {"phi": np.array(phi), "sum_norm": np.array(size), "round": found["round"] + 1.0}
        return {**without_choice(found), **chosen, **steps, "phase": np.array(_LOSSES)}

    def _first_phi(self, problem: ServerProblem) -> float:
        chosen = problem.parameters.get("choose_after", 0.0) > 0
        return 0.0 if chosen else float(problem.parameters.get("phi", 0.0))


def _packed(steps: Steps) -> Memory:
    return {name: np.array(getattr(steps, name)) for name in ("tau", "sigma", "eta", "extrapolation")}


def _unpacked(memory: Memory) -> Steps:
    return Steps(*(float(memory[name]) for name in ("tau", "sigma", "eta", "extrapolation")))
