"""What the pages of a version are made of: no plant's name for who may not know it, and no weights for anybody."""

from __future__ import annotations

import json
import re
from typing import Any

from api.console.views.models import fairness, version_page
from services.contracts.documents import to_plain
from tests.api.conftest import SITES

NAMES = re.compile(r"plant-[a-z]+")


def test_no_part_of_a_versions_page_names_a_plant_to_who_may_not_know_it(shared_world: Any) -> None:
    shown, real = (version_page(shared_world.backend, "pumps", "champion", real=real) for real in (False, True))
    assert set(NAMES.findall(json.dumps(real.parts))) >= set(SITES)
    assert NAMES.findall(repr(shown) + json.dumps(shown.parts)) == []
    assert shown.number == real.number == "1" and shown.is_champion


def test_the_parts_of_a_page_are_those_of_version_and_report_without_the_weights(shared_world: Any) -> None:
    """They would run anywhere: an export is for operators, and leaves an entry."""
    found = version_page(shared_world.backend, "pumps", "1", real=True)
    assert found.report is not None and found.note == ""
    assert set(found.parts) == {*type(found.version).model_fields, *type(found.report).model_fields} - {"weights"}


def test_no_part_of_a_fairness_page_names_a_plant_to_who_may_not_know_it(shared_world: Any) -> None:
    shown, real = (fairness(shared_world.backend, "pumps", "1", real=real) for real in (False, True))
    assert {each.here.site_id for each in real.plants} == set(SITES)
    assert NAMES.findall(repr(shown) + json.dumps(to_plain(shown.report))) == []
    assert {each.site_id for each in real.report.sites} == set(SITES)
