"""A version as the plain arrays that an export needs, in the order of its arithmetic.

    values --clip to [low, high]--> (v - low) / width --lift--> <w_k, z> + b_k --> scores, class or estimate

with the logarithms of v and of the ends where the contract scales by them, and ``z = max(U x + b, 0)`` of a network.

A missing optional feature (NaN) is the middle of its range. What an export cannot do is to refuse: a value outside its
range is clipped also where the contract refuses it, and a missing required feature makes every score NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.conformal.scores import class_scores
from models.features.fourier import FourierLift
from models.features.nystrom import NystromLift
from models.features.products import ProductLift
from models.features.spline import SplineLift
from services.contracts.errors import ConflictError
from services.contracts.machines.value_range import Ranges
from services.contracts.versions.model_version import ModelVersion

SingleArray = NDArray[np.float32]
EXPORTED = (FourierLift, SplineLift, ProductLift, NystromLift)
NEAR_IN_32_BITS = 5e-4
"""Distance, relative to 1 and the answer, that 32 bits may move one: half of what a header's self test takes for the
same, for another compiler may round sums otherwise."""
MOST_IN_32_BITS = float(np.finfo(np.float32).max)
VECTORS = 16
"""Test vectors of an export: each feature at both ends, below, above and, where it is optional, missing; the others are
drawn, and reach the classes of a usual model."""


@dataclass(frozen=True)
class TestVectors:
    """Values (n, P) in the contract's units, NaN where missing, and what the version says: scores (n, C) or (n, 1)."""

    values: FloatArray
    scores: FloatArray
    classes: list[int]


