"""Rules of where handlers run."""

from __future__ import annotations

from tasker.template.graph import DependencyGraph


def memory_belongs_to_processes(graph: DependencyGraph) -> None:
    """Check that only steps in a process set `memory_mb`: threads and the event loop share their worker's memory."""
    for step in graph.steps.values():
        execution = step.values.get("execution", {})
        if "memory_mb" in execution and execution.get("mode") != "process":
            message = "`memory_mb` limits a process, and this step has none of its own"
            step.report("T038", message, step.place("execution", "memory_mb"), "add `mode: process`")
