"""The JSON Schema of templates for editors, made from the model that reads them."""

from __future__ import annotations

from typing import Any

from tasker.template.model import TEMPLATE


def template_schema() -> dict[str, Any]:
    """The schema of one template, in draft 2020-12. It cannot say what the graph rules say."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tasker workflow template",
        **TEMPLATE.json_schema(),
    }
