"""JSON Schema of templates for editors, generated from the model."""

from __future__ import annotations

from typing import Any

from tasker.template.model import TEMPLATE


def template_schema() -> dict[str, Any]:
    """Return the schema of a template, in draft 2020-12. It cannot express the rules of the graph."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tasker workflow template",
        **TEMPLATE.json_schema(),
    }
