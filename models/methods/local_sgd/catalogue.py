"""Methods of local gradient steps, and what their parameters may be; all train without a Wasserstein ball."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from models.methods.local_sgd.drfa import DrfaRule, StochasticAflRule, WorstMixtureServer
from models.methods.local_sgd.fedavg import AveragingRule, FairAveragingRule
from models.methods.local_sgd.feddro import FedDroRule, FedDroServer, FedDroSite
from models.methods.local_sgd.mixup import MixupSite
from models.methods.local_sgd.rule import LocalRule
from models.methods.local_sgd.scaff_pd import ScaffRule
from models.methods.local_sgd.scaff_steps import check_steps
from models.methods.local_sgd.server import LocalServer
from models.methods.local_sgd.site import LocalStepsSite
from models.methods.protocol import Method, Range

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
    "mixture_step": Range(0.0, math.inf, open_low=False),
    "worst_share": Range(0.0, 1.0, open_low=False),
    "mixup_alpha": Range(0.0, 1e6),
    "mixup_beta": Range(0.0, 1e6),
    "mixup_ratio": Range(0.0, 1.0, open_low=False),
    "temperature": Range(0.0, 1e6),
    "tracking": Range(0.0, 1.0),
    "over_rows": Range(0.0, 1.0, open_low=False, whole=True),
}
"""Allowed values of each parameter, whichever method it belongs to.

``worst_share`` 0: the whole simplex, or the problem's ball. ``mixup_ratio`` 0: drawn from the Beta distribution."""

_SGD = {"step_size": 0.1, "step_power": 0.0, "batch": 1.0, "ridge": 0.0, "clients": 0.0, "seed": 0.0}
_AVERAGING = {**_SGD, "epochs": 5.0}
_CONTROLLED = {
    "step_size": 0.01, "global_step": 0.025, "local_steps": 5.0, "batch": 1.0, "ridge": 0.0, "seed": 0.0,
    "strong_convexity": 0.0, "smoothness": 0.0, "tau0": 0.0,
}
_FAIR = {**_CONTROLLED, "alpha": 0.2, "dual_step": 0.001, "coupling": 0.0, "gamma0": 0.0}
_RELATIVE = {**_FAIR, "beta": 0.2, "phi": 0.2, "choose_after": 0.0}
_SAMPLED = {
    "step_size": 0.1, "step_power": 0.0, "local_steps": 10.0, "epochs": 1.0, "batch": 0.2, "ridge": 0.0, "seed": 0.0,
}
_MIXTURE = {"mixture_step": 0.01, "worst_share": 0.0, "clients": 0.0}
_ONE_STEP = {name: value for name, value in _SAMPLED.items() if name not in ("local_steps", "epochs")}
_MIXUP = {"mixup_alpha": 1.0, "mixup_beta": 1.0, "mixup_ratio": 0.0}
_KL = {"temperature": 1.0, "tracking": 0.5, "over_rows": 1.0}
"""Defaults. Step sizes are those of RF appendix J.2: 0.1, and with control variates 0.01, 0.025 and 0.001 (dual)."""

_STEPPING, _ONE_STEP_EACH = LocalStepsSite(), LocalStepsSite(one_step=True)
_MEAN_LOSS = "mean loss with the site weights, without a ball"
_WORST_LOSS = "loss of the worst mixture, in the ball stated where there is one, without a ball at the sites"


def local_method(
    name: str, rule: LocalRule, parameters: Mapping[str, float], summary: str, *,
    site: LocalStepsSite = _STEPPING, server: type[LocalServer] = LocalServer, objective: str = _MEAN_LOSS,
    on_sums: bool = False,
) -> Method:
    """A method of local steps; one with control variates wants a smooth loss."""
    controlled = isinstance(rule, ScaffRule)
    return Method(
        name, site, server(rule, site), parameters, summary, "exact mean loss and gradient, then gradient steps",
        objective=objective, supports_mixture=server is WorstMixtureServer, ignores_radius=True,
        over_sites="stated or every" if server is WorstMixtureServer else "stated",
        needs_smooth_loss=controlled, check=check_steps if controlled else None, on_sums=on_sums,
    )


LOCAL_METHODS: Final[tuple[Method, ...]] = (
    local_method("fedsgd", AveragingRule(), _SGD, "gradient steps, averaged", site=_ONE_STEP_EACH, on_sums=True),
    local_method("fedavg", AveragingRule(), _AVERAGING, "local gradient steps, averaged", on_sums=True),
    local_method(
        "fedprox", AveragingRule(), {**_AVERAGING, "proximal": 1.0}, "local steps that stay near, averaged",
        on_sums=True,
    ),
    local_method("q-fedavg", FairAveragingRule(), {**_AVERAGING, "q": 1.0}, "local steps, weighed by the losses"),
    local_method("scaffold", ScaffRule(), _CONTROLLED, "controlled averaging", on_sums=True),
    local_method(
        "scaff-pd", ScaffRule(), _FAIR, "controlled averaging for the worst share of sites",
        objective="mean loss of the worst share of the sites, without a ball",
    ),
    local_method(
        "scaff-pd-ia", ScaffRule(), _RELATIVE,
        "controlled averaging for relative fairness; for phi above 0 the lower bound is that of the convex part only",
        objective="relative fairness of the losses, without a ball",
    ),
    local_method(
        "drfa", DrfaRule(), {**_SAMPLED, **_MIXTURE}, "DRFA, the worst mixture of sites by local steps",
        server=WorstMixtureServer, objective=_WORST_LOSS,
    ),
    local_method(
        "drflm", DrfaRule("mixed_risk"), {**_SAMPLED, **_MIXTURE, **_MIXUP},
        "DRFLM, DRFA with mixup in the vault; certified for the problem without mixup",
        site=MixupSite(), server=WorstMixtureServer, objective=_WORST_LOSS,
    ),
    local_method(
        "safl", StochasticAflRule(), {**_ONE_STEP, **_MIXTURE},
        "Stochastic AFL, the worst mixture of sites by single steps",
        site=_ONE_STEP_EACH, server=WorstMixtureServer, objective=_WORST_LOSS,
    ),
    local_method(
        "feddro", FedDroRule(), {**_SAMPLED, **_KL}, "FedDRO, a Kullback-Leibler penalty by compositional local steps",
        site=FedDroSite(), server=FedDroServer,
        objective="loss of the worst mixture less a price on its divergence, without a ball at the sites",
    ),
)
"""Averaging, controlled averaging, and those that walk towards the worst mixture of the sites; none has a ball."""
