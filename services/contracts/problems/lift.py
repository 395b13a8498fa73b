"""The lift of a training problem: what all sites do to their scaled features before the method sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, Discriminator, Field, StrictInt, StrictStr, Tag, model_validator

from models.basics import ProblemError
from models.features.fourier import fourier_lift
from models.features.kernel_lift import check_bandwidth
from models.features.lift import Lift
from models.features.nystrom import MOST_POINTS, drawn_points, nystrom_lift
from models.features.products import product_lift
from models.features.spline import spline_lift
from services.contracts.base import SHA256_PATTERN, Contract

CHECK_BITS = 52
"""Bits of a fingerprint that a float64 holds exactly."""

Fingerprint = Annotated[str, Field(pattern=SHA256_PATTERN)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A place within a sensor's range, 0 at its low end and 1 at its high end."""

Bandwidth = Annotated[float, Field(gt=0, allow_inf_nan=False), AfterValidator(check_bandwidth)]


class FourierLiftSpec(Contract):
    """Random Fourier features ``cos(<omega, x> + phase)``, drawn alike at every site from ``seed``.

    ``bandwidth`` is that of the Gaussian kernel which the features approximate, in scaled features. ``keep_linear``
    keeps the features themselves too. ``fingerprint`` is the SHA-256 of all numbers of the lift; None: not pinned yet.
    """

    kind: Literal["fourier"] = "fourier"
    components: int = Field(ge=1, le=4096)
    bandwidth: Bandwidth
    seed: int = Field(default=0, ge=0, le=2**53)
    keep_linear: bool = True
    fingerprint: Fingerprint | None = None

    def size(self, n_features: int) -> int:
        """Number of features that the method sees."""
        return self.components + (n_features if self.keep_linear else 0)

    def draw(self, n_features: int) -> Lift:
        """The lift of ``n_features`` scaled features; ``ProblemError`` where there is none."""
        return fourier_lift(
            n_features, self.components, bandwidth=self.bandwidth, seed=self.seed, keep_linear=self.keep_linear
        )

    @property
    def words(self) -> str:
        """The lift on one line."""
        return (
            f"{self.components} random Fourier features, bandwidth {self.bandwidth:.4g}, seed {self.seed}, "
            f"{_with(self.keep_linear)} the features themselves"
        )


class SplineLiftSpec(Contract):
    """A line with ``segments`` segments of equal width over each sensor's range (``models.features.spline``)."""

    kind: Literal["spline"]
    segments: int = Field(ge=1, le=64)
    fingerprint: Fingerprint | None = None

    def size(self, n_features: int) -> int:
        """Number of features that the method sees."""
        return n_features * self.segments

    def draw(self, n_features: int) -> Lift:
        """The lift of ``n_features`` scaled features; ``ProblemError`` where it makes too many."""
        return spline_lift(n_features, self.segments)

    @property
    def words(self) -> str:
        """The lift on one line."""
        return f"a spline of degree 1 for each sensor, {self.segments} segments over its range"


class ProductLiftSpec(Contract):
    """All features, and the products of all pairs of chosen ones (``models.features.products``).

    ``segments`` above 1: each feature is a spline of so many, as with ``kind = "spline"``. ``features`` are names of
    the asset type, or numbers in its order from 0; a run's problem has numbers. Written are segments above 1 alone:
    plants and digests of before know no such key.
    """

    kind: Literal["products"]
    features: tuple[StrictInt | StrictStr, ...] = Field(min_length=1, max_length=256)
    squares: bool = False
    segments: int = Field(default=1, ge=1, le=64, exclude_if=lambda segments: segments == 1)
    fingerprint: Fingerprint | None = None

    def size(self, n_features: int) -> int:
        """Number of features that the method sees."""
        chosen = len(self.features)
        return n_features * self.segments + chosen * (chosen - 1) // 2 + chosen * self.squares

    def numbered(self, names: Sequence[str]) -> Self:
        """The same with numbers for names; ``ProblemError`` for a name that no feature has."""
        unknown = [str(each) for each in self.features if isinstance(each, str) and each not in names]
        if unknown:
            raise ProblemError(f"products are of the asset type's features, and {unknown[0][:60]!r} is none of them")
        numbers = tuple(names.index(each) if isinstance(each, str) else each for each in self.features)
        return self.model_copy(update={"features": numbers})

    def draw(self, n_features: int) -> Lift:
        """The lift of ``n_features`` scaled features; ``ProblemError`` for a feature that is not there, or a name."""
        numbers = [each for each in self.features if isinstance(each, int)]
        if len(numbers) != len(self.features):
            raise ProblemError("products of named features need the asset type's names: give numbers from 0")
        return product_lift(n_features, numbers, squares=self.squares, segments=self.segments)

    @property
    def words(self) -> str:
        """The lift on one line."""
        chosen = ", ".join(str(each) for each in self.features)
        ramps = f"a spline of {self.segments} segments for each sensor"
        alone = ramps if self.segments > 1 else "the features themselves"
        return f"products of the features {chosen} ({_with(self.squares)} squares), with {alone}"


