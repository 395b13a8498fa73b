r"""FedDRO with a Kullback-Leibler penalty: federated compositional descent (Khanduri et al. 2023).

    F(w) = mu log sum_g a_g h_g(w),    h_g(w) = mean_i exp(l_i(w) / mu)          (``over_rows`` 1, the default)
                                       h_g(w) = exp(f_g(w) / mu), f_g = mean_i l_i       (``over_rows`` 0)

which is ``max_q sum_j q_j l_j - mu KL(q || a)``, over mixtures q of all rows or of the sites; mu is ``temperature``. It
is the worst mixture over the ball in which the divergence of that q lies, whose radius follows from mu and is not set.
The gradient has the inner value y = sum_g a_g h_g in it, which no site knows: the server tracks it,

    y <- (1 - tracking) y + tracking sum_g a_g h_g(w),

and a site's local step is ``u <- u - step_size mean_i exp((l_i - mu log y) / mu) grad l_i`` over a batch (over
the sites: one factor for all its rows). The first exchange only asks for h_g, without steps. All is kept as
``mu log y``, so nothing overflows. Ridge as for the other methods of local steps; the bounds do not have it.

Bounds: F at the visited points, and for the q that is the worst at the best of them
``min_w sum_g q_g f_g(w) - mu KL(q || a)`` of the cut model, f_g being ``mu log h_g``, which is convex too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError
from models.cuts.bounds import counted_risks, mixture_bound
from models.cuts.evidence import Evidence
from models.losses.exponentials import log_sum_exp
from models.methods.answer_arrays import present, stacked
from models.methods.local_sgd.objectives.base import MeanLoss
from models.methods.local_sgd.objectives.linear import LinearObjective
from models.methods.local_sgd.rule import LocalRule, Memory, step_messages, step_size
from models.methods.local_sgd.sampled_sites import mean_answer
from models.methods.local_sgd.server import LocalServer, LocalState
from models.methods.local_sgd.site import LocalStepsSite
from models.problem import ServerProblem, SiteProblem


@dataclass(frozen=True, eq=False)
class TiltedObjective(MeanLoss):
    r"""The smooth maximum of the rows' losses, which weighs what is high more.

        f(w) = mu log mean_i exp(l_i(w) / mu)          over the rows of a site,     or f(w) = mean_i l_i(w)

    The first is convex where the l_i are, lies between the mean and the largest of them, and is the worst mean over
    distributions q of the rows, less mu times their divergence from the even one.

    Loss and gradient of f where nothing is drawn; with draws, those of compositional steps.

    Such a step's gradient is ``mean_i exp((l_i - inner) / mu) grad l_i`` over the batch, or with ``over_rows`` False
    ``exp((mean_i l_i - inner) / mu)`` times the gradient of the mean; ``inner`` is mu log y, y the tracked inner value.
    ``share`` a is the weight of these rows in y: y is at least a times their own inner value, so where the tracked one
    is below that of the batch, the latter stands in, and no step is steeper than 1/a gradients.
    """

    model: MeanLoss
    mu: float
    inner: float
    share: float = 1.0
    over_rows: bool = True

    def loss_and_gradient(
        self, weights: FloatArray, features: FloatArray, labels: FloatArray, random: np.random.Generator | None = None
    ) -> tuple[float, FloatArray]:
        """The loss f with its gradient (D,), or with ``random`` the gradient of a step."""
        if not (self.over_rows and isinstance(self.model, LinearObjective)):
            loss, gradient = self.model.loss_and_gradient(weights, features, labels, random)
            return loss, gradient if random is None else gradient * np.exp((loss - self._inner(loss)) / self.mu)
        losses, slopes = self.model.row_losses(weights, features, labels)
        highest = float(losses.max())
        lifted = np.exp((losses - highest) / self.mu)
        tilted = highest + self.mu * math.log(float(lifted.mean()))
        against = tilted if random is None else self._inner(tilted)
        counts = lifted * math.exp((highest - against) / self.mu) / losses.shape[0]
        return tilted, self.model.gradient(slopes * counts, features)

    def _inner(self, own: float) -> float:
        return max(self.inner, own + self.mu * math.log(self.share))


@dataclass(frozen=True)
class FedDroSite(LocalStepsSite):
    """Site half. Message as for :class:`LocalStepsSite`, and ``inner`` () mu log y, ``share`` () a_g."""

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        """Exact tilted loss and gradient at the point, and where the tilted steps end.

        :class:`ProblemError` where rows are tilted and the model is not linear.
        """
        inner, over_rows = self.descended(problem), parameters["over_rows"] > 0
        if over_rows and not isinstance(inner, LinearObjective):
            raise ProblemError("feddro over rows needs a linear model; set over_rows to 0 for this one")
        tilted = TiltedObjective(
            inner, parameters["temperature"], float(message["inner"]), float(message["share"]), over_rows
        )
        return LocalStepsSite(tilted).answer(problem, message, parameters)


@dataclass(frozen=True)
class FedDroRule(LocalRule):
    """One exchange a round. Memory: ``point`` (D,), ``round`` (), ``inner`` () mu log y, ``known`` () whether it is."""

    def begin(self, problem: ServerProblem, point: FloatArray) -> Memory:
        """Start from a point, y unknown."""
        zero = np.array(0.0)
        return {"point": point, "round": zero, "inner": zero, "known": zero}

    def messages(self, memory: Memory, problem: ServerProblem) -> dict[str, dict[str, FloatArray]]:
        """Steps with the tracked inner value; in the first round none."""
        finished = float(memory["round"])
        sizes = np.where(problem.weights > 0, step_size(problem, finished) if memory["known"] else 0.0, 0.0)
        steps = step_messages(problem, memory["point"], finished, sizes)
        return {
            site.site_id: {**steps[site.site_id], "inner": memory["inner"], "share": np.array(site.weight)}
            for site in problem.sites
        }

    def advance(self, memory: Memory, problem: ServerProblem, answers: Mapping[str, Arrays]) -> Memory:
        """Average the steps, track the inner value; absent sites are left out of both."""
        weights = np.where(present(problem, answers), problem.weights, 0.0)
        if weights.sum() <= 0:
            return memory
        mu, tracking = problem.parameters["temperature"], problem.parameters["tracking"]
        risks = stacked(problem, answers, "risk")
        inner = kl_risk(risks, weights / weights.sum(), mu)
        if not memory["known"]:
            return {**memory, "inner": np.array(inner), "known": np.array(1.0)}
        shares = np.array([1.0 - tracking, tracking])
        kept = kl_risk(np.array([float(memory["inner"]), inner]), shares, mu)
        return {
            **memory,
            "point": mean_answer(problem, answers, "local_point", weights, memory["point"]),
            "round": memory["round"] + 1.0,
            "inner": np.array(kept),
        }


@dataclass(frozen=True)
class FedDroServer(LocalServer):
    """Server half; the bounds are those of F."""

    def bounded(self, evidence: Evidence, problem: ServerProblem, memory: Memory, *, raised: bool) -> Evidence:
        """Evidence with the bounds of F; ``raised``: with a new lower one, not only the one so far."""
        weights, mu, bound = problem.weights, problem.parameters["temperature"], evidence.lower
        risks = counted_risks(evidence, problem)
        filled = np.where(np.isnan(risks), np.inf, risks)
        evidence = evidence.judged_by(mu * log_sum_exp(filled / mu, weights))
        if raised and evidence.best >= 0:
            worst = tilt(filled[evidence.best], weights, mu)
            ratio = np.divide(worst, weights, out=np.ones_like(worst), where=worst > 0)
            bound = mixture_bound(evidence, problem, worst) - mu * float(np.sum(worst * np.log(ratio)))
        return evidence.with_lower(bound)

    def mixture_weights(self, state: LocalState, problem: ServerProblem) -> dict[str, float]:
        """Worst mixture of the sites at the best weights, against its price."""
        names = [site.site_id for site in problem.sites]
        weights, risks = problem.weights, np.array(list(self.site_risks(state, problem).values()))
        worst = weights if np.isnan(risks).any() else tilt(risks, weights, problem.parameters["temperature"])
        return dict(zip(names, worst.tolist(), strict=True))


def kl_risk(risks: FloatArray, weights: FloatArray, mu: float) -> float:
    """``mu log sum_g a_g exp(f_g / mu)`` of risks (G,) and weights (G,)."""
    return float(mu * log_sum_exp(risks / mu, weights))


def tilt(risks: FloatArray, weights: FloatArray, mu: float) -> FloatArray:
    """The q (G,) that attains it: ``q_g`` in proportion to ``a_g exp(f_g / mu)``."""
    lifted = weights * np.exp((risks - risks.max()) / mu)
    return np.asarray(lifted / lifted.sum())
