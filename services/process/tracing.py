"""Traces from a flow to the plants and back (OpenTelemetry, OTLP over HTTP); none of it is there without an endpoint.

A span says which run, round and site it is of, how many bytes went and how long it took: ids, counts, durations, sizes,
and nothing that depends on data. The context travels as ``traceparent`` (W3C Trace Context) in the header of a NATS
message, beside the frame: it is neither signed nor written into a ledger, and nobody heeds it but who makes traces.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from services.contracts.errors import InvalidInputError

ENDPOINT_VARIABLE: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
HEADER: Final = "traceparent"
Kind = Literal["internal", "client", "server"]


class TracingSettings(BaseModel):
    """Where traces go. Each side has a setting of its own, so a plant decides for itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    endpoint: str = Field(default="", pattern=r"^(https?://\S+)?$", description="http://host:4318; empty: no traces")

    @classmethod
    def of_environment(cls) -> Self:
        """Settings that the environment gives."""
        return cls(endpoint=os.environ.get(ENDPOINT_VARIABLE, ""))


class _Tracing:
    """What is set up in this process."""

    provider: Any = None
    tracer: Any = None


def set_up_tracing(wanted: TracingSettings, service: str) -> None:
    """Send the spans of this process to the endpoint, where there is one; a second call changes nothing.

    ``InvalidInputError`` where there is an endpoint and the extra ``tracing`` is not installed.
    """
    if not wanted.endpoint or _Tracing.provider is not None:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise InvalidInputError(
            "there is an endpoint for traces, and nothing to make them with: pip install 'ballast-diagnosis[tracing]'"
        ) from None
    # Not the global provider: MLflow and Prefect would write their own spans to it.
    _Tracing.provider = TracerProvider(resource=Resource.create({"service.name": service}), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=f"{wanted.endpoint.rstrip('/')}/v1/traces", timeout=5)
    _Tracing.provider.add_span_processor(BatchSpanProcessor(exporter))
    _Tracing.tracer = _Tracing.provider.get_tracer("ballast")
    atexit.register(end_tracing)


def end_tracing() -> None:
    """Send what is left, and send no more."""
    if _Tracing.provider is not None:
        _Tracing.provider.shutdown()
        _Tracing.provider = _Tracing.tracer = None
        atexit.unregister(end_tracing)


@contextmanager
def span(
    name: str, kind: Kind = "internal", carried: Mapping[str, str] | None = None, **attributes: str | int | float
) -> Iterator[dict[str, str | int | float]]:
    """A span around what is done inside; ``carried``, the headers of a message, say whose child it is.

    What is put into the dictionary it gives becomes attributes too. An error's text stays out: it may name data.
    """
    more: dict[str, str | int | float] = {}
    if _Tracing.tracer is None:
        yield more
        return
    from opentelemetry.trace import SpanKind, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    told = {HEADER: carried[HEADER]} if carried and HEADER in carried else {}
    parent = TraceContextTextMapPropagator().extract(told) if told else None
    with _Tracing.tracer.start_as_current_span(
        name, context=parent, kind=SpanKind[kind.upper()], attributes=_named(attributes),
        record_exception=False, set_status_on_exception=False,
    ) as made:
        try:
            yield more
        except BaseException as error:
            made.set_status(StatusCode.ERROR, type(error).__name__)
            raise
        finally:
            made.set_attributes(_named(more))


def headers() -> dict[str, str] | None:
    """Headers for a message that is sent now; None where there are no traces."""
    if _Tracing.tracer is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    told: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(told)
    return {HEADER: told[HEADER]} if HEADER in told else None


def _named(attributes: Mapping[str, str | int | float]) -> dict[str, str | int | float]:
    return {f"ballast.{name}": value for name, value in attributes.items()}
