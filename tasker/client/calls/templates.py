"""Graphs of registered templates over HTTP."""

from __future__ import annotations

from typing import Any

from tasker.client.calls.operations import OperationCalls, decoded
from tasker.client.calls.paths import path
from tasker.client.connection import HttpConnection
from tasker.operations.templates import TEMPLATES, TemplateOperations
from tasker.views.templates import TemplateGraph


class TemplateCalls(OperationCalls, TemplateOperations):
    """Calls on templates. Those on one template raise `TemplateNotFound`."""

    connection: HttpConnection

    async def get_template_graph(self, namespace: str, name: str, version: str, format: str = "json") -> Any:
        """Return the dependency graph (a `TemplateGraph`), or drawn as `mermaid`, `dot` or `text`."""
        answer = await self.connection.get(path(TEMPLATES, namespace, name, version, "graph"), {"format": format})
        return decoded(TemplateGraph, answer) if format == "json" else str(answer)
