"""The page on which the API is tried out: bound as every page of the console is, and whole without a script."""

from __future__ import annotations

from typing import Any

from api.console.rendering import HEADERS, POLICY


def directives(policy: str) -> dict[str, str]:
    """Sources by directive."""
    return {name: sources for name, _, sources in (each.strip().partition(" ") for each in policy.split(";"))}


def test_the_page_is_bound_as_the_others_are_but_for_the_arrows_in_its_style(shared_world: Any) -> None:
    answer = shared_world.call(None, "GET", "/docs")
    found = directives(answer.headers["Content-Security-Policy"])
    assert found.pop("img-src") == "'self' data:", "pictures in its own style, and from nowhere else"
    wanted = directives(POLICY)
    assert wanted.pop("img-src") == "'self'" and found == wanted
    others = {name: text for name, text in HEADERS.items() if name != "Content-Security-Policy"}
    assert others and {name: answer.headers.get(name) for name in others} == others


def test_without_a_script_every_operation_stands_there(shared_world: Any) -> None:
    text = shared_world.call(None, "GET", "/docs").text
    for path in ("/v1/models/{name}/diagnose", "/v1/admin/plans/{name}/trigger"):
        assert path in text
