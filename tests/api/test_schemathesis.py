"""Requests that the OpenAPI document allows, and many that it does not, by every role: none breaks the server, and no
answer is one that the document does not name.

``BALLAST_API_EXAMPLES=200 python -m pytest tests/api/test_schemathesis.py`` asks longer.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from services.contracts.access.identity import Role
from tests.api.conftest import RUN_ID, SITES
from tests.api.test_roles import NEEDED, RANK

EXAMPLES = int(os.environ.get("BALLAST_API_EXAMPLES", "2"))
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
THERE = {"name": "pumps", "version": "1", "run_id": RUN_ID, "site_id": SITES[0]}
"""What stands at some addresses; else nearly every answer would be a 404."""
ENDLESS = {("GET", "/v1/events")}
"""A stream: `test_stream` has its own tests."""
ASKED = sorted(set(NEEDED) - ENDLESS) + [("POST", "/enrol"), ("GET", "/healthz"), ("GET", "/readyz")]


@pytest.fixture(scope="module")
def fuzzed(
    tmp_path_factory: pytest.TempPathFactory, new_sqlite: Callable[[], str], mlflow_settings: dict[str, str],
    opening: Callable[..., Any],
) -> Iterator[Any]:
    """A world that may be changed: what is asked by administrators is done."""
    home: Path = tmp_path_factory.mktemp("fuzzed")
    with opening(home, new_sqlite(), mlflow_settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def schema(fuzzed: Any) -> Any:
    """The document without its answers by default: what is not named is not documented."""
    document = copy.deepcopy(fuzzed.app.openapi())
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("default")
    return schemathesis.openapi.from_dict(document)


def prepared(case: Any) -> requests.PreparedRequest:
    """Request of a case; a webhook's address is one at which nothing listens."""
    if isinstance(case.body, dict) and str(case.body.get("url", "")).startswith("http"):
        case.body["url"] = "https://127.0.0.1:1/"
    kwargs = case.as_transport_kwargs(base_url="http://ballast")
    names = ("method", "url", "headers", "files", "data", "params", "auth", "cookies", "json")
    return requests.Request(**{name: kwargs[name] for name in names if name in kwargs}).prepare()


@pytest.mark.parametrize(("method", "path"), ASKED)
def test_no_request_breaks_the_server_or_is_answered_as_nobody_said(
    fuzzed: Any, schema: Any, method: str, path: str
) -> None:
    operation = schema[path][method]
    cases = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))

    @settings(
        max_examples=EXAMPLES, database=None, derandomize="BALLAST_API_EXAMPLES" not in os.environ,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],
    )
    @given(case=cases, is_there=st.booleans())
    def ask(case: Any, is_there: bool) -> None:
        if is_there:
            case.path_parameters = {name: THERE.get(name, value) for name, value in case.path_parameters.items()}
        request = prepared(case)
        headers = {name: value for name, value in request.headers.items() if name.lower() != "authorization"}
        for role in (None, *Role):
            answer = fuzzed.call(role, method, request.path_url, content=request.body, headers=dict(headers))
            case.validate_response(answer, checks=CHECKS)
            needed = NEEDED.get((method, path))
            if needed is not None and (role is None or RANK[role] < RANK[needed]):
                assert not answer.is_success, role

    ask()
