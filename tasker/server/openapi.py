"""The OpenAPI description, also as a page.

Both are open to everyone because they contain nothing about this deployment. They are generated in a thread so that
they do not block the event loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.responses import HTMLResponse

from tasker.server.auth.gate import REQUIRED
from tasker.server.rendering import Json
from tasker.server.routes import router
from tasker.server.shapes.problems import OF_BODIES, Problem, refusal
from tasker.settings.defaults import KEY_HEADER

SCHEMES: dict[str, Any] = {
    "bearer_auth": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A token signed with RS256 by the configured issuer.",
    },
    "api_key_auth": {
        "type": "apiKey",
        "in": "header",
        "name": KEY_HEADER,
        "description": "A key of the configuration; the header is the configured one.",
    },
}
"""Credentials of a server with authentication; a server without it accepts requests as they are."""
FRAMEWORKS_OWN = ("HTTPValidationError", "ValidationError")


def description_of(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with the error schema of Tasker and the required permissions added."""
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    _, definitions = models_json_schema([(Problem, "serialization")], ref_template="#/components/schemas/{model}")
    schemas.update(definitions["$defs"])
    for name in FRAMEWORKS_OWN:
        schemas.pop(name, None)
    document["components"]["securitySchemes"] = SCHEMES
    for schema in schemas.values():
        _name_formats(schema.get("properties", {}).items())
    for operations in document["paths"].values():
        for operation in operations.values():
            _complete(operation)
    return document


def _name_formats(properties: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Set the format of identifiers: the code declares them as text because it accepts every spelling of a UUID."""
    for name, schema in properties:
        if name == "uuid" or name.endswith(("_uuid", "correlation_id")):
            for variant in (schema, *schema.get("anyOf", ())):
                if variant.get("type") == "string":
                    variant["format"] = "uuid"


def _complete(operation: dict[str, Any]) -> None:
    _name_formats((parameter["name"], parameter["schema"]) for parameter in operation.get("parameters", ()))
    if "requestBody" in operation:
        operation["responses"] |= {str(status): refusal(status) for status in OF_BODIES}
        operation["responses"] = dict(sorted(operation["responses"].items()))
    content = operation["responses"].get("422", {}).get("content", {})
    if "application/json" in content:
        del operation["responses"]["422"]
    if permission := operation.get(REQUIRED):
        operation["security"] = [{name: []} for name in SCHEMES]
        words = f"Permission: `{permission}`."
        operation["description"] = f"{operation.get('description', '')}\n\n{words}".strip()


Schema = Mapping[str, Any]
QUOTED = re.compile(r"`([^`]+)`")
OF_ANY_REQUEST = ("400", "401", "403", "429", "500", "503")
"""Answers common to all operations, listed once."""


@cache
def style() -> str:
    return (Path(__file__).parent / "page.css").read_text(encoding="utf-8")


def page(described: Schema, root: str) -> str:
    """Return the HTML page of an OpenAPI description; `root` is the path under which the API is served."""
    groups: dict[str, list[str]] = {}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            entry = _operation(method, path, operation, described["components"]["schemas"])
            groups.setdefault(operation["tags"][0], []).append(entry)
    links = " ".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in groups)
    sections = "".join(
        f'<h2 id="{escape(name)}">{escape(name)}</h2>{"".join(entries)}' for name, entries in groups.items()
    )
    info = described["info"]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])}</title><style>{style()}</style>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{_text(info.get('description', ''))}</p>"
        f'<p>For tools: <a href="{escape(root)}/openapi.json">openapi.json</a></p><nav>{links}</nav>{sections}'
        f"<h2>Any of them</h2>{_table(_general(described))}</html>"
    )


def _operation(method: str, path: str, operation: Schema, schemas: Schema) -> str:
    words = operation.get("description", "")
    parameters = operation.get("parameters", ())
    inputs = [
        (parameter["name"], _type(parameter["schema"]), parameter.get("description", "")) for parameter in parameters
    ]
    name = _type(_content(operation.get("requestBody", {})))
    return (
        f'<details><summary><b class="{method}">{method.upper()}</b><code>{escape(path)}</code>'
        f"<span>{_text(_brief(words))}</span></summary><div>"
        f"{''.join(f'<p>{_text(paragraph)}</p>' for paragraph in words.split(chr(10) * 2))}"
        f"{_part('Parameters', inputs)}{_part('Body', _fields(name, schemas))}"
        f"{_part('Answers', _answers(operation['responses'], schemas))}</div></details>"
    )


def _brief(words: str) -> str:
    return words.partition("\n")[0].partition(". ")[0].removesuffix(".")


def _answers(responses: Schema, schemas: Schema) -> Iterable[tuple[str, str, str]]:
    for status, answer in responses.items():
        if status in OF_ANY_REQUEST:
            continue
        kind = _type(_content(answer))
        fields = ", ".join(f"`{name}`" for name, _, _ in _fields(kind.removeprefix("list of "), schemas))
        description = answer["description"] if answer["description"] != "Successful Response" else ""
        yield status, kind, f"{description} {fields if status < '300' else ''}".strip()


def _general(described: Schema) -> Iterable[tuple[str, str, str]]:
    descriptions = {
        status: answer["description"]
        for operations in described["paths"].values()
        for operation in operations.values()
        for status, answer in operation["responses"].items()
        if status in OF_ANY_REQUEST
    }
    return [(status, "Problem", words) for status, words in sorted(descriptions.items())]


def _fields(name: str, schemas: Schema) -> list[tuple[str, str, str]]:
    schema = schemas.get(name, {})
    needed = schema.get("required", ())
    return [
        (field, f"{_type(definition)}{', required' if field in needed else ''}", definition.get("description", ""))
        for field, definition in schema.get("properties", {}).items()
    ]


def _content(holder: Schema) -> Schema:
    return next((media_type.get("schema", {}) for media_type in holder.get("content", {}).values()), {})


def _type(schema: Schema) -> str:
    """Return the type of a value in a few words; empty if the schema gives none."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_type(variant) for variant in schema["anyOf"] if variant.get("type") != "null")
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {})) or 'values'}"
    return " ".join(str(schema[key]) for key in ("type", "format") if key in schema)


def _part(title: str, rows: Iterable[tuple[str, str, str]]) -> str:
    table = _table(rows)
    return f"<h3>{escape(title)}</h3>{table}" if table else ""


def _table(rows: Iterable[tuple[str, str, str]]) -> str:
    lines = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{escape(kind)}<td>{_text(words)}</tr>" for name, kind, words in rows
    )
    return f"<table>{lines}</table>" if lines else ""


def _text(words: str) -> str:
    return QUOTED.sub(r"<code>\1</code>", escape(words))


routes = router("description")
POLICY = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"}


@routes.get("/openapi.json", include_in_schema=False)
@routes.get("/api-docs/openapi.json", include_in_schema=False)
def get_description(request: Request) -> Json:
    """Return the OpenAPI description."""
    return Json(request.app.openapi())


@routes.get("/docs", include_in_schema=False)
@routes.get("/api-docs", include_in_schema=False)
def get_page(request: Request) -> HTMLResponse:
    """Return a page with all operations."""
    return HTMLResponse(page(request.app.openapi(), str(request.scope.get("root_path", ""))), headers=POLICY)
