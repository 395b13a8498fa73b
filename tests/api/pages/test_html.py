"""The pages that need no script: every word is escaped, and each operation says what it takes and who may."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from api.pages.html import docs_body, home_page

HOSTILE = "<script>alert(1)</script>\"'&"


def document(**operation: Any) -> dict[str, Any]:
    told = {"tags": ["pumps"], "description": "Says it.", "x-role": "operator"} | operation
    return {
        "info": {"title": "Ballast", "description": "What it is."}, "paths": {"/v1/things/{id}": {"post": told}},
        "components": {"schemas": {"Thing": {"properties": {
            "size": {"type": "number"}, "name": {"type": "string", "default": "x"}, "kind": {"examples": ["a", "b"]},
        }}}},
    }


def body_of(content: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"content": {"application/json": content}}}


@pytest.mark.parametrize("operation", [
    {"description": HOSTILE}, {"tags": [HOSTILE]}, {"x-role": HOSTILE}, {"summary": HOSTILE},
    {"parameters": [{"in": "query", "name": HOSTILE}]},
    body_of({"examples": {"one": {"summary": HOSTILE, "value": {HOSTILE: HOSTILE}}}}),
], ids=lambda operation: next(iter(operation)))
def test_words_of_an_operation_stay_words(operation: dict[str, Any]) -> None:
    shown = docs_body(document(**operation))
    assert "<script" not in shown and HOSTILE.replace('"', "") not in shown.replace('"', "")


def test_words_of_the_document_and_the_version_stay_words() -> None:
    told = document()
    told["info"] = {"title": HOSTILE, "description": HOSTILE}
    told["paths"] = {HOSTILE: told["paths"]["/v1/things/{id}"]}
    assert "<script" not in docs_body(told)
    assert "<script" not in home_page(HOSTILE) and "Version &lt;script" in home_page(HOSTILE)


def test_an_operation_says_who_may_and_what_it_takes_in_the_query() -> None:
    parameters = [{"in": "path", "name": "id"}, {"in": "query", "name": "limit"}, {"in": "query", "name": "after"},
                  {"in": "header", "name": "If-Match"}]
    told = "Makes **one** `thing`.\n\nTwice.\n\nNeeds the role operator."
    shown = docs_body(document(parameters=parameters, description=told))
    assert '<h3>POST /v1/things/{id} <span class="role">(operator)</span></h3>' in shown
    assert "<p>Query: limit, after.</p>" in shown
    assert "<p>Makes one thing.</p>\n<p>Twice.</p>" in shown and "Needs the role" not in shown
    open_to_all = docs_body(document(**{"x-role": None}))
    assert 'class="role"' not in open_to_all and "Query" not in open_to_all


def test_an_operation_shows_its_examples_else_a_body_of_its_fields() -> None:
    named = {"examples": {"one": {"value": {"size": 7}}, "two": {"summary": "a big one", "value": {"size": 8}}}}
    shown = unescape(docs_body(document(**body_of(named))))
    assert re.findall(r"<p>Body, ([^<]*):</p>", shown) == ["for example", "a big one"] and '"size": 8' in shown
    by_fields = unescape(docs_body(document(**body_of({"schema": {"$ref": "#/components/schemas/Thing"}}))))
    assert '"size": "number"' in by_fields and '"name": "x"' in by_fields and '"kind": "a"' in by_fields
    assert "<pre>" not in docs_body(document())
