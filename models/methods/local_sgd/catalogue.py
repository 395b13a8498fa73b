"""Methods of local gradient steps, and what their parameters may be; all train the plain problem, without a ball."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from models.methods.averaging import AveragingRule
from models.methods.base import Method
from models.methods.local_rule import LocalRule, LocalServer
from models.methods.local_steps import LocalStepsSite
from models.methods.parameter_range import Range
from models.methods.q_fedavg import FairAveragingRule
from models.methods.scaff_pd import ScaffRule
from models.methods.scaff_steps import check_steps

LOCAL_RANGES: Final[Mapping[str, Range]] = {
    "batch": Range(0.0, 1.0),
    "epochs": Range(1, 1000, open_low=False, whole=True),
    "local_steps": Range(0, 10000, open_low=False, whole=True),
    "proximal": Range(0.0, math.inf, open_low=False),
    "ridge": Range(0.0, math.inf, open_low=False),
    "clients": Range(0, 1e6, open_low=False, whole=True),
    "seed": Range(0, 2**32, open_low=False, whole=True),
    "q": Range(0.0, 100.0, open_low=False),
    "alpha": Range(0.0, 1.0),
    "beta": Range(0.0, 1.0),
    "phi": Range(0.0, 1.0, open_low=False, open_high=True),
    "choose_after": Range(0, 1e6, open_low=False, whole=True),
    "global_step": Range(0.0, math.inf),
    "dual_step": Range(0.0, math.inf),
    "strong_convexity": Range(0.0, math.inf, open_low=False),
    "smoothness": Range(0.0, math.inf, open_low=False),
    "coupling": Range(0.0, math.inf, open_low=False),
    "tau0": Range(0.0, math.inf, open_low=False),
    "gamma0": Range(0.0, math.inf, open_low=False),
}
"""Allowed values of each parameter, whichever method it belongs to."""

_SGD = {"step_size": 0.1, "step_power": 0.0, "batch": 1.0, "ridge": 0.0, "clients": 0.0, "seed": 0.0}
_AVERAGING = {**_SGD, "epochs": 5.0}
_CONTROLLED = {
    "step_size": 0.01, "global_step": 0.025, "local_steps": 5.0, "batch": 1.0, "ridge": 0.0, "seed": 0.0,
    "strong_convexity": 0.0, "smoothness": 0.0, "tau0": 0.0,
}  # fmt: skip
_FAIR = {**_CONTROLLED, "alpha": 0.2, "dual_step": 0.001, "coupling": 0.0, "gamma0": 0.0}
_RELATIVE = {**_FAIR, "beta": 0.2, "phi": 0.2, "choose_after": 0.0}

_SOLVER = "exact mean loss and gradient, then gradient steps"


def local_method(
    name: str, rule: LocalRule, parameters: Mapping[str, float], summary: str, *, controlled: bool = False
) -> Method:
    """A method of local steps; ``controlled``: by control variates, which want a smooth loss."""
    return Method(
        name, LocalStepsSite(one_step=name == "fedsgd"), LocalServer(rule), parameters, summary, _SOLVER, _SOLVER,
        supports_mixture=False, ignores_radius=True, needs_smooth_loss=controlled,
        check=check_steps if controlled else None,
    )  # fmt: skip


LOCAL_METHODS: Final[tuple[Method, ...]] = (
    local_method("fedsgd", AveragingRule(), _SGD, "gradient steps, averaged"),
    local_method("fedavg", AveragingRule(), _AVERAGING, "local gradient steps, averaged"),
    local_method("fedprox", AveragingRule(), {**_AVERAGING, "proximal": 1.0}, "local steps that stay near, averaged"),
    local_method("q-fedavg", FairAveragingRule(), {**_AVERAGING, "q": 1.0}, "local steps, weighed by the losses"),
    local_method("scaffold", ScaffRule(), _CONTROLLED, "controlled averaging", controlled=True),
    local_method("scaff-pd", ScaffRule(), _FAIR, "controlled averaging for the worst share of sites", controlled=True),
    local_method(
        "scaff-pd-ia", ScaffRule(), _RELATIVE,
        "controlled averaging for relative fairness; for phi above 0 the lower bound is that of the convex part only",
        controlled=True,
    ),
)  # fmt: skip
"""FedSGD, FedAvg, FedProx, q-FedAvg, SCAFFOLD, Scaff-PD and Scaff-PD-IA."""
