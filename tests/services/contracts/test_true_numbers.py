"""True and false are no numbers, wherever a contract or a setting wants one."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from api.tokens.schemas import TokenRequest
from services.contracts.base import Contract
from services.contracts.plans.plan import Plan
from services.process.settings import NatsSettings


class Inner(Contract):
    """A table of its own."""

    size: int = 1
    wanted: bool = False


class Kinds(Contract):
    """All kinds of fields that may hold numbers."""

    plain: int = 0
    maybe: Annotated[float, Field(ge=0)] | None = None
    listed: tuple[float, ...] = ()
    named: dict[str, float] = {}
    either: bool | float = False
    table: Inner = Inner()
    tables: dict[str, Inner] = {}
    anything: Any = None


@pytest.mark.parametrize(("told", "words"), [
    ({"plain": True}, "plain must be a number, and true is none"),
    ({"maybe": False}, "maybe must be a number, and false is none"),
    ({"listed": [0.5, True]}, "listed must be a number, and true is none"),
    ({"listed": (False,)}, "listed must be a number, and false is none"),
    ({"named": {"rho": 1.0, "mu": True}}, "named.mu must be a number, and true is none"),
    ({"table": {"size": True}}, "size must be a number, and true is none"),
    ({"tables": {"a": {"size": True}}}, "size must be a number, and true is none"),
])
def test_truth_in_place_of_a_number_is_refused_by_its_name(told: dict[str, Any], words: str) -> None:
    for take in (Kinds.model_validate, lambda each: Kinds.model_validate_json(json.dumps(each))):
        with pytest.raises(ValidationError, match=words):
            take(told)


def test_numbers_and_truth_where_it_is_wanted_are_taken() -> None:
    told = {"plain": 1, "maybe": 0, "listed": [1, 0.5], "named": {"rho": 1}, "either": True,
            "table": {"size": 2, "wanted": True}, "tables": {"a": {"wanted": False}}, "anything": [True]}
    found = Kinds.model_validate(told)
    assert found.either is True and found.table.wanted and found.anything == [True] and found.listed == (1.0, 0.5)
    assert Kinds.model_validate(found) == found


@pytest.mark.parametrize("take", [
    lambda: TypeAdapter(TokenRequest).validate_python({"actor": "a gauge", "role": "viewer", "days": True}),
    lambda: Plan.model_validate({"name": "pumps", "asset_type": "pump", "max_rounds": True}),
    lambda: NatsSettings.model_validate({"port": True}),
])
def test_tokens_plans_and_settings_are_held_to_it(take: Any) -> None:
    with pytest.raises(ValidationError, match="must be a number, and true is none"):
        take()
