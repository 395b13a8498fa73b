"""Where measurements can lie at all: everywhere, in the sensor ranges, or in a polytope that the plan gives."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from models.basics import ProblemError
from models.features.lift import Lift
from models.geometry.supports import BoxSupport, PolytopeSupport
from models.losses.base import Task
from services.contracts.base import Contract
from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.value_range import Ranges

Number = Annotated[float, Field(allow_inf_nan=False)]


class PolytopeSpec(Contract):
    """``matrix x <= limits``, x the features in the contract's order and units.

    For a regression loss ``matrix x + target_column y <= limits``, y the target in its unit. Every site scales the
    system as it scales its rows. The polytope must be bounded, and every row of every site must lie in it; a row with
    values that were clipped to their sensor range counts as clipped.
    """

    matrix: tuple[tuple[Number, ...], ...] = Field(min_length=1, max_length=1000)
    limits: tuple[Number, ...]
    target_column: tuple[Number, ...] | None = None

    @model_validator(mode="after")
    def _is_a_system(self) -> Self:
        widths = {len(row) for row in self.matrix}
        if len(widths) != 1 or 0 in widths:
            raise ValueError("the rows of the polytope's matrix must have one length, a number for each feature")
        for name, column in (("limits", self.limits), ("target_column", self.target_column)):
            if column is not None and len(column) != len(self.matrix):
                raise ValueError(
                    f"the polytope's {name} need {len(self.matrix)} numbers, one for each row of the matrix, "
                    f"got {len(column)}"
                )
        return self


def _kind(given: Any) -> str:
    """Which of the two a support is meant to be, so that only its own mistakes are told."""
    return "name" if isinstance(given, str) else "polytope"


SupportSpec = Annotated[
    Annotated[Literal["unbounded", "sensor_ranges"], Tag("name")] | Annotated[PolytopeSpec, Tag("polytope")],
    Discriminator(_kind),
]


def scaled_support(
    support: SupportSpec, asset_type: AssetType, task: Task, lift: Lift | None = None
) -> BoxSupport | PolytopeSupport | None:
    """Support of the scaled features (N, P), of the scaled target for a regression; with a lift of the lifted features.

    The sensor ranges are the box [0, 1]^P then, and with a lift the box of its coordinates, which holds their image.

    ``ProblemError`` where the polytope does not fit the asset type or the task, or is not one over which a risk is
    defined.
    """
    if support == "unbounded":
        return None
    if isinstance(support, str):
        n_features = len(asset_type.features)
        low, high = np.zeros(n_features), np.ones(n_features)
        if lift is not None:
            low, high = lift.support.low, lift.support.high
        return BoxSupport(low, high, 0.0, 1.0) if task == "regression" else BoxSupport(low, high)
    if lift is not None:
        raise ProblemError("a polytope speaks of the features themselves: leave out the lift, or the polytope")
    return _scaled_polytope(support, asset_type, task)


def _scaled_polytope(spec: PolytopeSpec, asset_type: AssetType, task: Task) -> PolytopeSupport:
    matrix, limits = np.array(spec.matrix), np.array(spec.limits)
    if matrix.shape[1] != len(asset_type.features):
        raise ProblemError(
            f"the polytope's matrix has {matrix.shape[1]} columns, asset type {asset_type.name} has "
            f"{len(asset_type.features)} features"
        )
    if (spec.target_column is not None) != (task == "regression"):
        right = "needs a target_column" if task == "regression" else "has no target, leave target_column out"
        raise ProblemError(f"a polytope for {task} {right}")
    ranges = Ranges(asset_type.features)
    if ranges.is_log.any():
        raise ProblemError("a polytope is of readings as they are: leave out features with scale log, or the polytope")
    limits = limits - matrix @ ranges.low
    matrix = matrix * (ranges.high - ranges.low)
    column = None
    if spec.target_column is not None and asset_type.target is not None:
        column = np.array(spec.target_column)
        limits = limits - column * asset_type.target.low
        column = column * asset_type.target.width
    # One length for every row: the same half-spaces, and numbers of order one for the solvers.
    rows = matrix if column is None else np.column_stack([matrix, column])
    sizes = np.abs(rows).max(axis=1)
    sizes = np.where(sizes > 0, sizes, 1.0)
    return PolytopeSupport(matrix / sizes[:, None], limits / sizes, None if column is None else column / sizes)


def support_name(support: SupportSpec) -> str:
    """The support in words."""
    if isinstance(support, str):
        return support
    return f"polytope of {len(support.matrix)} half-spaces"
