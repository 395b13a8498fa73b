"""Whether an answer's numbers can be true at all: what no data, however odd, would have given.

An answer that fails here is well formed and signed: the site said it. What may be told of a true answer from the
task alone is checked, so no honest site is ever refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np

from models.basics import Arrays, FloatArray
from models.methods.catalogue import check_parameters
from models.methods.protocol import NO_PARAMETERS, Method
from models.methods.reach import reach
from models.worst_case.risk_range import risk_range, steepest_slope
from services.contracts.problems.lift import draw_lift, lift_check
from services.contracts.problems.training_spec import TrainingSpec

_ROUNDING = 1e-6
"""Relative: a slope or a radius may be off by this much."""
_LOWEST = 1e15
"""Of a cut's height and offset, in parts of what was asked, squared; 1e20 left nothing of the other plants' digits."""


def doubt(
    kind: str, spec: TrainingSpec, asked: Arrays, said: Arrays, n_features: int, method: Method | None = None,
    parameters: Mapping[str, float] = NO_PARAMETERS,
) -> str:
    """Why an answer cannot be true, on one line; empty where nothing speaks against it.

    ``spec`` is the site's problem as its task stated it, after the join with the radius that it joined with; ``asked``
    and ``said`` are the arrays of task and answer, ``n_features`` counts those of the contract. With the ``method`` and
    its ``parameters`` the ends of a round's own steps are held to how far they can lie.
    """
    found = _doubt(kind, spec, asked, said, n_features)
    if found or kind != "round" or method is None:
        return found
    return _ends(spec, asked, said, method, check_parameters(method, parameters))


def _doubt(kind: str, spec: TrainingSpec, asked: Arrays, said: Arrays, n_features: int) -> str:
    if kind != "join" and spec.loss.of_all_scores:  # its rows have no margins that a plane's weights bound
        return counted_doubt(said) if "calibration" in asked else _below_zero(said) or _held_out(said)
    if kind in ("round", "evaluate") and spec.multi_class == "crammer_singer" and "calibration" not in asked:
        # Its risk is of all planes together, which no range of one plane bounds; its slopes are as steep as others'.
        return _below_zero(said) or (_cuts(spec, asked, said) if kind == "round" else _held_out(said))
    if kind == "join":
        return _joined(spec, {name: float(array) for name, array in said.items()}, n_features)
    if kind == "tune":
        return _below_zero({name.rpartition("_")[0]: array for name, array in said.items()}) or _scored(said)
    if kind == "round":
        return _below_zero(said) or _risks(spec, asked, said, "point") or _cuts(spec, asked, said)
    if "calibration" in asked:
        return counted_doubt(said)
    return _below_zero(said) or _risks(spec, asked, said, "weights") or _loss(spec, asked, said) or _held_out(said)


def _joined(spec: TrainingSpec, said: Mapping[str, float], n_features: int) -> str:
    rule, wanted = spec.radius, said["radius"]
    if rule.rule == "fixed":
        wanted = rule.value
    elif rule.rule == "samples" and rule.value * said["n_samples"] > 0:
        wanted = 1.0 / (rule.value * said["n_samples"])
    possible = {
        "n_samples": said["n_samples"] >= 1 and said["n_samples"].is_integer(),
        "radius": said["radius"] >= 0 and math.isclose(said["radius"], wanted, rel_tol=_ROUNDING),
        "confidence": 0 <= said["confidence"] < 1,
        "radius_is_estimate": said["radius_is_estimate"] in (0.0, 1.0),
    }
    wrong = [name for name, holds in possible.items() if not holds]
    if wrong:
        return f"it joined with {wrong[0]} = {said[wrong[0]]:g}, which cannot be"
    if said["lift_check"] != lift_check(draw_lift(spec.lift, n_features)):
        return "it lifts its features otherwise than the plan says: the seed or a size differs"
    return ""


def _below_zero(said: Arrays) -> str:
    """No loss is negative, so no risk, no mean loss and no sum of errors is."""
    for name, array in said.items():
        if _never_negative(name) and (array < -_ROUNDING).any():
            return f"its {name.replace('_', ' ')} is {float(array.min()):g}, and no loss is below 0"
    return ""


def _never_negative(name: str) -> bool:
    return name.endswith(("risk", "loss", "_error", "norm_weight", "swing")) or name == "floor"


def _risks(spec: TrainingSpec, asked: Arrays, said: Arrays, place: str) -> str:
    """Each head's risk must be one that some rows have at the weights that were asked about."""
    weights = asked.get(place, asked.get(f"{place}s"))
    if weights is None or "risk" not in said:
        return ""
    weights = weights.reshape(-1, weights.shape[-1])
    prices = asked.get("price", np.zeros(len(weights)))
    for row, price, risk in zip(weights, prices, said["risk"].ravel(), strict=True):
        found = risk_range(
            row if spec.fit_intercept or place == "point" else row[:-1], spec.loss.loss, radius=spec.radius.value,
            label_flip_cost=spec.label_flip_cost, transport_norm=spec.transport_norm,
            fit_intercept=spec.fit_intercept, multiplier=float(price),
        )
        if float(risk) not in found:
            return f"its risk is {float(risk):.6g}; no rows have one outside {found.low:.6g} to {found.high:.6g} there"
    return ""


