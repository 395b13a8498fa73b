"""How a model's terms were chosen, as a page has it: what the report says, and a drawing that is no text."""

from __future__ import annotations

import pytest
from markupsafe import escape

from api.console.views.tuning import tuning_part
from models.losses.catalogue import LossName
from services.reporting import tuning_section
from tests.api.conftest import a_curve


def test_terms_as_the_plan_says_have_no_part() -> None:
    assert tuning_part(None, "hinge") is None


@pytest.mark.parametrize("loss", ["hinge", "huber"])
def test_a_tuning_is_told_as_the_report_tells_it(loss: LossName) -> None:
    curve = a_curve()
    part = tuning_part(curve, loss)
    assert part is not None
    assert (part.title, part.head) == (tuning_section.TITLE, tuning_section.HEAD)
    assert part.caption == tuning_section.caption(loss)
    assert tuning_section.caption("hinge") != tuning_section.caption("huber"), "what a score is follows from the loss"
    assert part.account == tuning_section.tuning_account(curve) and part.rows == tuning_section.tuning_rows(curve)
    assert len(part.rows) == len(curve.candidates)
    assert str(escape(part.chart)) == tuning_section.tuning_chart(curve) and str(escape(part.account)) == part.account