class PlainModel:
    """Arrays of a version; ``ConflictError`` where its lift is of a kind that no export knows.

    ``single``: it is to run in numbers of 32 bits. ``ConflictError`` too where these cannot tell readings of a range
    apart, or cannot hold weights and lifted features, well enough for the version's answers.

    ``weights`` (C, K + 1): a plane for each class, the intercept last; one for a target, whose ``target_low`` and
    ``target_width`` turn its score into the unit. ``middle`` is NaN for a required feature. ``is_log``, ``start`` and
    ``width`` (P,) as ``Ranges`` has them. ``hidden``: U (K, P) and b (K,) of a network, whose outer layer then is
    ``weights``; None where there is none.
    """

    def __init__(self, version: ModelVersion, *, single: bool = False) -> None:
        lift = version.lift
        if lift is not None and not isinstance(lift, EXPORTED):
            raise ConflictError(f"a lift of the kind {type(lift).__name__} cannot be exported", code="not_exportable")
        self.version, self.lift = version, lift
        features = version.asset_type.features
        self.features = features
        self._ranges = Ranges(features)
        self.low, self.high, self.is_log = self._ranges.low, self._ranges.high, self._ranges.is_log
        self.start, self.width = self._ranges.start, self._ranges.width
        self.middle = np.where([feature.required for feature in features], np.nan, self._ranges.middle)
        heads, self.hidden = _layers(version)
        self.target = version.asset_type.target if version.task == "regression" else None
        # Two classes share one plane; the first has its far side.
        self.weights = np.vstack([-heads, heads]) if self.target is None and len(heads) == 1 else heads
        self.classes = () if self.target is not None else version.asset_type.class_names
        if single:
            self._check_32_bits()

    def scores(self, values: FloatArray) -> FloatArray:
        """Scores (n, C), or estimates (n, 1) in the unit, as the version itself has them."""
        return self._answers(self._scaled(values))

    def _scaled(self, values: FloatArray) -> FloatArray:
        return self._ranges.scale(self._ranges.clip(np.where(np.isnan(values), self.middle, values)))

    def _answers(self, scaled: FloatArray) -> FloatArray:
        heads = self.version.head_scores(scaled)
        if self.target is None:
            return class_scores(heads)
        return np.clip(self.target.unscale(heads), self.target.low, self.target.high)

    def test_vectors(self, n: int = VECTORS) -> TestVectors:
        """Both ends, both sides beyond, missing, and values from a fixed seed, with the answers."""
        random = np.random.Generator(np.random.PCG64(2029))
        at = random.uniform(-0.2, 1.2, (n, len(self.low)))
        missing = random.uniform(size=at.shape) < 0.2
        at[2], at[3], missing[:4], missing[4] = -0.1, 1.1, False, True
        with np.errstate(over="ignore"):  # infinite is outside, too
            values = self.low + (self.high - self.low) * at
        values[0], values[1] = self.low, self.high
        values[missing & ~np.isnan(self.middle)] = np.nan
        scores = self.scores(values)
        classes = scores.argmax(axis=1).tolist() if self.target is None else [0] * n
        return TestVectors(values, scores, classes)

    def _check_32_bits(self) -> None:
        """Compare the answers to the test vectors with those to the same as 32 bits have, scale, lift and sum them."""
        vectors = self.test_vectors()
        held = (self.weights, vectors.scores, *(self.hidden or ()))
        if max(float(np.abs(array).max()) for array in held) > MOST_IN_32_BITS:
            raise ConflictError(
                f"numbers of 32 bits end at {MOST_IN_32_BITS:.2g}, and this version has larger weights or answers: "
                "export it with precision double", code="not_exportable",
            )
        with np.errstate(all="ignore"):
            values, middle, low, high, start, width = (
                array.astype(np.float32)
                for array in (vectors.values, self.middle, self.low, self.high, self.start, self.width)
            )
            cut = np.clip(np.where(np.isnan(values), middle, values), low, high)
            turned = np.where(self.is_log, np.log(np.where(self.is_log, cut, np.float32(1.0))), cut)
            scaled = (turned - start) / width
            if not _near(self._answers(scaled.astype(np.float64)), vectors.scores):
                away = np.abs(scaled - self._scaled(vectors.values))
                worst = self.features[int(away.max(axis=0).argmax())]
                raise ConflictError(
                    f"numbers of 32 bits cannot tell readings of {worst.name} from {worst.low!r} to {worst.high!r} "
                    f"{worst.unit} apart well enough for this version's answers: export it with precision double",
                    code="not_exportable",
                )
            if _near(self._answers_in_32_bits(scaled), vectors.scores):
                return
        raise ConflictError(
            "numbers of 32 bits are too coarse for this version's weights, or for what its lift makes of readings: "
            "export it with precision double", code="not_exportable",
        )

    def _answers_in_32_bits(self, scaled: SingleArray) -> FloatArray:
        """Answers to scaled values (n, P), every sum taken in 32 bits, one term after the other as a header does."""
        half, lift = np.float32(0.5), self.lift
        if self.hidden is not None:
            seen = np.maximum(_summed(scaled, self.hidden[0].T) + self.hidden[1].astype(np.float32), np.float32(0.0))
        elif isinstance(lift, NystromLift):
            squares = np.square(scaled[:, None] - lift.points.astype(np.float32)).sum(axis=2)
            bumps = np.exp(-half * squares / np.float32(lift.bandwidth**2))
            at = np.clip(half + half * _summed(bumps, lift.whitening), 0.0, 1.0)
            seen = np.hstack([scaled, at]) if lift.keep_linear else at
        else:
            seen = self.version.lifted(scaled.astype(np.float64)).astype(np.float32)
        scores = _summed(seen, self.weights[:, :-1].T) + self.weights[:, -1].astype(np.float32)
        if self.target is None:
            return scores.astype(np.float64)
        return np.clip(self.target.unscale(scores.astype(np.float64)), self.target.low, self.target.high)


def _near(found: FloatArray, answers: FloatArray) -> bool:
    """Whether no answer is moved by more than 32 bits may move one."""
    return bool((np.abs(found - answers) <= NEAR_IN_32_BITS * (1.0 + np.abs(answers))).all())


def _summed(values: SingleArray, columns: FloatArray) -> SingleArray:
    """``values @ columns`` (n, K), of values (n, I) and columns (I, K)."""
    found = np.zeros((len(values), columns.shape[1]), dtype=np.float32)
    for each, row in zip(values.T, columns.astype(np.float32), strict=True):
        found += each[:, None] * row
    return found


def _layers(version: ModelVersion) -> tuple[FloatArray, tuple[FloatArray, FloatArray] | None]:
    """Planes (C, K + 1) of what they see, and the hidden layer that they see it through, where there is one."""
    if version.network is None:
        return version.weights, None
    inner, bias, outer, last = version.network.layers(version.weights[0], len(version.asset_type.features))
    return np.column_stack([outer, last]), (inner, bias)
