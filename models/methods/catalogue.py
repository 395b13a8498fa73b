"""All training methods by name, and what their parameters may be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Final

from models.basics import ProblemError
from models.losses.base import Loss
from models.methods.bundle.cohort import CohortServer
from models.methods.bundle.cohort_site import CohortSite
from models.methods.bundle.level import BundleServer, WorstSiteServer
from models.methods.bundle.relative import RelativeServer
from models.methods.bundle.wafl import WaflServer, WaflSite
from models.methods.local_sgd.catalogue import LOCAL_METHODS, LOCAL_RANGES
from models.methods.local_sgd.rule import check_clients
from models.methods.local_sgd.site import LocalStepsSite
from models.methods.protocol import LOCAL_BUNDLE, Method, Range
from models.methods.site_answers import AdmmSite, ProxCutSite, RestatedSite, RiskSite
from models.methods.splitting.ad_lpmm import DrflServer, check_sizes
from models.methods.splitting.ad_lpmm_site import DrflSite
from models.methods.splitting.consensus_admm import AdmmServer
from models.methods.splitting.subgradient import SubgradientServer
from models.site_ambiguity.ball import MixtureBall

RANGES: Final[Mapping[str, Range]] = {
    "level": Range(0.0, 0.95),
    "closeness": Range(0.0, 1e6),
    "questions": Range(1, 8, open_low=False, whole=True),
    "rho": Range(0.0, math.inf),
    "mu0": Range(-1e6, 1e6),
    "tau": Range(0.0, math.inf, open_low=False),
    "step_size": Range(0.0, math.inf),
    "step_power": Range(0.0, 1.0, open_low=False),
    "c": Range(0.0, math.inf, open_low=False),
    "c_weights": Range(0.0, math.inf, open_low=False),
    "probe": Range(0.0, 1e6, open_low=False, whole=True),
    "tight": Range(0.0, 1.0, open_low=False),
    "residual": Range(0.0, math.inf, open_low=False),
    **LOCAL_RANGES,
}
"""Allowed values of each parameter, whichever method it belongs to."""

_BUNDLE = {"level": 0.2}
_STEPS = {"step_size": 1.0, "step_power": 1.0}
_RELATIVE = {**_BUNDLE, "phi": 0.2, "alpha": 0.2, "beta": 0.2}
_PROX_BUNDLE = {**_BUNDLE, "closeness": 30.0}
_COHORT_BUNDLE = {**_BUNDLE, "closeness": 100.0, "questions": 6.0}
_ADMM = {"rho": 0.1, "mu0": 1.0}
_DRFL = {"c": 0.0, "c_weights": 0.0, "tight": 1.0, "probe": 2.0, "batch": 1.0, "residual": 0.0}
"""Defaults. Of the papers: duals that start at 1 and a penalty from the grid it tunes (FDR), shares of 20 % (RF)."""

_RISK = "{risk}"
_PROX = "{risk}; {prox}"
_CUTS = f"{{risk}}; {LOCAL_BUNDLE}"
"""What runs at a site; the loss and the support fill in the names."""

_NO_BALL = RestatedSite(ProxCutSite(), {"radius": 0.0, "support": None})
"""The rows as they are: radius 0, and no support, which only bounds moves."""
_TRUSTING = RestatedSite(AdmmSite(), {"label_flip_cost": math.inf})
"""``radius ||w||_* + mean hinge``."""

METHODS: Final[Mapping[str, Method]] = {
    method.name: method
    for method in (
        Method(
            "level-bundle", ProxCutSite(), BundleServer(True), _PROX_BUNDLE, "level bundle with prox cuts", _PROX,
            on_sums=True,
        ),
        Method(
            "level-bundle-plain", RiskSite(), BundleServer(False), _BUNDLE, "level bundle without prox cuts", _RISK,
            on_sums=True,
        ),
        Method(
            "cohort-bundle", CohortSite(), CohortServer(), _COHORT_BUNDLE,
            "level bundle on sums over cohorts, with several questions in a message", _PROX, supports_mixture=False,
            on_sums=True,
        ),
        Method("fdr-sm", RiskSite(), SubgradientServer(), _STEPS, "subgradient method", _RISK, on_sums=True),
        Method(
            "fdr-admm", AdmmSite(), AdmmServer(), _ADMM, "consensus ADMM", _PROX, supports_mixture=False, on_sums=True,
        ),
        Method(
            "fdr-admm-sc", AdmmSite(), AdmmServer(True), {**_ADMM, "tau": 0.0}, "ADMM with a ridge at each site", _PROX,
            supports_mixture=False,
        ),
        Method(
            "fdr-admm-reg", _TRUSTING, AdmmServer(), _ADMM, "ADMM, labels trusted", _PROX, trusts_labels=True,
            supports_mixture=False, on_sums=True,
            objective="worst-case risk over the balls where labels do not flip",
        ),
        Method(
            "standard", _NO_BALL, BundleServer(True, ball=False), _PROX_BUNDLE,
            "no ball anywhere: standard federated training, exactly", _PROX, supports_mixture=False,
            ignores_radius=True, objective="mean loss with the site weights, without a ball", on_sums=True,
        ),
        Method(
            "afl", _NO_BALL, BundleServer(True, ball=False), _PROX_BUNDLE,
            "no ball at the sites, the plan's ball over them: agnostic federated learning, exactly", _PROX,
            ignores_radius=True, objective="loss of the worst mixture stated, without a ball at the sites",
        ),
        Method(
            "drfa-exact", _NO_BALL, WorstSiteServer(True, ball=False), _PROX_BUNDLE,
            "no ball at the sites, any mixture of them: the problem of DRFA, exactly", _PROX,
            ignores_radius=True, over_sites="every", objective="loss of the worst site, without a ball at the sites",
        ),
        Method(
            "wafl", WaflSite(), WaflServer(), _BUNDLE, "one ball around the mixture of all sites: WAFL, exactly",
            _RISK, supports_mixture=False, needs_unbounded=True,
            objective="worst-case risk over one ball around the mixture of all sites",
        ),
        Method("drfl-admm", DrflSite(), DrflServer(), _DRFL, "AD-LPMM", _CUTS, check=check_sizes),
        Method(
            "relative-fairness", RiskSite(), RelativeServer(), _RELATIVE,
            "level bundle on convex majorants of relative fairness; for phi above 0 it ends at a critical point, which "
            "need not be the best, and the certified gap, which holds globally, need not close",
            _RISK, supports_mixture=False, objective="relative fairness of the worst-case risks",
        ),
        *LOCAL_METHODS,
    )
}
"""Every method by its name. ``tau`` 0 stands for the smallest ridge that FDR Theorem 3 allows."""


_UNITLESS: Final = {"level", "closeness", "questions", "phi", "alpha", "beta"}
"""Parameters that are pure numbers; the others, step sizes and penalties, are stated for the features as given."""


def has_no_units(method: Method) -> bool:
    """Whether a method's parameters mean the same however features and targets are measured: all the bundles."""
    return set(method.parameters) <= _UNITLESS