class NystromLiftSpec(Contract):
    """Nystrom features of a Gaussian kernel of ``bandwidth`` at ``points`` (``models.features.nystrom``).

    ``points``: public ones, each a place within every sensor's range; or ``components`` of them, drawn from ``seed``.
    """

    kind: Literal["nystrom"]
    components: int | None = Field(default=None, ge=1, le=MOST_POINTS)
    points: tuple[tuple[Share, ...], ...] = Field(default=(), max_length=MOST_POINTS)
    bandwidth: Bandwidth
    seed: int = Field(default=0, ge=0, le=2**53)
    keep_linear: bool = True
    fingerprint: Fingerprint | None = None

    @model_validator(mode="after")
    def _one_kind_of_points(self) -> Self:
        if (self.components is None) != bool(self.points):
            raise ValueError("a Nystrom lift needs components, drawn from its seed, or points: one of the two")
        return self

    def size(self, n_features: int) -> int:
        """Number of features that the method sees."""
        return (self.components or len(self.points)) + (n_features if self.keep_linear else 0)

    def draw(self, n_features: int) -> Lift:
        """The lift of ``n_features`` scaled features; ``ProblemError`` where its points have another length."""
        if any(len(point) != n_features for point in self.points):
            raise ProblemError(f"each point of a Nystrom lift needs {n_features} numbers, one for each feature")
        points = drawn_points(n_features, self.components, self.seed) if self.components else np.array(self.points)
        return nystrom_lift(points, bandwidth=self.bandwidth, keep_linear=self.keep_linear)

    @property
    def words(self) -> str:
        """The lift on one line."""
        points = f"{self.components} points of seed {self.seed}" if self.components else f"{len(self.points)} points"
        return (
            f"Nystrom features at {points}, bandwidth {self.bandwidth:.4g}, {_with(self.keep_linear)} the features "
            "themselves"
        )


def _with(kept: bool) -> str:
    return "with" if kept else "without"


def _kind(given: Any) -> str:
    """The kind of a lift, ``fourier`` where none is said: so it was when there was no other."""
    return str(given.get("kind", "fourier") if isinstance(given, Mapping) else getattr(given, "kind", ""))


LiftSpec = Annotated[
    Annotated[FourierLiftSpec, Tag("fourier")]
    | Annotated[SplineLiftSpec, Tag("spline")]
    | Annotated[ProductLiftSpec, Tag("products")]
    | Annotated[NystromLiftSpec, Tag("nystrom")],
    Discriminator(
        _kind, custom_error_type="unknown_lift",
        custom_error_message='the kind of a lift is fourier, spline, products or nystrom, as in '
        '{ kind = "spline", segments = 6 }',
    ),
]
"""A lift of one of these kinds; the field ``kind`` says which."""


def is_accounted(spec: LiftSpec | None) -> bool:
    """Whether the rows' coefficients are all that a vector under the lift says of them.

    Under no lift. Segments of a spline, and a narrow Nystrom kernel at a point of the asker's choice, are 0 but for few
    rows, and a slope along them is of these few. Waves are any number of equations for the rows at the same
    coefficients. And where a lift has more numbers than features a sum of two rows is enough to solve for both, with
    products and squares too.
    """
    return spec is None


class LiftMismatchError(ProblemError):
    """The lift drawn here is not the one that was pinned."""


def numbered(spec: LiftSpec | None, names: Sequence[str]) -> LiftSpec | None:
    """The same lift with numbers for the names of features; ``ProblemError`` for a name that no feature has."""
    return spec.numbered(names) if isinstance(spec, ProductLiftSpec) else spec


def draw_lift(spec: LiftSpec | None, n_features: int) -> Lift | None:
    """Draw the lift of scaled features (n, ``n_features``); None where there is none.

    ``LiftMismatchError`` where the lift has another fingerprint than ``spec`` pins: another seed or size, or another
    version of numpy. ``ProblemError`` where the lift does not fit the features.
    """
    if spec is None:
        return None
    lift = _drawn(spec.model_copy(update={"fingerprint": None}), n_features)
    if spec.fingerprint is not None and lift.fingerprint != spec.fingerprint:
        seed = getattr(spec, "seed", None)
        raise LiftMismatchError(
            f"the lift drawn here{'' if seed is None else f' from seed {seed}'} has the fingerprint "
            f"{lift.fingerprint[:16]}, {spec.fingerprint[:16]} was asked: the seed, a size or the version of numpy "
            "differs"
        )
    return lift


def pinned(spec: LiftSpec | None, n_features: int) -> LiftSpec | None:
    """The same lift with its fingerprint filled in."""
    lift = draw_lift(spec, n_features)
    return spec if spec is None or lift is None else spec.model_copy(update={"fingerprint": lift.fingerprint})


def lifted_size(spec: LiftSpec | None, n_features: int) -> int:
    """Number of features that the method sees."""
    return n_features if spec is None else spec.size(n_features)


def lift_check(lift: Lift | None) -> float:
    """First bits of the fingerprint as a number, which a site reports when it joins; 0 without a lift."""
    return float(int(lift.fingerprint, 16) >> (256 - CHECK_BITS)) if lift is not None else 0.0


@lru_cache(maxsize=16)
def _drawn(spec: LiftSpec, n_features: int) -> Lift:
    return spec.draw(n_features)
