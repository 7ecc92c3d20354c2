"""Shape of a key that contains a JSON Schema."""

from __future__ import annotations

from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.template.reading import DocumentReading, Path
from tasker.template.schema.check import schema_problems
from tasker.template.shapes import wrong_type
from tasker.template.yaml.nodes import Node


@dataclass(frozen=True)
class SchemaKey:
    """JSON Schema, which is validated; errors have positions inside it."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the schema as plain data."""
        if not isinstance(node.value, dict):
            return wrong_type("a JSON Schema, which is a mapping", node, reading)
        schema = node.plain()
        for problem in schema_problems(schema):
            reading.report.add("T028", f"not a valid JSON Schema: {problem.message}", _inside(node, problem.path).place)
        return schema

    def json_schema(self) -> dict[str, Any]:
        return {"type": "object"}


def _inside(node: Node, path: Path) -> Node:
    for part in path:
        if isinstance(node.value, dict) and part in node.value:
            node = node.value[part].node
        elif isinstance(node.value, list) and isinstance(part, int):
            node = node.value[part]
    return node
