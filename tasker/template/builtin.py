"""Catalogue of the built-in steps: names of their handlers, and schemas of their inputs and results; data only.

The compiler reads it without importing a handler, those of plugins included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.dataclasses import dataclass

PREFIX = "tasker."
"""Prefix of the names of all built-in steps; no other handler may have it."""
TRANSFORM, VALIDATE, FAIL, LOG, COLLECT, HTTP = (
    f"{PREFIX}{name}" for name in ("transform", "validate", "fail", "log", "collect", "http")
)
COMMAND, SQL, NOTIFY, LLM = (f"{PREFIX}{name}" for name in ("command", "sql", "notify", "llm"))
READ, WRITE, LIST, COPY = (f"{PREFIX}files.{name}" for name in ("read", "write", "list", "copy"))


@dataclass(frozen=True, slots=True)
class BuiltinStep:
    """Built-in step. `inputs` is the JSON Schema of its inputs, None if it takes none; `literal` are inputs without
    expressions; `result` is the JSON Schema of its result, None if the result depends on the step; `kind` is that of
    the resources that the inputs in `RESOURCE_INPUTS` name; `plugin` is the plugin that has the handler, and the extra
    that installs what it needs."""

    inputs: Mapping[str, Any] | None
    literal: tuple[str, ...] = ()
    result: Mapping[str, Any] | None = None
    kind: str | None = None
    plugin: str | None = None
    chosen: tuple[str, Mapping[str, str]] | None = None
    """Input whose value decides which field the result has, and these fields; the first value is the default."""


def _inputs(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


def _object(required: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of a result; no field but the listed ones may be read."""
    return {"type": "object", "required": required.split(), "properties": properties}


_TEXT = {"type": "string"}
_NAME = _PATH = {"type": "string", "minLength": 1}
_WHOLE = {"type": "integer", "minimum": 0}
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
    COMMAND: BuiltinStep(
        _inputs(
            "resource",
            resource=_NAME,
            arguments={"type": "object"},
            stdin=_TEXT,
            expect={"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}, "minItems": 1},
            output={"enum": ["text", "json"]},
        ),
        literal=("resource", "expect", "output"),
        result=_object("exit_code stderr", exit_code=_WHOLE, stderr=_TEXT, stdout=_TEXT, json={}),
        chosen=("output", {"text": "stdout", "json": "json"}),
        kind="command",
        plugin="command",
    ),
    SQL: BuiltinStep(
        _inputs(
            "resource statement",
            resource=_NAME,
            statement={"type": "string", "minLength": 1},
            parameters={"type": "object"},
            idempotent={"type": "boolean"},
        ),
        literal=("resource", "statement", "idempotent"),
        result=_object("rows count", rows={"type": "array", "items": {"type": "object"}}, count=_WHOLE),
        kind="sql",
        plugin="sql",
    ),
    READ: BuiltinStep(
        _inputs("resource path", resource=_NAME, path=_PATH, content={"enum": ["text", "json", "base64"]}),
        literal=("resource", "content"),
        result=_object("bytes sha256", bytes=_WHOLE, sha256=_TEXT, text=_TEXT, json={}, base64=_TEXT),
        chosen=("content", {"text": "text", "json": "json", "base64": "base64"}),
        kind="files",
        plugin="files",
    ),
    WRITE: BuiltinStep(
        _inputs(
            "resource path",
            resource=_NAME,
            path=_PATH,
            text=_TEXT,
            json={},
            base64=_TEXT,
            replace={"type": "boolean"},
        ),
        literal=("resource", "replace"),
        result=_object("bytes sha256", bytes=_WHOLE, sha256=_TEXT),
        kind="files",
        plugin="files",
    ),
    LIST: BuiltinStep(
        _inputs("resource", resource=_NAME, path=_TEXT, recursive={"type": "boolean"}),
        literal=("resource", "recursive"),
        result=_object("files", files={"type": "array", "items": _object("path bytes", path=_TEXT, bytes=_WHOLE)}),
        kind="files",
        plugin="files",
    ),
    COPY: BuiltinStep(
        _inputs(
            "resource path to_path",
            resource=_NAME,
            path=_PATH,
            to_resource=_NAME,
            to_path=_PATH,
            replace={"type": "boolean"},
        ),
        literal=("resource", "to_resource", "replace"),
        result=_object("bytes sha256", bytes=_WHOLE, sha256=_TEXT),
        kind="files",
        plugin="files",
    ),
    NOTIFY: BuiltinStep(
        _inputs(
            "resource text",
            resource=_NAME,
            title=_TEXT,
            text={"type": "string", "minLength": 1},
            severity={"enum": ["info", "success", "warning", "failure"]},
        ),
        literal=("resource",),
        result=_object("sent", sent={"type": "boolean"}),
        kind="notify",
        plugin="notify",
    ),
    LLM: BuiltinStep(
        _inputs(
            "resource",
            resource=_NAME,
            prompt=_TEXT,
            messages={
                "type": "array",
                "minItems": 1,
                "items": _inputs(
                    "role content", role={"enum": ["system", "developer", "user", "assistant"]}, content=_TEXT
                ),
            },
            schema={"type": "object"},
            temperature={"type": "number", "minimum": 0, "maximum": 2},
            max_tokens={"type": "integer", "minimum": 1},
        ),
        literal=("resource", "schema"),
        result=_object(
            "usage model",
            text=_TEXT,
            json={},
            model=_TEXT,
            usage=_object(
                "prompt_tokens completion_tokens total_tokens",
                prompt_tokens=_WHOLE,
                completion_tokens=_WHOLE,
                total_tokens=_WHOLE,
            ),
        ),
        kind="llm",
        plugin="llm",
    ),
}
"""Built-in steps by the name of their handler."""


RESOURCE_INPUTS = ("resource", "to_resource")
"""Inputs that name a resource, in steps that have a `kind`."""


def resources_of(step: BuiltinStep | None, inputs: Mapping[str, Any] | None) -> list[str]:
    """Return the resources that the inputs of a built-in step name; none for any other step."""
    if step is None or step.kind is None:
        return []
    return [str(inputs[key]) for key in RESOURCE_INPUTS if inputs is not None and key in inputs]


def plugin_of(handler: str) -> str | None:
    """Return the plugin that has the handler of a built-in step; None for one of the core, and for any other name."""
    return BUILTIN[handler].plugin if handler in BUILTIN else None


def plugin_hint(handler: str) -> str | None:
    """Return how to get the handler of a built-in step that is in a plugin; None for any other name."""
    if (plugin := plugin_of(handler)) is None:
        return None
    install = f'pip install "tasker-engine[{plugin}]"'
    return f'{handler} is in the plugin {plugin}: {install}, and enable it: [plugins] enabled = ["{plugin}"]'
