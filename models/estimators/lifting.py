"""The lift of an estimator: splines over the data's own ranges, or any lift that is given."""

from __future__ import annotations

from models.basics import FloatArray, ProblemError
from models.estimators.scaling import wide_enough
from models.estimators.values import whole_number
from models.features.lift import Lift
from models.features.products import ProductLift
from models.features.spline import SplineLift, spline_between

LiftArgument = str | Lift | None


def fitted_lift(given: LiftArgument, size: object, features: FloatArray, support: object) -> Lift | None:
    """The lift of features (N, P), in their own units.

    "spline": ``size`` segments between the least and the largest value of each feature, over all rows of all sites,
    which an estimator sees; a feature that is always the same has segments above its value. A lift that is given takes
    the features as they are.

    ``ProblemError`` for another argument, a lift of another number of features, or one beside a support.
    """
    if given is None:
        return None
    if support is not None:
        raise ProblemError("a support speaks of the features themselves: leave out the lift, or the support")
    if isinstance(given, str):
        if given != "spline":
            raise ProblemError(f"lift must be None, 'spline' or a lift of models.features, got {given!r}")
        return spline_of(features, whole_number("lift_size", size, least=1))
    if not hasattr(given, "least_move"):
        raise ProblemError(f"lift must be None, 'spline' or a lift of models.features, got {type(given).__name__}")
    if given.n_inputs != features.shape[1]:
        raise ProblemError(f"the lift takes {given.n_inputs} features, the data have {features.shape[1]}")
    return given


def spline_of(features: FloatArray, segments: int) -> Lift:
    """Splines over the ranges of features (N, P), as :func:`fitted_lift` has them."""
    low, high = features.min(axis=0), features.max(axis=0)
    return spline_between(low, low + wide_enough(low, high), segments)


def segments_of(lift: Lift | None) -> int:
    """Segments of splines, alone or beside products; 0 for none, and for another lift."""
    if isinstance(lift, ProductLift):
        return 0 if lift.spline is None else lift.segments
    return lift.segments if isinstance(lift, SplineLift) else 0


def kind_of(lift: Lift | None) -> str:
    """"none", "spline", "products" or "other"."""
    if lift is None:
        return "none"
    return "spline" if isinstance(lift, SplineLift) else "products" if isinstance(lift, ProductLift) else "other"
