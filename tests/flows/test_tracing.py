"""Traces from the flow's side to the plants' and back, heard by a small receiver of OTLP over HTTP."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from services.process.tracing import TracingSettings, end_tracing, headers, set_up_tracing, span
from tests.loopback import serving

Spans = list[Any]
KNOWN = {"run_id", "site_id", "round", "accepted", "bytes_in", "bytes_out", "outcome", "kind_of_task"}
"""All that a span may say; ids, counts, sizes."""


@pytest.fixture
def receiver() -> Iterator[tuple[str, Spans]]:
    spans: Spans = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            said = self.rfile.read(int(self.headers["Content-Length"]))
            for of_resource in ExportTraceServiceRequest.FromString(said).resource_spans:
                for scope in of_resource.scope_spans:
                    spans.extend(scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}", spans


def said(each: Any) -> dict[str, Any]:
    values = {pair.key.removeprefix("ballast."): pair.value for pair in each.attributes}
    return {name: getattr(value, value.WhichOneof("value")) for name, value in values.items()}


def ledger_lines(works: Any) -> list[dict[str, Any]]:
    base = works.context.settings.home / "plants"
    return [json.loads(line) for path in sorted(base.glob("*/ledger.jsonl")) for line in path.read_text().splitlines()]


def test_spans_go_from_the_run_to_the_plants_and_back(works: Any, receiver: tuple[str, Spans]) -> None:
    endpoint, spans = receiver
    set_up_tracing(TracingSettings(endpoint=endpoint), "test")
    try:
        with span("run"):
            run, _, _ = works.train(works.plan("traced", max_rounds=3, gap=1e-9, method="fdr-sm"))
    finally:
        end_tracing()
    by_id = {each.span_id: each for each in spans}
    assert {each.trace_id for each in spans} == {spans[0].trace_id}
    kinds: dict[str, Spans] = {}
    for each in spans:
        kinds.setdefault(each.name, []).append(each)
        assert set(said(each)) <= KNOWN, each.name
    parent = {name: {by_id[each.parent_span_id].name for each in kinds[name] if each.parent_span_id} for name in kinds}
    assert parent["round"] == {"run"} and parent["server step"] == parent["commit"] == {"round"}
    assert parent["question"] == {"run", "round"} and parent["answer"] == {"question"}
    assert parent["local solve"] == {"answer"}
    assert [said(each)["round"] for each in kinds["round"]] == [1, 2, 3]
    assert all(said(each)["run_id"] == run.run_id and said(each)["accepted"] == 3 for each in kinds["round"])
    for each in kinds["answer"]:
        asked = said(by_id[each.parent_span_id])
        assert asked["site_id"] == said(each)["site_id"]
        assert (asked["bytes_out"], asked["bytes_in"]) == (said(each)["bytes_in"], said(each)["bytes_out"])
    # A plant whose hello comes late is asked once more.
    assert {each.parent_span_id for each in kinds["answer"]} == {each.span_id for each in kinds["question"]}
    assert len(kinds["local solve"]) == len(kinds["answer"])
    # What is signed and written down knows nothing of it.
    trace = spans[0].trace_id.hex()
    assert ledger_lines(works) and trace not in json.dumps(ledger_lines(works))


def test_without_an_endpoint_nothing_is_made_or_imported() -> None:
    set_up_tracing(TracingSettings(), "test")
    with span("run") as more:
        more["bytes_in"] = 1
        assert headers() is None
    modules = "services.site_agent.agent, services.site_agent.connection.link, services.coordinator.training"
    script = f"import sys, {modules}; print([name for name in sys.modules if name.startswith('opentelemetry')])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert done.stdout.strip() == "[]"


def test_what_a_message_carries_may_be_anything(receiver: tuple[str, Spans]) -> None:
    endpoint, spans = receiver
    set_up_tracing(TracingSettings(endpoint=endpoint), "test")
    set_up_tracing(TracingSettings(endpoint="http://127.0.0.1:9"), "another")  # a second call changes nothing
    try:
        for carried in ({"traceparent": "00-zz-1"}, {"traceparent": "x" * 10_000}, {"other": "1"}, None):
            with span("answer", "server", carried):
                pass
        with pytest.raises(ValueError, match="of a row"), span("answer"):
            raise ValueError("of a row: 3.14")
    finally:
        end_tracing()
    assert len({each.trace_id for each in spans}) == len(spans) == 5
    assert not any(each.parent_span_id for each in spans)
    assert "3.14" not in str(spans) and "ValueError" in str(spans)
