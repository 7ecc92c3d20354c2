"""OpenAPI description generated from the routes and schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from tasker.api.permissions import REQUIRED
from tasker.api.shapes.problems import OF_BODIES, Problem, refusal
from tasker.contracts.defaults.authentication import KEY_HEADER

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
    found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    _, ours = models_json_schema([(Problem, "serialization")], ref_template="#/components/schemas/{model}")
    schemas.update(ours["$defs"])
    for name in FRAMEWORKS_OWN:
        schemas.pop(name, None)
    found["components"]["securitySchemes"] = SCHEMES
    for schema in schemas.values():
        _name_formats(schema.get("properties", {}).items())
    for operations in found["paths"].values():
        for operation in operations.values():
            _complete(operation)
    return found


def _name_formats(properties: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Set the format of identifiers: the code declares them as text because it accepts every spelling of a UUID."""
    for name, schema in properties:
        if name == "uuid" or name.endswith(("_uuid", "correlation_id")):
            for each in (schema, *schema.get("anyOf", ())):
                if each.get("type") == "string":
                    each["format"] = "uuid"


def _complete(operation: dict[str, Any]) -> None:
    _name_formats((each["name"], each["schema"]) for each in operation.get("parameters", ()))
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
