"""Units that read alike are alike, and no others."""

from __future__ import annotations

import pytest

from services.contracts.machines.same_unit import same_unit


@pytest.mark.parametrize(("one", "other"), [
    ("\u00b5m", "\u03bcm"), ("\u2103", "\u00b0C"), ("\u2126", "\u03a9"), ("mm\u00b2", "mm2"), ("bar", "bar"),
])
def test_a_unit_is_the_same_whichever_signs_a_keyboard_has_for_it(one: str, other: str) -> None:
    assert same_unit(one, other) and same_unit(other, one)


@pytest.mark.parametrize(("one", "other"), [
    ("bar", "psi"), ("mbar", "Mbar"), ("degC", "\u00b0C"), ("l/min", "L/min"), ("mm", "mm2"), ("", "1"),
])
def test_another_unit_is_another(one: str, other: str) -> None:
    assert not same_unit(one, other)
