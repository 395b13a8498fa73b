"""The robust problem that all sites of a run share: loss, ball, support, lift or network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from models.basics import TransportNorm
from services.contracts.base import Contract
from services.contracts.problems.lift import LiftSpec
from services.contracts.problems.loss import LossSpec
from services.contracts.problems.network import NetworkSpec
from services.contracts.problems.support import PolytopeSpec, SupportSpec

if TYPE_CHECKING:
    from models.methods.protocol import SupportKind

MultiClass = Literal["one_vs_rest", "crammer_singer"]
"""How more than two classes are trained: a plane a class against the rest, or all of them as one problem."""


def _is_default(multi_class: object) -> bool:
    """Written is what is not the default: plants and digests of before know no such key."""
    return multi_class == "one_vs_rest"


class TailConstants(Contract):
    """Constants of FDR Proposition 2 and the exponent of its Assumption 1; they cannot be read off the data."""

    exponent: float = Field(gt=1, allow_inf_nan=False)
    c1: float = Field(gt=0, allow_inf_nan=False)
    c2: float = Field(gt=0, allow_inf_nan=False)
    c3: float = Field(gt=0, allow_inf_nan=False)


class RadiusRule(Contract):
    """How a site finds the radius of its Wasserstein ball.

    fixed: it is ``value``. samples: ``1 / (value * N_g)`` from its own sample count. confidence: the ball holds the
    site's true distribution with probability ``confidence``, by FDR Proposition 2 where ``tail`` gives its constants;
    without them the radius is estimated in the vault by resampling, and says of itself that it is an estimate. ``seed``
    names the draws; a vault makes of it a seed of its own, so that nobody else knows which rows are drawn.
    """

    rule: Literal["fixed", "samples", "confidence"] = "samples"
    value: float = Field(
        default=10.0, ge=0, allow_inf_nan=False, description="the radius, or beta; not used with confidence"
    )
    confidence: float | None = Field(default=None, gt=0, lt=1, allow_inf_nan=False)
    tail: TailConstants | None = Field(default=None, description="None: the radius is estimated")
    seed: int = Field(default=0, ge=0, le=2**53, description="of the resampling")

    @model_validator(mode="after")
    def _fields_belong_to_the_rule(self) -> Self:
        if self.rule == "confidence" and self.confidence is None:
            raise ValueError("a radius by confidence needs confidence, above 0 and below 1")
        if self.rule != "confidence" and (self.confidence is not None or self.tail is not None):
            raise ValueError(f"confidence and tail belong to the rule confidence, the rule is {self.rule}")
        if self.rule == "samples" and self.value <= 0:
            raise ValueError(f"value, the beta of the rule samples, must be above 0, got {self.value:g}")
        return self


class SiteRadius(Contract):
    """Radius of a site's ball, as the site found it by its rule.

    ``confidence``: with which probability the ball holds the site's true distribution; None: none is claimed. With
    ``radius_is_estimate`` the radius aims at that confidence and proves none.
    """

    radius: float
    radius_is_estimate: bool = False
    confidence: float | None = None


class TrainingSpec(Contract):
    """The robust problem that all sites of a run share; it says nothing of any site's data.

    ``label_flip_cost`` is what a wrong class costs; for a regression loss, what it costs to move a target by its range.
    """

    loss: LossSpec = LossSpec()
    radius: RadiusRule = RadiusRule()
    label_flip_cost: float = Field(default=1.0, gt=0)
    transport_norm: TransportNorm = "l2"
    support: SupportSpec = "unbounded"
    fit_intercept: bool = True
    lift: LiftSpec | None = Field(default=None, description="None: the method sees the scaled features themselves")
    network: NetworkSpec | None = Field(
        default=None, description="of the loss cross_entropy; None: scores that are linear in the features"
    )
    multi_class: MultiClass = Field(
        default="one_vs_rest", exclude_if=_is_default, description="of more than two classes; crammer_singer: one "
        "worst case, one mixture of the sites and one certificate for all of them"
    )

    @model_validator(mode="after")
    def _classes_fit(self) -> Self:
        if self.multi_class == "crammer_singer" and (self.loss.name != "hinge" or self.support != "unbounded"):
            raise ValueError(
                "crammer_singer is the hinge of all classes on features without bounds: set loss to hinge and support "
                "to unbounded, or multi_class to one_vs_rest"
            )
        return self

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.support != "unbounded" and not math.isfinite(self.loss.loss.lipschitz):
            raise ValueError(f"the {self.loss.name} loss is for training without a ball: set support to unbounded")
        if self.support != "unbounded" and self.loss.loss.lines is None:
            raise ValueError(
                f"the {self.loss.name} loss has a robust risk for unbounded features only; set support to unbounded, "
                "or take a piecewise linear loss (hinge, epsilon_insensitive, pinball)"
            )
        if self.network is not None and not self.loss.of_all_scores:
            raise ValueError(f"a network is trained with the loss cross_entropy, got {self.loss.name}")
        if self.loss.of_all_scores and (self.lift is not None or not self.fit_intercept):
            raise ValueError(
                "cross_entropy scores the scaled features themselves: leave out the lift (a network bends by itself) "
                "and keep the intercept"
            )
        if isinstance(self.support, PolytopeSpec) and self.lift is not None:
            raise ValueError("a polytope speaks of the features themselves: leave out the lift, or the polytope")
        return self

    @property
    def ball_words(self) -> str:
        """What the radius is of under a lift, on one line; empty where it is of the sensors' readings.

        A spline stretches no distance in any norm; the other kinds do, by their Lipschitz constant.
        """
        if self.lift is None or self.lift.kind == "spline":
            return ""
        return (
            "The ball is one of lifted features: of the sensors' readings the risk holds for the radius divided by how "
            "far the lift stretches, and the gap is that of the lifted problem."
        )

    @property
    def support_kind(self) -> SupportKind:
        """What bounds the features: nothing, the sensor ranges, or a polytope."""
        if isinstance(self.support, PolytopeSpec):
            return "polytope"
        return "unbounded" if self.support == "unbounded" else "box"
