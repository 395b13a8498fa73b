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


@pytest.mark.parametrize(("told", "place"), [
    ({"plain": True}, ("plain",)), ({"maybe": False}, ("maybe",)),
    ({"listed": [0.5, True]}, ("listed", 1)), ({"listed": (False,)}, ("listed", 0)),
    ({"named": {"rho": 1.0, "mu": True}}, ("named", "mu")),
    ({"table": {"size": True}}, ("table", "size")), ({"tables": {"a": {"size": True}}}, ("tables", "a", "size")),
])
def test_truth_in_place_of_a_number_is_refused_at_its_place(told: dict[str, Any], place: tuple[int | str, ...]) -> None:
    for take in (Kinds.model_validate, lambda each: Kinds.model_validate_json(json.dumps(each))):
        with pytest.raises(ValidationError, match="must be a number") as refused:
            take(told)
        assert [each["loc"] for each in refused.value.errors()] == [place]


def test_each_of_several_is_told() -> None:
    with pytest.raises(ValidationError) as refused:
        Kinds.model_validate({"plain": True, "listed": [True, 1.0, False], "either": True})
    assert [each["loc"] for each in refused.value.errors()] == [("plain",), ("listed", 0), ("listed", 2)]


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
    with pytest.raises(ValidationError, match="must be a number"):
        take()
