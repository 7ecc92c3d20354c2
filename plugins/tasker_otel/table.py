"""Settings of the plugin in the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from tasker.settings.table import Check, Table, choice, flag, number, refused, text, whole


def _endpoint(value: str) -> str:
    parts = urlsplit(value)
    whole = parts.scheme in ("https", "http") and parts.hostname
    if whole and not (parts.username or parts.password or parts.query or parts.fragment):
        return value
    raise refused("Not a URL that can be posted to", "Write https://host:port, without user, password and query")


def pairs(value: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of `key=value,key=value`, with URL-encoded values. Raises `ValueError` for invalid ones."""
    for part in filter(None, (item.strip() for item in value.split(","))):
        key, separator, encoded = part.partition("=")
        if not (separator and key.strip()):
            raise ValueError(f"{key.strip()!r} is no key=value")
        yield key.strip(), unquote(encoded.strip())


def _pairs(value: str) -> str:
    try:
        entries = [*pairs(value)]
    except ValueError:
        entries = [("", "\n")]
    if any(not (key.isascii() and key.isprintable() and decoded.isprintable()) for key, decoded in entries):
        raise refused("Not a list of key=value", "Write key=value,key=value, with values encoded as in URLs")
    return value


def _headers(value: str) -> str:
    if any(" " in key or ":" in key or not decoded.isascii() for key, decoded in pairs(_pairs(value))):
        raise refused("Not a list of headers", "Write name=value,name=value in ASCII")
    return value


class OtelTable(Table):
    """The plugin `otel`: tasks and attempts as spans of OpenTelemetry, and log lines."""

    endpoint: Annotated[str, Check(_endpoint)] = text(
        "http://localhost:4318",
        "The receiver of OTLP over HTTP; spans are posted to `/v1/traces` below it.",
        variable="OTEL_EXPORTER_OTLP_ENDPOINT",
    )
    headers: Annotated[str, Check(_headers)] = text(
        "",
        "Headers of each request, as name=value,name=value; values are encoded as in URLs.",
        shortest=0,
        variable="OTEL_EXPORTER_OTLP_HEADERS",
    )
    service_name: str = text("tasker", "The service that spans and log lines are of.", variable="OTEL_SERVICE_NAME")
    resource_attributes: Annotated[str, Check(_pairs)] = text(
        "",
        "Further attributes of the service as key=value,key=value, such as deployment.environment.name=staging.",
        shortest=0,
        variable="OTEL_RESOURCE_ATTRIBUTES",
    )
    share: float = number(
        1.0,
        0,
        1,
        "The share of tasks that are traced, of those that were submitted without a traceparent.",
        advice="The others are traced if their traceparent is sampled.",
        variable="OTEL_TRACES_SAMPLER_ARG",
    )
    detail: Literal["tasks", "all"] = choice(
        "tasks",
        "Which spans are sent: those of tasks and attempts, or `all`, with those of what is done around them.",
        advice="These are creating a task, claiming a step, bringing its result, and answering a request of the API.",
    )
    messages: bool = flag(
        False,
        "Send what the handler raised, word for word.",
        advice="A message may hold what a task was given, sensitive values too. Without it a span names the type of "
        "the error.",
    )
    logs: Literal["none", "otlp"] = choice(
        "none",
        "Where the lines of the process's log are sent beside its console: `otlp`, to `/v1/logs` below the endpoint.",
        advice="What handlers log and raise is among them, word for word; sensitive values are replaced as there.",
        variable="OTEL_LOGS_EXPORTER",
    )
    timeout_seconds: float = number(10.0, 0.1, 60, "So long a batch may take, tried again included. Then it is lost.")
    queue: int = whole(
        10_000,
        512,
        1_000_000,
        "Spans, and as many log lines, that wait for the receiver at most; what comes then is lost.",
        variable="OTEL_BSP_MAX_QUEUE_SIZE",
    )
