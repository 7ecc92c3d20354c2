"""What every method of the client sends: path, parameters and body, and whether it sends it again."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

from tasker.client import HttpClient, Retries
from tasker.errors import TaskerError
from tasker.operations.analytics import ScalingSettings
from tasker.operations.dead_letters import FailureSelection
from tests.support.recorded import assert_recorded
from tests.support.scripted_server import refusal, scripted_server

UUID = "01900000-0000-7000-8000-000000000000"
RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
NOT_SENT = {"close", "connection", "perform", "stream", "wait"}
"""Public names that send nothing of their own, and what asks for longer than a refusal."""
VALUES: dict[str, Any] = {
    "schedule": "shop/orders/nightly",
    "deadline": datetime(2026, 1, 31, tzinfo=UTC),
    "delay": "5m",
    "expires_in": "1h",
    "run_at": datetime(2026, 1, 31, tzinfo=UTC),
    "tasks": [{"namespace": "shop", "name": "orders"}],
    "context": {"amount": 1},
    "keys": {"every": "5m"},
    "format": "dot",
    "on_duplicate": "always",
}


async def test_every_method_sends_what_is_recorded() -> None:
    lines: list[str] = []
    async with scripted_server([refusal(503, "not_ready")]) as server:
        retries = Retries(attempts=3, first_seconds=0, longest_seconds=0)
        async with HttpClient(server.url, retries=retries) as client:
            for name in sorted(name for name in {*dir(HttpClient)} - NOT_SENT if not name.startswith("_")):
                method = getattr(client, name)
                required, optional = _parameters(method)
                lines.append(f"{name}({', '.join(required)})")
                for extra in ({}, *({key: value} for key, value in optional.items())):
                    server.heard.clear()
                    outcome = await _outcome(method, {**required, **extra})
                    sent = [RANDOM.sub("UUID", request) for request in server.heard]
                    shown = "".join(f" {key}:" for key in extra)
                    lines += [f" {shown} {_request(sent[0])} x{len(sent)}" if sent else f" {shown} {outcome}"]
    assert_recorded(".", {"requests": "\n".join(lines) + "\n"})


def _parameters(method: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Values for the required parameters, and for the optional ones."""
    required: dict[str, Any] = {}
    optional: dict[str, Any] = {}
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            options = method.__globals__[str(parameter.annotation).removeprefix("Unpack[").rstrip("]")]
            optional |= {name: _value(name, str(kind), None) for name, kind in options.__annotations__.items()}
        else:
            values = required if parameter.default is parameter.empty else optional
            values[parameter.name] = _value(parameter.name, str(parameter.annotation), parameter.default)
    return required, optional


def _value(name: str, kind: str, default: Any) -> Any:
    if name in VALUES and not (name == "keys" and "int" in kind):
        return VALUES[name]
    if "uuid" in name or name == "correlation_id":
        return UUID
    if isinstance(default, int | float) and not isinstance(default, bool):
        return 7
    for word, value in (
        ("bool", not default),
        ("FailureSelection", FailureSelection(namespace="shop")),
        ("ScalingSettings", ScalingSettings(min_workers=2)),
        ("Sequence", ["a", "b"]),
        ("datetime", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("Mapping", {"key": "value"}),
        ("dict", {"key": "value"}),
        ("int", 7),
        ("float", 2.5),
    ):
        if re.search(rf"\b{word}\b", kind.partition(", Param(")[0]):
            return value
    return f"a {name}"


async def _outcome(method: Any, values: dict[str, Any]) -> str:
    try:
        answer = method(**values)
        if isinstance(answer, AsyncGenerator):
            await anext(answer)
        else:
            await answer
    except (TaskerError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing is sent"


def _request(text: str) -> str:
    head, _, body = text.partition("\r\n\r\n")
    key = re.search(r"^idempotency-key: .*$", head, re.MULTILINE | re.IGNORECASE)
    return " ".join(filter(None, (head.split(" HTTP")[0], body, key and key[0].strip())))
