"""The lift of a training problem: what all sites do to their scaled features before the method sees them."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from pydantic import Field

from models.basics import ProblemError
from models.features.lift import FourierLift, fourier_lift
from services.contracts.base import Contract

CHECK_BITS = 52
"""Bits of a fingerprint that a float64 holds exactly."""


class LiftSpec(Contract):
    """Random Fourier features ``cos(<omega, x> + phase)``, drawn alike at every site from ``seed``.

    ``bandwidth`` is that of the Gaussian kernel which the features approximate, in scaled features. ``keep_linear``
    keeps the features themselves too. ``fingerprint`` is the SHA-256 of all numbers of the lift; None: not pinned yet.
    """

    kind: Literal["fourier"] = "fourier"
    components: int = Field(ge=1, le=4096)
    bandwidth: float = Field(gt=0, allow_inf_nan=False)
    seed: int = Field(default=0, ge=0, le=2**53)
    keep_linear: bool = True
    fingerprint: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")


class LiftMismatchError(ProblemError):
    """The lift drawn here is not the one that was pinned."""


def draw_lift(spec: LiftSpec | None, n_features: int) -> FourierLift | None:
    """Draw the lift of scaled features (n, ``n_features``); None where there is none.

    ``LiftMismatchError`` where the lift has another fingerprint than ``spec`` pins: another seed or size, or another
    version of numpy.
    """
    if spec is None:
        return None
    lift = _drawn(n_features, spec.components, spec.bandwidth, spec.seed, spec.keep_linear)
    if spec.fingerprint is not None and lift.fingerprint != spec.fingerprint:
        raise LiftMismatchError(
            f"the lift drawn here from seed {spec.seed} has the fingerprint {lift.fingerprint[:16]}, "
            f"{spec.fingerprint[:16]} was asked: the seed, a size or the version of numpy differs"
        )
    return lift


def pinned(spec: LiftSpec | None, n_features: int) -> LiftSpec | None:
    """The same lift with its fingerprint filled in."""
    lift = draw_lift(spec, n_features)
    return spec if spec is None or lift is None else spec.model_copy(update={"fingerprint": lift.fingerprint})


def lifted_size(spec: LiftSpec | None, n_features: int) -> int:
    """Number of features that the method sees."""
    if spec is None:
        return n_features
    return spec.components + (n_features if spec.keep_linear else 0)


def lift_check(lift: FourierLift | None) -> float:
    """First bits of the fingerprint as a number, which a site reports when it joins; 0 without a lift."""
    return float(int(lift.fingerprint, 16) >> (256 - CHECK_BITS)) if lift is not None else 0.0


@lru_cache(maxsize=16)
def _drawn(n_features: int, components: int, bandwidth: float, seed: int, keep_linear: bool) -> FourierLift:
    return fourier_lift(n_features, components, bandwidth=bandwidth, seed=seed, keep_linear=keep_linear)
