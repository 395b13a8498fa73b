"""What a report says of how a model's terms were chosen."""

from __future__ import annotations

import pytest

from models.losses.catalogue import LossName
from services.reporting.tuning_section import tuning_section
from tests.api.conftest import a_curve


@pytest.mark.parametrize(("loss", "said"), [
    ("hinge", "scores: macro F-1<"), ("logistic", "scores: macro F-1<"),
    ("huber", "scores: minus the mean absolute error, in shares of the target&#x27;s range"),
    ("pinball", "scores: minus the mean pinball loss, in shares of the target&#x27;s range"),
])
def test_a_curve_says_what_its_scores_are(loss: LossName, said: str) -> None:
    assert said in tuning_section(a_curve(), loss)


def test_terms_that_were_not_tuned_have_no_section() -> None:
    assert tuning_section(None, "hinge") == ""
