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
            is_protocol = path.startswith("/v2")
            assert {"default", "400" if is_protocol else "422", "503"} <= set(operation["responses"]), where
            said = "application/json" if is_protocol else "application/problem+json"
            for status, answer in operation["responses"].items():
                # What `/readyz` and `/v2/health/ready` answer then says what is missing.
                tells = path in ("/readyz", "/v2/health/ready") and status == "503"
                if status == "304":
                    assert method == "get" and "content" not in answer, (where, status)
                elif not status.startswith("2") and not tells:
                    assert set(answer["content"]) == {said}, (where, status)
            needs_token = path.startswith(("/v1", "/v2", "/metrics")) and not path.startswith("/v2/health")
            assert bool(operation.get("security")) is needs_token, where


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
        assert all(address.startswith("/") for address in re.findall(r'(?:src|href)="([^"]*)"', page.text)), path
        assert not re.search(r"https?://", page.text), path
    docs = shared_world.call(None, "GET", "/docs").text
    for path in shared_world.app.openapi()["paths"]:
        assert path in docs
    assert "flow_peak_to_peak" in docs
