"""Registered templates over HTTP."""

from __future__ import annotations

from typing import Any

from tasker.client.calls.paths import path
from tasker.client.connection import HttpConnection

TEMPLATES = "/v1/templates"


class TemplateCalls:
    """Calls on templates. Those on one template raise `TemplateNotFound`."""

    connection: HttpConnection

    async def list_templates(
        self,
        namespace: str | None = None,
        *,
        name: str | None = None,
        page: int = 0,
        per_page: int = 50,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """Return a page of the registered templates in each of their versions, at most 500, with their namespaces.

        `pagination.next_cursor` of the answer is the `cursor` of the page behind it; null: there is none.
        """
        place = {"cursor": cursor} if cursor else {"page": page}
        params = {"namespace": namespace, "name": name, "per_page": per_page, **place}
        return dict(await self.connection.get(TEMPLATES, params))

    async def get_template(self, namespace: str, name: str, version: str) -> dict[str, Any]:
        """Return one template with its steps and its compiled form."""
        return dict(await self.connection.get(path(TEMPLATES, namespace, name, version)))

    async def get_template_graph(self, namespace: str, name: str, version: str, format: str = "json") -> Any:
        """Return the dependency graph as data (`json`), or drawn as `mermaid`, `dot` or `text`."""
        return await self.connection.get(path(TEMPLATES, namespace, name, version, "graph"), {"format": format})

    async def validate_template(self, namespace: str, name: str, version: str) -> dict[str, Any]:
        """Check that live workers have all handlers of the template."""
        where = path(TEMPLATES, namespace, name, version, "validate")
        return dict(await self.connection.send("POST", where, repeatable=True))

    async def register_templates(
        self, yaml: str, *, environment: str | None = None, force: bool = False, validate_only: bool = False
    ) -> dict[str, Any]:
        """Register templates from YAML, all or none. Raises `TemplateError` with every problem of the text."""
        body = {"yaml": yaml, "environment": environment, "force": force, "validate_only": validate_only}
        return dict(await self.connection.send("POST", TEMPLATES, body=body, repeatable=validate_only))
