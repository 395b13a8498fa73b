"""Limits of what is asked for about plants, at the limit itself, and what of an answer is shown where it is logged."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from api.models.schemas import Promotion, Rollback, Unlearning
from api.sites.schemas import CodeRequest, KeyChange, NewCode, SiteEnrolment
from services.contracts.access.enrolment import EnrolmentPackage
from services.plant_simulator.assets import builtin_asset_type


@pytest.mark.parametrize(("kind", "limits"), [
    (CodeRequest, {"expires_hours": 720.0}), (CodeRequest, {"description": "x" * 500}),
    (KeyChange, {"public_key": "U", "overlap_hours": 720.0}), (KeyChange, {"public_key": "U", "overlap_hours": 0.0}),
    (SiteEnrolment, {"site_id": "a", "public_key": "U" * 200}), (Promotion, {"reason": "abc"}),
    (Rollback, {"reason": "x" * 500}), (Unlearning, {"site": "a", "reason": "abc", "purge": "now"}),
], ids=str)
def test_what_is_at_a_limit_is_taken(kind: Any, limits: dict[str, Any]) -> None:
    assert kind.model_validate(limits).model_dump(include=set(limits)) == limits


@pytest.mark.parametrize(("kind", "wrong"), [
    (CodeRequest, {"expires_hours": 720.1}), (CodeRequest, {"expires_hours": 0.0}),
    (CodeRequest, {"description": "x" * 501}), (CodeRequest, {"certificate_sha256": "AB" * 32}),
    (KeyChange, {"public_key": "U", "overlap_hours": 720.1}), (KeyChange, {"public_key": "U", "overlap_hours": -0.1}),
    (SiteEnrolment, {"site_id": "a", "public_key": "U" * 201}), (Promotion, {"reason": " ab "}),
    (Promotion, {"reason": "abc", "version": "a/b"}), (Rollback, {"reason": "x" * 501}), (Rollback, {}),
    (Unlearning, {"site": "a", "reason": "abc", "purge": "never"}), (Unlearning, {"site": "A b", "reason": "abc"}),
], ids=str)
def test_what_is_beyond_it_is_refused(kind: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        kind.model_validate(wrong)


def test_what_happens_where_nothing_is_said() -> None:
    """A code holds a day and replaces no key; a former key a day; a promotion waits for the gates."""
    code, change = CodeRequest(), KeyChange(public_key="U")
    assert (code.expires_hours, code.replace_key, code.certificate_sha256) == (24.0, False, None)
    assert change.overlap_hours == 24.0
    promotion = Promotion(reason="tested")
    assert (promotion.version, promotion.ignore_gates) == ("challenger", False)
    assert Unlearning(site="a", reason="it left").purge == "promotion"


def test_a_new_code_shows_neither_itself_nor_its_command_where_it_is_logged() -> None:
    made = NewCode(code="blse_shown", code_id="0" * 12, site_id="a", asset_type="pump", expires_at=datetime.now(UTC),
                   command="ballast-site enrol --code blse_shown")
    assert "blse_shown" not in repr(made) + str(made)


def test_an_enrolled_plant_is_told_where_to_connect() -> None:
    fields = {"site_id": "a", "asset_type": builtin_asset_type("triplex-pump")}
    with pytest.raises(ValidationError, match="servers"):
        EnrolmentPackage.model_validate(fields | {"servers": ()})
    assert EnrolmentPackage.model_validate(fields | {"servers": ("tls://oem:4222",)}).authority is None
