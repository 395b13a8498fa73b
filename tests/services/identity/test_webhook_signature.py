"""What a receiver of a webhook is told of headers that are none of Ballast's: one line, whatever stands in them."""

from __future__ import annotations

import pytest

from services.contracts.errors import InvalidInputError
from services.identity.webhook_signature import TOLERANCE_SECONDS, check_signature, signature

SECRET, BODY, NOW = "whsec_a", b"{}", 1_800_000_000


@pytest.mark.parametrize("away", [-TOLERANCE_SECONDS, 0, TOLERANCE_SECONDS])
def test_a_message_of_now_is_believed(away: int) -> None:
    check_signature(SECRET, str(NOW + away), BODY, signature(SECRET, NOW + away, BODY), float(NOW))


@pytest.mark.parametrize("away", [-TOLERANCE_SECONDS - 1, TOLERANCE_SECONDS + 1])
def test_a_message_of_another_time_is_not_though_it_is_signed(away: int) -> None:
    with pytest.raises(InvalidInputError, match="too old, or from the future"):
        check_signature(SECRET, str(NOW + away), BODY, signature(SECRET, NOW + away, BODY), float(NOW))


@pytest.mark.parametrize("timestamp", ["", "-1", "1e9", f" {NOW}", f"{NOW}\n", "²", "9" * 400, "9" * 5000])
def test_a_time_that_is_none_is_refused_however_long_it_is(timestamp: str) -> None:
    """Of 400 digits no float has room for, and Python makes no number of more than 4300."""
    with pytest.raises(InvalidInputError, match="too old, or from the future"):
        check_signature(SECRET, timestamp, BODY, signature(SECRET, NOW, BODY), float(NOW))


@pytest.mark.parametrize("given", ["", "v1=", "ü", "v1=\udce4"])
def test_a_signature_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(InvalidInputError, match="the signature is not that of this message"):
        check_signature(SECRET, str(NOW), BODY, given, float(NOW))
