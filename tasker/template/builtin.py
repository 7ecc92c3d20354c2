"""Built-in steps: names of their handlers, and schemas of their inputs and results; data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.dataclasses import dataclass

TRANSFORM, VALIDATE, FAIL, LOG, COLLECT, HTTP = (
    f"tasker.{name}" for name in ("transform", "validate", "fail", "log", "collect", "http")
)


@dataclass(frozen=True, slots=True)
class BuiltinStep:
    """Built-in step. `inputs` is the JSON Schema of its inputs, None if it takes none; `literal` are inputs without
    expressions; `result` is the JSON Schema of its result, None if the result depends on the step; `kind` is that of
    the resource that its input `resource` names."""

    inputs: Mapping[str, Any] | None
    literal: tuple[str, ...] = ()
    result: Mapping[str, Any] | None = None
    kind: str | None = None


def _inputs(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
_MISMATCH = {"type": "object", "required": ["path", "message"], "properties": {"path": _TEXT, "message": _TEXT}}

BUILTIN: Mapping[str, BuiltinStep] = {
    TRANSFORM: BuiltinStep({"type": "object", "minProperties": 1}),
    VALIDATE: BuiltinStep(
        _inputs("value schema", value={}, schema={"type": "object"}, on_invalid={"enum": ["fail", "report"]}),
        literal=("schema",),
        result={
            "type": "object",
            "required": ["valid", "problems"],
            "properties": {"valid": {"type": "boolean"}, "problems": {"type": "array", "items": _MISMATCH}},
        },
    ),
    FAIL: BuiltinStep(_inputs("message", message=_TEXT, code=_TEXT, retryable={"type": "boolean"})),
    LOG: BuiltinStep(
        _inputs(
            "message",
            message=_TEXT,
            fields={"type": "object"},
            level={"enum": ["debug", "info", "warning", "error"]},
        ),
        result={"type": "object", "properties": {}, "additionalProperties": False},
    ),
    COLLECT: BuiltinStep(None),
    HTTP: BuiltinStep(
        _inputs(
            "resource",
            resource={"type": "string", "minLength": 1},
            method={"enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]},
            path={"type": "string", "pattern": "^/"},
            query={"type": "object"},
            headers={"type": "object", "additionalProperties": _TEXT},
            json={},
            text=_TEXT,
            expect={"type": "array", "items": {"type": "integer", "minimum": 100, "maximum": 599}, "minItems": 1},
            response={"enum": ["json", "text", "none"]},
            idempotent={"type": "boolean"},
            pages=_inputs(
                "items next",
                items={"type": "string", "minLength": 1},
                next={"type": "string", "minLength": 1},
                most={"type": "integer", "minimum": 1, "maximum": 1000},
            ),
        ),
        literal=("resource", "method", "expect", "response", "idempotent", "pages"),
        kind="http",
    ),
}
"""Built-in steps by the name of their handler."""


def resource_of(handler: str, inputs: Mapping[str, Any] | None) -> str | None:
    """Return the resource that a step with this handler names in its inputs; None for any other step."""
    builtin = BUILTIN.get(handler)
    return None if builtin is None or builtin.kind is None else str((inputs or {}).get("resource"))
