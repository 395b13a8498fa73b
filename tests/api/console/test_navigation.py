"""Which entry of the navigation is marked as the page's own."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from api.console.rendering import NAVIGATION, _section

MARKED = re.compile(r'<a href="([^"]+)"[^>]*aria-current="page"')


@pytest.mark.parametrize(("path", "section"), [
    ("/console", "/console"), ("/console/runs/7f", "/console/runs"), ("/console/models", "/console/models"),
    ("/console/models/pumps/versions/1/diagnose", "/console/diagnose"), ("/console/diagnose", "/console/diagnose"),
    ("/console/models/pumps/versions/1/fairness", "/console/models"), ("/console/plans/pumps", "/console/plans"),
    ("/console/system", "/console/admin"), ("/console/components", "/console/admin"),
    ("/console/runsabout", "/console/runsabout"),
])
def test_a_page_belongs_to_one_entry(path: str, section: str) -> None:
    assert _section(path) == section


def test_the_page_that_is_shown_is_marked_and_no_other(world: Any, signed_in: Callable[..., Any]) -> None:
    person = signed_in(world)
    for link, _, _ in NAVIGATION:
        answer = person.get(link)
        if answer.status_code == 303:  # of one model alone the page for it is shown at once
            answer = person.get(answer.headers["location"])
        assert answer.status_code == 200 and MARKED.findall(answer.text) == [link]
    assert MARKED.findall(person.get("/console/system").text) == ["/console/admin"]