def _ends(
    spec: TrainingSpec, asked: Arrays, said: Arrays, method: Method, parameters: Mapping[str, float]
) -> str:
    """Own steps end no farther from what was asked than any rows lead them."""
    ended = [name for name in ("local_point", "snapshot") if name in said]
    for k in range(len(said[ended[0]]) if ended else 0):
        of_head = {name: array[k] for name, array in asked.items()}
        most = reach(method.site, of_head, parameters, spec.loss.loss, spec.radius.value, partial(_highest, spec))
        if most is None:
            continue
        rounding = _ROUNDING * max(1.0, float(np.abs(most.where).max()), float(most.most.max()))
        for name in ended:
            far = np.abs(said[name][k] - most.where)
            if (far > most.most + rounding).any():
                what = name.replace("_", " ")
                return f"its {what} is {float(far.max()):.6g} away, and no rows lead farther than {most.most.max():.6g}"
    return _above(spec, asked, said)


def _above(spec: TrainingSpec, asked: Arrays, said: Arrays) -> str:
    """A risk at the end of a step, and the mean loss of mixed rows, are no larger than those of the worst rows."""
    if spec.loss.of_all_scores:
        return ""
    for name, place in (("local_risk", said.get("local_point")), ("mixed_risk", asked.get("point"))):
        if name not in said or place is None:
            continue
        targets = asked.get("target", np.zeros(len(place))) if name == "local_risk" else np.zeros(len(place))
        for row, target, risk in zip(place, targets, said[name].ravel(), strict=True):
            most = max(_highest(spec, row), float(target))
            if float(risk) > most + _ROUNDING * max(1.0, most):
                return f"its {name.replace('_', ' ')} is {float(risk):.6g}, and no rows have one above {most:.6g} there"
    return ""


def _highest(spec: TrainingSpec, row: FloatArray) -> float:
    """Largest worst-case risk that any rows have at a plane (D,)."""
    return risk_range(
        row, spec.loss.loss, radius=spec.radius.value, label_flip_cost=spec.label_flip_cost,
        transport_norm=spec.transport_norm, fit_intercept=spec.fit_intercept,
    ).high


def _loss(spec: TrainingSpec, asked: Arrays, said: Arrays) -> str:
    """The mean loss of held-out rows, the heads summed, is at most that of the rows that fare worst."""
    highest = sum(
        risk_range(
            row if spec.fit_intercept else row[:-1], spec.loss.loss, radius=0.0, label_flip_cost=spec.label_flip_cost,
            transport_norm=spec.transport_norm, fit_intercept=spec.fit_intercept,
        ).high
        for row in asked["weights"]
    )
    if float(said["loss"]) > highest + _ROUNDING * max(1.0, highest):
        return f"its mean loss is {float(said['loss']):.6g}, and no rows have one above {highest:.6g} there"
    return ""


def _cuts(spec: TrainingSpec, asked: Arrays, said: Arrays) -> str:
    """No cut is steeper than a loss over features in [0, 1] can be, nor lower than numbers can be added at."""
    scale = max([1.0, *(float(np.abs(array).max(initial=0.0)) for array in asked.values())]) ** 2  # a squared loss
    for name in ("cut_height", "minorant_offset"):
        if name in said and (np.abs(said[name]) > _LOWEST * scale).any():
            return f"its {name.replace('_', ' ')} is above {_LOWEST * scale:g} in size, and no cut is worth that"
    loss, radius = spec.loss.loss, spec.radius.value
    limits = {"slope": steepest_slope(loss, radius), "norm_weight": radius * loss.lipschitz if radius > 0 else 0.0}
    # On the average no feature is moved by more than the radius.
    limits["swing"] = limits["norm_weight"]
    limits = {**limits, **{f"minorant_{name}": limit for name, limit in limits.items()}}
    for name, limit in (limits | {"floor": limits["norm_weight"]}).items():
        largest = float(np.abs(said[name]).max(initial=0.0)) if name in said else 0.0
        if largest > limit + _ROUNDING * max(1.0, limit):
            return f"its {name.replace('_', ' ')} is {largest:.6g}, and none is above {limit:.6g}"
    return ""


def _scored(said: Arrays) -> str:
    """No count and no sum of errors is below 0."""
    below = any((array < -_ROUNDING).any() for name, array in said.items() if name.startswith("score"))
    return "it counted fewer than no held-out rows" if below else ""


def _held_out(said: Arrays) -> str:
    """Counts must be whole, and no sum may be larger than so many rows give."""
    counts = said.get("confusion", said.get("n_test", np.zeros(())))
    if (counts < 0).any() or not np.array_equal(counts, np.round(counts)):
        return "it counted held-out rows that are no whole number"
    if "n_test" in said:
        most: FloatArray = counts * (1.0 + _ROUNDING)
        for name in ("covered", "target_sum", "target_squares"):
            if not 0.0 <= float(said[name]) <= float(most):
                return f"its {name.replace('_', ' ')} is {float(said[name]):g} over {int(counts)} held-out rows"
    return ""


def counted_doubt(said: Arrays) -> str:
    """Counts on a grid are whole, never fall, and no more than the rows; all residuals by estimate are counted."""
    for name, array in said.items():
        trained = name in ("training", "n_train")
        rows, whose = float(said["n_train" if trained else "n_test"]), "training" if trained else "held-out"
        if (array < 0).any() or not np.array_equal(array, np.round(array)) or (array > rows).any():
            return f"its {name.replace('_', ' ')} are no whole numbers up to its {rows:g} {whose} rows"
        if name in ("by_estimate", "training") and array[:, -1].sum() != rows:
            return f"its counts {name.replace('_', ' ')} are of {array[:, -1].sum():g}, not {rows:g} {whose} rows"
    if any((np.diff(said[name]) < 0).any() for name in ("counts", "by_estimate", "training") if name in said):
        return "its counts fall from one threshold to the next"
    return ""