def get_method(name: str) -> Method:
    """Method by name; ``ProblemError``, which lists those that there are, where there is none."""
    if name not in METHODS:
        raise ProblemError(f"there is no method {name!r}; methods are {', '.join(sorted(METHODS))}")
    return METHODS[name]


def check_method_problem(
    method: Method,
    mixture: MixtureBall,
    *,
    loss: Loss | None = None,
    n_sites: int | None = None,
    parameters: Mapping[str, float] | None = None,
    supported: bool = False,
    weighted: bool = False,
) -> None:
    """Refuse a problem that the method cannot solve, as far as it is known.

    ``ProblemError`` for a ball over the sites with a radius above 0 for a method that trains with fixed site weights, a
    loss with corners for one that needs smooth ones, a loss without a worst case for one that looks for it, more sites
    to be drawn in a round than there are, or row weights (``weighted``) for one that draws batches of rows.
    """
    if mixture.radius > 0 and not method.supports_mixture:
        can = ", ".join(sorted(name for name, each in METHODS.items() if each.supports_mixture))
        raise ProblemError(
            f"method {method.name} trains with fixed site weights, so the radius over the sites must be 0, "
            f"got {mixture.radius:g}; methods for a ball over the sites are {can}"
        )
    if loss is not None and method.needs_smooth_loss and not loss.smooth:
        raise ProblemError(
            f"method {method.name} needs a smooth loss (logistic, smooth_hinge, huber, squared), "
            f"the loss is {loss.name}"
        )
    if loss is not None and not math.isfinite(loss.lipschitz) and not method.ignores_radius:
        raise ProblemError(
            f"the {loss.name} loss has no worst case over a ball; take a method without one (fedavg, scaff-pd-ia, ..), "
            f"not {method.name}, or the loss {'hinge' if loss.task == 'classification' else 'huber'}"
        )
    if supported and method.needs_unbounded:
        raise ProblemError(f"method {method.name} is for features without bounds: leave the support out")
    if weighted and isinstance(method.site, LocalStepsSite):
        raise ProblemError(
            f"method {method.name} steps on batches of rows, which count alike: it takes no row weights; "
            "the methods with an exact risk of all rows do (level-bundle, fdr-admm, drfl-admm, standard, ..)"
        )
    if n_sites is not None:
        check_clients(int((parameters or {}).get("clients", 0)), n_sites)


def check_parameters(method: Method, given: Mapping[str, float]) -> dict[str, float]:
    """All parameters of a method: the given ones, and its defaults for the others.

    ``ProblemError`` for a parameter that the method does not have, a value outside its range, or values that do not go
    together.
    """
    unknown = sorted(set(given) - set(method.parameters), key=str)
    if unknown:
        has = ", ".join(sorted(method.parameters)) or "none"
        raise ProblemError(f"method {method.name} has no parameter {unknown[0]!r}; its parameters are {has}")
    for name, value in given.items():
        if not _is_number(value):
            raise ProblemError(f"parameter {name} of method {method.name} must be a number, got {value!r:.60}")
        if (number := _float(value)) not in RANGES[name]:
            raise ProblemError(f"parameter {name} of method {method.name} must be {RANGES[name]}, got {number:g}")
    complete = {**method.parameters, **given}
    if method.check is not None:
        method.check(complete)
    return complete


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _float(value: float) -> float:
    """The number as a float; infinite for a whole one that is beyond all floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
