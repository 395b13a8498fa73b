"""The page ``/``, and the plain list of operations in ``/docs``: HTML that needs no script and loads nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from services.reporting.html import HOME_STYLE, page


def home_page(version: str) -> str:
    """First page: what this is, and where to go."""
    links = (
        ("/console", "the operator's console: plants, runs, models"),
        ("/docs", "how to call the API, operation by operation"),
        ("/openapi.json", "the same as an OpenAPI document, for programs"),
        ("/healthz", "whether the process answers"),
        ("/readyz", "whether the database and the registry answer, and the disk has room"),
    )
    items = "\n".join(f'<li><a href="{link}">{link}</a> {escape(text)}</li>' for link, text in links)
    body = f"<h1>Ballast</h1>\n<p>Version {escape(version)}.</p>\n<ul>\n{items}\n</ul>"
    return page("Ballast", body, HOME_STYLE)


def docs_body(document: Mapping[str, Any]) -> str:
    """HTML of every operation of an OpenAPI document, with the role that it needs and its example requests."""
    parts = [f"<h1>{escape(document['info']['title'])}</h1>", *_paragraphs(document["info"]["description"])]
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            shown = "\n".join(_operation(method, path, operation, document))
            by_tag.setdefault(operation.get("tags", ["pages"])[0], []).append(shown)
    for tag, shown_operations in by_tag.items():
        parts += [f"<h2>{escape(tag)}</h2>", *shown_operations]
    return "\n".join(parts)


def _operation(method: str, path: str, operation: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[str]:
    role = operation.get("x-role")
    badge = f' <span class="role">({escape(role)})</span>' if role else ""
    yield f"<h3>{method.upper()} {escape(path)}{badge}</h3>"
    yield from _paragraphs(operation.get("description", "").removesuffix(f"\n\nNeeds the role {role}."))
    asked = [item for item in operation.get("parameters", ()) if item["in"] == "query"]
    if asked:
        yield f"<p>Query: {escape(', '.join(item['name'] for item in asked))}.</p>"
    for title, value in _examples(operation, document):
        yield f"<p>{escape(title)}:</p>\n<pre>{escape(json.dumps(value, indent=1))}</pre>"


def _examples(operation: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return
    named = content.get("examples")
    if named:
        for item in named.values():
            yield f"Body, {item.get('summary', 'for example')}", item["value"]
        return
    name = str(content["schema"].get("$ref", "")).rsplit("/", 1)[-1]
    fields = document["components"]["schemas"].get(name, {}).get("properties", {})
    shown = {key: field["examples"][0] if "examples" in field else _kind(field) for key, field in fields.items()}
    if shown:
        yield "Body", shown


def _kind(field: Mapping[str, Any]) -> str:
    return str(field.get("default") or field.get("type") or "...")


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        if paragraph.strip():
            yield f"<p>{escape(paragraph.strip().replace('**', '').replace('`', ''))}</p>"
