"""Gates: the conditions on a new version before it becomes champion."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

import numpy as np

from models.conformal.scores import class_scores
from services.contracts.evaluation.fairness import BASIS_NAMES, FairnessGate, figures
from services.contracts.plans.gates import Gates
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import GateResult

NO_SCORE = "no site sent a held-out score"


def check_gates(gates: Gates, version: ModelVersion) -> tuple[GateResult, ...]:
    """Every gate that the plan asks for, held against the version; an empty tuple where it asks for none.

    One that no plan asks for, and that stands there where it does not hold: a version of classes that can only say one.

    A figure that is missing or NaN does not hold: ``min_site_f1`` and ``max_site_mae`` fail when any site of the
    version has no held-out score, since the worst site is then not known.
    """
    results = (
        _certified(gates.max_gap, version),
        _at_least("min_f1", gates.min_f1, version.f1, NO_SCORE),
        _worst_site(gates.min_site_f1, version),
        _at_most("max_mae", gates.max_mae, version.mae, NO_SCORE),
        _worst_error(gates.max_site_mae, version),
        _at_least("min_coverage", gates.min_coverage, version.coverage, NO_SCORE),
        _at_least("min_fresh_weight", gates.min_fresh_weight, version.fresh_weight),
        _calibrated(version),
        *(_fair(gate, version) for gate in gates.fairness),
        _tells_classes(version),
    )
    return tuple(result for result in results if result is not None)


def failed_gates(results: tuple[GateResult, ...]) -> str:
    """The gates that do not hold, on one line; empty when all do."""
    return "; ".join(f"{result.name}: {result.reason}" for result in results if not result.holds)


def _certified(wanted: float | None, version: ModelVersion) -> GateResult | None:
    """A relative gap cannot close where the optimum is 0: bounds that are near enough for the plan are so here.

    Where no rows have what plants told in its run, its gap is one of nothing, and holds nowhere.
    """
    found = _at_most("max_gap", wanted, version.certified_gap)
    if found and version.refuted:
        reason = f"no rows have what plants told in its run: {version.refuted}"
        return found.model_copy(update={"holds": False, "reason": reason})
    near = version.objective - version.lower_bound <= version.absolute_gap
    return found.model_copy(update={"holds": True, "reason": ""}) if found and near else found


def _calibrated(version: ModelVersion) -> GateResult | None:
    """A plan that asks for a coverage gets it, or no promotion."""
    found = version.calibration
    if found is None or not found.asked:
        return None
    lack = found.lacks(found.coverage)
    return GateResult(name="coverage", wanted=found.coverage, found=found.most, holds=not lack, reason=lack)


def _tells_classes(version: ModelVersion) -> GateResult | None:
    """A version that says the same class of every measurement: such as where no plant has rows of a fault.

    Scaled and lifted features lie in [0, 1], so class k has at most ``b + sum_i max(w_i, 0)`` more score than the
    one that is said, (w, b) the difference of their planes. Below 0 for every other class, none of them is ever said.
    """
    if version.spec.loss.task != "classification" or version.spec.network is not None:
        return None
    planes = class_scores(version.weights.T).T
    for name, plane in zip(version.asset_type.class_names, planes, strict=True):
        lead = planes - plane
        most = np.maximum(lead[:, :-1], 0.0).sum(axis=1) + lead[:, -1]
        if (most < 0.0).sum() == len(planes) - 1:
            reason = f"it says {name} of every measurement within the sensor ranges"
            return GateResult(name="classes_told", wanted=2.0, found=1.0, holds=False, reason=reason)
    return None


def _worst_site(wanted: float | None, version: ModelVersion) -> GateResult | None:
    scores, missing = _of_all({site.site_id: site.f1 for site in version.sites}, "held-out score")
    return _at_least("min_site_f1", wanted, min(scores) if scores else None, missing)


def _worst_error(wanted: float | None, version: ModelVersion) -> GateResult | None:
    errors, missing = _of_all({site.site_id: site.mae for site in version.sites}, "held-out score")
    return _at_most("max_site_mae", wanted, max(errors) if errors else None, missing)


def _fair(gate: FairnessGate, version: ModelVersion) -> GateResult | None:
    values, missing = _of_all(figures(version.sites, gate.basis), BASIS_NAMES[gate.basis])
    return _at_most(gate.name, gate.at_most, gate.of(values) if values else None, missing)


def _of_all(found: Mapping[str, float | None], what: str) -> tuple[list[float], str]:
    """Figures of all sites, or none and why: a site whose figure is not known may be the worst."""
    unknown = sorted(site for site, value in found.items() if value is None or math.isnan(value))
    if unknown:
        return [], f"no {what} from {', '.join(unknown)}"
    return [value for value in found.values() if value is not None], "the version names no site"


def _at_most(name: str, wanted: float | None, found: float | None, missing: str = "not known") -> GateResult | None:
    return _compared(name, wanted, found, missing, operator.le, "below")


def _at_least(name: str, wanted: float | None, found: float | None, missing: str = "not known") -> GateResult | None:
    return _compared(name, wanted, found, missing, operator.ge, "above")


def _compared(
    name: str, wanted: float | None, found: float | None, missing: str, fits: Callable[[float, float], bool], side: str
) -> GateResult | None:
    """What a gate finds; None where it is not asked for. A figure that is missing or NaN does not hold."""
    if wanted is None:
        return None
    if found is None or math.isnan(found):
        return GateResult(name=name, wanted=wanted, found=None, holds=False, reason=missing)
    holds = fits(found, wanted)
    reason = "" if holds else f"{found:.6g} is not at or {side} {wanted:.6g}"
    return GateResult(name=name, wanted=wanted, found=found, holds=holds, reason=reason)
