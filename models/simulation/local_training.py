r"""Training by local steps over sites in this process, for any objective, convex or not: no bounds, little work.

The halves are those of the federated methods (``models.methods``); what is left out is the evidence. Networks, many
sites and many rounds are what it is for; :func:`~models.simulation.train` is for linear models with a certificate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.basics import FloatArray, ProblemError
from models.methods.catalogue import check_method_problem, check_parameters, get_method
from models.methods.local_sgd.objectives.base import Objective, Rows
from models.methods.local_sgd.server import LocalServer
from models.methods.local_sgd.site import LocalStepsSite
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms
from models.simulation.federation import check_alike, site_shares


@dataclass(frozen=True)
class LocalTraining:
    """Where a run ended: weights (D,); mean loss of every site in every round, (R, G), at the point it began with.

    ``weights_of_sites`` (G,) is what the method last weighed the sites by (lambda; may be negative), in their order.
    ``exchanges`` counts messages to a site: some methods need two a round.
    """

    weights: FloatArray
    site_losses: FloatArray
    weights_of_sites: FloatArray
    exchanges: int


def train_local(
    objective: Objective,
    sites: Mapping[str, Rows],
    *,
    method: str = "fedavg",
    parameters: Mapping[str, float] | None = None,
    rounds: int = 100,
    weights: Mapping[str, float] | None = None,
    start: FloatArray | None = None,
    seed: int = 0,
) -> LocalTraining:
    """Run a method with local steps for a number of its rounds.

    Parameters
    ----------
    objective : what is trained. sites : site id to features (N, P) and labels or targets (N,), as the objective has it.
    method, parameters : name in ``models.methods.catalogue``, one with local steps, and its own numbers.
    rounds : rounds as the method's paper counts them. weights : site id to a_g; None: all alike.
    start : weights (D,) to begin with; None: the objective's own for ``seed``.

    Raises
    ------
    ProblemError
        A method without local steps, or a problem without meaning.
    """
    chosen = get_method(method)
    if not (isinstance(chosen.server, LocalServer) and isinstance(chosen.site, LocalStepsSite)):
        raise ProblemError(f"method {method} takes no local steps; use models.simulation.federation.train")
    if rounds < 1:
        raise ProblemError(f"rounds must be at least 1, got {rounds}")
    problem = _problem(sites, weights, check_parameters(chosen, parameters or {}))
    check_method_problem(chosen, problem.mixture, n_sites=len(sites), parameters=problem.parameters)
    if chosen.needs_smooth_loss and not objective.smooth:
        raise ProblemError(f"method {method} needs a smooth objective")
    rule = chosen.server.rule
    half = replace(chosen.site, objective=objective, tells_cut=rule.reads_slopes)
    rows = {name: SiteProblem(x, y, RobustSpec(0.0, 1.0, fit_intercept=False)) for name, (x, y) in sites.items()}
    memory = rule.begin(problem, objective.start(problem.n_features, seed) if start is None else start)
    losses, exchanges, last = list[list[float]](), 0, float(memory["round"]) + rounds
    while float(memory["round"]) < last:
        messages, news = rule.messages(memory, problem), rule.asked(memory) is not None
        answers = {name: half.answer(rows[name], messages[name], problem.parameters) for name in sites}
        memory, exchanges = rule.advance(memory, problem, answers), exchanges + 1
        if news:
            losses.append([float(answer["risk"]) for answer in answers.values()])
    weighed = memory.get("lambda", problem.weights)
    return LocalTraining(memory["point"], np.array(losses), weighed, exchanges)


def _problem(
    sites: Mapping[str, Rows], weights: Mapping[str, float] | None, parameters: Mapping[str, float]
) -> ServerProblem:
    if not sites:
        raise ProblemError("a problem needs at least one site")
    for name, (features, labels) in sites.items():
        if features.ndim != 2 or features.shape[0] == 0 or labels.shape != features.shape[:1]:
            raise ProblemError(f"site {name}: features must be (N, P) and labels (N,), N at least 1, "
                               f"got {features.shape} and {labels.shape}")
    widths = [features.shape[1] for features, _ in sites.values()]
    check_alike("number of features", widths)
    terms = tuple(SiteTerms(name, share, 0.0, 1.0) for name, share in site_shares(sites, weights).items())
    return ServerProblem(widths[0], terms, "l2", fit_intercept=False, parameters=parameters)
