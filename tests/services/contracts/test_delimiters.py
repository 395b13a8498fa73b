"""What divides the cells of a table is seen in a header of one cell."""

from __future__ import annotations

import pytest

from services.contracts.delimiters import other_delimiter


@pytest.mark.parametrize(("header", "stated", "other"), [
    (["a;b"], ",", ";"), (["a\tb"], ",", "\t"), (["a,b"], ";", ","), (["a|b"], ",", "|"), (["a;b"], ";", None),
    (["a"], ",", None), ([], ",", None), (["a;b", "c"], ",", None),
])
def test_another_mark_in_a_header_of_one_cell_is_seen(header: list[str], stated: str, other: str | None) -> None:
    assert other_delimiter(header, stated) == other
