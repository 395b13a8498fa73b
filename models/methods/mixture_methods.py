"""The methods that walk towards the worst mixture of the sites, with their parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from models.methods.base import Method
from models.methods.drfa import DrfaRule, WorstMixtureServer
from models.methods.feddro import FedDroRule, FedDroServer, FedDroSite
from models.methods.local_steps import LocalStepsSite
from models.methods.mixup import MixupSite
from models.methods.parameter_range import Range
from models.methods.safl import StochasticAflRule

MIXTURE_RANGES: Final[Mapping[str, Range]] = {
    "mixture_step": Range(0.0, math.inf, open_low=False),
    "worst_share": Range(0.0, 1.0, open_low=False),
    "mixup_alpha": Range(0.0, 1e6),
    "mixup_beta": Range(0.0, 1e6),
    "mixup_ratio": Range(0.0, 1.0, open_low=False),
    "temperature": Range(0.0, 1e6),
    "tracking": Range(0.0, 1.0),
    "over_rows": Range(0.0, 1.0, open_low=False, whole=True),
}
"""``worst_share`` 0: the whole simplex, or the problem's ball. ``mixup_ratio`` 0: drawn from the Beta distribution."""

_STEPS = {
    "step_size": 0.1, "step_power": 0.0, "local_steps": 10.0, "epochs": 1.0, "batch": 0.2, "ridge": 0.0, "seed": 0.0,
}  # fmt: skip
_MIXTURE = {"mixture_step": 0.01, "worst_share": 0.0, "clients": 0.0}
_ONE_STEP = {name: value for name, value in _STEPS.items() if name not in ("local_steps", "epochs")}
_MIXUP = {"mixup_alpha": 1.0, "mixup_beta": 1.0, "mixup_ratio": 0.0}
_KL = {"temperature": 1.0, "tracking": 0.5, "over_rows": 1.0}
_SITE = "exact mean loss and gradient, then gradient steps"

MIXTURE_METHODS: Final[tuple[Method, ...]] = (
    Method(
        "drfa", LocalStepsSite(), WorstMixtureServer(DrfaRule()), {**_STEPS, **_MIXTURE},
        "DRFA, the worst mixture of sites by local steps", _SITE, _SITE, ignores_radius=True,
    ),
    Method(
        "drflm", MixupSite(), WorstMixtureServer(DrfaRule("mixed_risk"), MixupSite()), {**_STEPS, **_MIXTURE, **_MIXUP},
        "DRFLM, DRFA with mixup in the vault; certified for the problem without mixup", _SITE, _SITE,
        ignores_radius=True,
    ),
    Method(
        "safl", LocalStepsSite(one_step=True), WorstMixtureServer(StochasticAflRule()), {**_ONE_STEP, **_MIXTURE},
        "Stochastic AFL, the worst mixture of sites by single steps", _SITE, _SITE, ignores_radius=True,
    ),
    Method(
        "feddro", FedDroSite(), FedDroServer(FedDroRule()), {**_STEPS, **_KL},
        "FedDRO, a Kullback-Leibler ball by compositional local steps", _SITE, _SITE, ignores_radius=True,
        supports_mixture=False,
    ),
)  # fmt: skip
"""In this order: DRFA, DRFLM, Stochastic AFL, FedDRO (KL). Their problems have no Wasserstein ball."""
