"""A method of local steps for the cross-entropy of all classes' scores, of a softmax regression or a network."""

from __future__ import annotations

from dataclasses import replace

from models.basics import ProblemError
from models.methods.local_sgd.feddro import FedDroSite
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.objectives.softmax import SoftmaxObjective
from models.methods.local_sgd.server import LocalServer
from models.methods.local_sgd.site import LocalStepsSite
from models.methods.local_sgd.uncertified import UncertifiedServer
from models.methods.protocol import Method

ScoresObjective = SoftmaxObjective | NetworkObjective


def check_takes_all_scores(method: Method) -> None:
    """Refuse a method that does not descend on a gradient of any loss; ``ProblemError`` names some that do."""
    if not isinstance(method.site, LocalStepsSite) or isinstance(method.site, FedDroSite):
        raise ProblemError(
            f"method {method.name} does not train with cross_entropy; the methods of local steps do (fedavg, fedprox, "
            "q-fedavg, scaffold, scaff-pd-ia, drfa, drflm, ..)"
        )


def method_of(method: Method, objective: ScoresObjective, n_features: int, seed: int = 0) -> Method:
    """The method with its two halves for an objective over ``n_features`` features; a network starts from ``seed``.

    A softmax regression is convex: its answers are cuts, and its bounds hold as those of the linear losses do. A
    network has none (``models.methods.local_sgd.uncertified``). ``ProblemError`` for another kind of method.
    """
    check_takes_all_scores(method)
    if not (isinstance(method.site, LocalStepsSite) and isinstance(method.server, LocalServer)):
        raise ProblemError(f"method {method.name} takes no local steps")
    site = replace(method.site, objective=objective)
    if isinstance(objective, SoftmaxObjective):
        return replace(method, site=site)
    return replace(method, site=site, server=UncertifiedServer(method.server, objective.start(n_features, seed)))
