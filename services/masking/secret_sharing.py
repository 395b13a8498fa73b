r"""Shamir's secret sharing, limb by limb in a small prime field, so that all shares are one exact matrix product.

A secret is 17 elements of GF(65521), 271 random bits; each is the constant of a polynomial of its own of degree
``threshold - 1`` with uniform coefficients, and holder k gets the values at k. Any ``threshold`` shares give the secret
(Lagrange), fewer are independent of it (Shamir 1979), in this field as in any with more elements than holders. 65521 is
the largest prime below 2^16: an element fits two bytes, and products of float64 matrices are exact.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from services.contracts.wire.masking import MaskingError

PRIME: Final = 65521  # the largest below 2^16: an element has two bytes
LIMBS: Final = 17  # elements of a secret: more than 256 bits
Elements = NDArray[np.uint16]


def new_secret() -> Elements:
    """A uniform secret (17,)."""
    return _uniform(LIMBS)


def split(secret: Elements, holders: int, threshold: int) -> Elements:
    """Shares (holders, 17), that of holder k = 1.. in row k - 1; any ``threshold`` of them give the secret.

    :class:`MaskingError` for more holders than there are points.
    """
    if not 1 <= threshold <= holders < PRIME:
        raise MaskingError(f"a secret is shared among up to {PRIME - 1} holders, got {threshold} of {holders}")
    coefficients = np.vstack([secret, _uniform((threshold - 1) * LIMBS).reshape(-1, LIMBS)])
    return _product(_powers(holders, threshold), coefficients)


def combine(shares: Mapping[int, Elements], threshold: int) -> Elements:
    """The secret (17,) from shares by holder; :class:`MaskingError` below the threshold."""
    if len(shares) < threshold:
        raise MaskingError(f"{len(shares)} shares of a secret are there, {threshold} are needed")
    holders = tuple(sorted(shares))[:threshold]
    secret: Elements = _product(_weights(holders)[None], np.stack([shares[holder] for holder in holders]))[0]
    return secret


def to_bytes(elements: Elements) -> bytes:
    """Two bytes an element, little-endian."""
    return elements.astype("<u2").tobytes()


def from_bytes(data: bytes) -> Elements:
    """Elements (17,) from :func:`to_bytes`; :class:`MaskingError` where they are none."""
    found: Elements = all_from_bytes([data])[0]
    return found


def all_from_bytes(data: Sequence[bytes]) -> Elements:
    """Elements (n, 17) of n shares, at once; :class:`MaskingError` where one of them is none."""
    whole = all(len(each) == 2 * LIMBS for each in data)
    elements = np.frombuffer(b"".join(data), dtype="<u2").reshape(-1, LIMBS) if whole else np.full((1, LIMBS), PRIME)
    if elements.max(initial=0) >= PRIME:
        raise MaskingError(f"a share has {LIMBS} elements below {PRIME}, and this is none")
    return elements.astype(np.uint16)


def _uniform(count: int) -> Elements:
    """Uniform elements (count,): random words, those that are no element thrown away."""
    found = np.zeros(0, dtype=np.uint16)
    while found.size < count:
        words = np.frombuffer(os.urandom(2 * (count - found.size)), dtype="<u2")
        found = np.concatenate([found, words[words < PRIME]])
    return found


def _product(left: FloatArray, right: Elements) -> Elements:
    """Product in the field: sums below 2^53 as long as fewer than 2^21 terms are added."""
    return np.asarray((left @ right.astype(np.float64)).astype(np.int64) % PRIME).astype(np.uint16)


@lru_cache(maxsize=8)
def _powers(holders: int, threshold: int) -> FloatArray:
    """Powers 0 to threshold - 1 of 1 to holders, (holders, threshold)."""
    powers = np.ones((holders, threshold), dtype=np.int64)
    for degree in range(1, threshold):
        powers[:, degree] = powers[:, degree - 1] * np.arange(1, holders + 1) % PRIME
    return powers.astype(np.float64)


@lru_cache(maxsize=8)
def _weights(holders: tuple[int, ...]) -> FloatArray:
    """Lagrange weights (threshold,) of the value at 0."""
    weights = []
    for own in holders:
        above, below = 1, 1
        for other in holders:
            if other != own:
                above, below = above * other % PRIME, below * (other - own) % PRIME
        weights.append(above * pow(below, -1, PRIME) % PRIME)
    return np.array(weights, dtype=np.float64)
