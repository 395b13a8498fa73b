"""Shamir's shares: any threshold of them give the secret, fewer give nothing."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.contracts.wire.masking import MaskingError
from services.masking.secret_sharing import (
    LIMBS,
    PRIME,
    all_from_bytes,
    combine,
    from_bytes,
    new_secret,
    split,
    to_bytes,
)


@settings(max_examples=50)
@given(holders=st.integers(1, 40), data=st.data())
def test_any_threshold_of_shares_give_the_secret(holders: int, data: st.DataObject) -> None:
    threshold = data.draw(st.integers(1, holders))
    secret = new_secret()
    shares = split(secret, holders, threshold)
    chosen = data.draw(st.permutations(range(holders)))[: data.draw(st.integers(threshold, holders))]
    found = combine({holder + 1: from_bytes(to_bytes(shares[holder])) for holder in chosen}, threshold)
    np.testing.assert_array_equal(found, secret)
    np.testing.assert_array_equal(all_from_bytes([to_bytes(each) for each in shares]), shares)


def test_shares_are_values_of_one_polynomial_a_limb() -> None:
    """Computed anew in whole numbers, at two hundred holders: no product was rounded."""
    secret, holders, threshold = new_secret(), 200, 134
    shares = split(secret, holders, threshold)
    some, points = {k + 1: shares[k] for k in range(threshold)}, range(1, threshold + 1)
    for limb, at in itertools.product((0, LIMBS - 1), (150, 200)):
        value = 0
        for own in points:
            above, below = 1, 1
            for other in points:
                if other != own:
                    above, below = above * (at - other) % PRIME, below * (own - other) % PRIME
            value += int(some[own][limb]) * above * pow(below, -1, PRIME)
        assert value % PRIME == shares[at - 1][limb]


def test_fewer_shares_fit_every_secret() -> None:
    """For threshold 2 one share is consistent with any secret: the line through both exists, and is as likely."""
    secret = new_secret()
    counts = np.array([split(secret, 3, 2)[0, 0] for _ in range(400)])
    assert len(set(counts.tolist())) > 390
    assert abs(counts.mean() / PRIME - 0.5) < 0.1
    with pytest.raises(MaskingError, match="1 shares of a secret are there, 2 are needed"):
        combine({1: split(secret, 3, 2)[0]}, 2)


def test_what_is_no_share_is_refused() -> None:
    for data in (b"", b"\0" * (2 * LIMBS - 1), b"\xff" * (2 * LIMBS)):
        with pytest.raises(MaskingError, match=f"a share has {LIMBS} elements below {PRIME}"):
            from_bytes(data)
        with pytest.raises(MaskingError, match=f"a share has {LIMBS} elements below {PRIME}"):
            all_from_bytes([to_bytes(new_secret()), data])
    with pytest.raises(MaskingError, match="a secret is shared among"):
        split(new_secret(), 3, 4)


def test_random_words_that_are_no_element_are_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken for the nearest element they would make that one likelier, and shares would say something of a secret."""
    drawn = itertools.chain([PRIME, 2**16 - 1, PRIME - 1, 0], itertools.count(1))

    def urandom(size: int) -> bytes:
        return np.array(list(itertools.islice(drawn, size // 2)), dtype="<u2").tobytes()

    monkeypatch.setattr(os, "urandom", urandom)
    assert new_secret().tolist() == [PRIME - 1, *range(LIMBS - 1)]
