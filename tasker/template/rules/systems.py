"""Rule of the external systems that steps name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.graph import DependencyGraph


def declared(graph: DependencyGraph, document: Mapping[str, Any]) -> None:
    """Check that a step's `system_dependency` is one of the declared systems."""
    systems = document.get("system_dependencies", {})
    names = [systems.get("primary", "default"), *(s for s in systems.get("secondary", ()) if isinstance(s, str))]
    for step in graph.steps.values():
        name = step.values.get("system_dependency")
        if name is not None and name not in names:
            hint = did_you_mean(name, names) or f"declare it under `system_dependencies`; declared: {listed(names)}"
            step.report("T033", f"the system `{name}` is not declared", step.place("system_dependency"), hint)
