from __future__ import annotations

import re
from typing import Any

from api.web.openapi import MAY_BE_INFINITE


def test_the_document_says_how_to_authenticate_and_how_it_fails(shared_world: Any) -> None:
    document = shared_world.call(None, "GET", "/openapi.json").json()
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            assert operation["description"].strip(), where
            assert set(operation["responses"]["default"]["content"]) == {"application/problem+json"}, where
            assert "422" not in operation["responses"], where
            assert bool(operation.get("security")) is path.startswith("/v1"), where


def test_every_reference_leads_somewhere(shared_world: Any) -> None:
    text = shared_world.call(None, "GET", "/openapi.json").text
    schemas = shared_world.app.openapi()["components"]["schemas"]
    assert set(re.findall(r"#/components/schemas/([\w.-]+)", text)) <= set(schemas)


def test_numbers_that_can_be_infinite_are_said_to_be(shared_world: Any) -> None:
    schemas = shared_world.app.openapi()["components"]["schemas"]
    for name, fields in MAY_BE_INFINITE.items():
        found = [variant for variant in (name, f"{name}-Input", f"{name}-Output") if variant in schemas]
        assert found, name
        for variant in found:
            for field in fields:
                assert {"type": "string", "enum": ["Infinity", "-Infinity", "NaN"]} in (
                    schemas[variant]["properties"][field]["anyOf"]
                ), (variant, field)


def test_the_pages_need_nothing_from_elsewhere(shared_world: Any) -> None:
    for path in ("/", "/docs"):
        page = shared_world.call(None, "GET", path)
        assert page.headers["content-type"].startswith("text/html")
        assert not re.search(r"<script|<link|<img|src=|https?://", page.text)
    docs = shared_world.call(None, "GET", "/docs").text
    for path in shared_world.app.openapi()["paths"]:
        assert path in docs
    assert "flow_peak_to_peak" in docs
