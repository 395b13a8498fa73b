"""A contract that is written as TOML reads back as it was."""

from __future__ import annotations

import tomllib
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from services.contracts.toml_text import quoted, to_toml


class Inner(BaseModel):
    numbers: tuple[float, ...] = ()
    by_name: dict[str, int] = {}


class Outer(BaseModel):
    inner: Inner
    name: str
    flag: bool
    nothing: int | None = None
    tables: tuple[Inner, ...] = ()
    mixed: tuple[str | dict[str, int | None], ...] = ()


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(TEXTS)
def test_any_text_is_one_line_and_reads_back(text: str) -> None:
    line = quoted(text)
    assert line.isprintable() and tomllib.loads(f"x = {line}") == {"x": text}


@given(st.dictionaries(TEXTS, st.integers(-9, 9)), TEXTS)
def test_any_contract_reads_back_whatever_its_keys(by_name: dict[str, int], name: str) -> None:
    made = Outer(
        inner=Inner(numbers=(1.0, -0.0, 1e-300, inf, -inf), by_name=by_name), name=name, flag=True,
        tables=(Inner(numbers=(0.1,)), Inner(by_name=by_name)),
    )
    assert Outer.model_validate(tomllib.loads(to_toml(made))) == made


@pytest.mark.parametrize("flag", [True, False])
def test_none_is_left_out_and_a_table_among_texts_is_on_one_line(flag: bool) -> None:
    made = Outer(inner=Inner(), name="x", flag=flag, mixed=("a", {"b": 1, "c": None, "d. e": 2}))
    told = tomllib.loads(to_toml(made))
    mixed = ["a", {"b": 1, "d. e": 2}]
    assert told == {"inner": {"numbers": []}, "name": "x", "flag": flag, "tables": [], "mixed": mixed}
