"""Rules of `--strict`: each schema property of the input and of results is read by an expression."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tasker.template.ancestry import Ancestry
from tasker.template.documents import StepDraft
from tasker.template.graph import DependencyGraph

if TYPE_CHECKING:
    from tasker.expressions.syntax import Node

Path = tuple[Any, ...]


def paths_read(node: Node) -> Iterator[Path]:
    """Yield the paths that an expression reads, each as long as it is written."""
    from tasker.expressions.syntax import path_of  # needed for templates with expressions only

    if (path := path_of(node)) is not None:
        yield path
        return
    for argument in node.args:
        yield from paths_read(argument)


def report_unread(graph: DependencyGraph, document: Mapping[str, Any], read: Iterable[Path]) -> None:
    """Warn about properties of the input, and of results, that no expression reads.

    A handler without `inputs` may read any of them, so that nothing is known about what lies before it.
    """
    known = {path[: 2 if path[0] == "input" else 3] for path in (*read, *_places(document))}
    handlers = {name for name, step in graph.steps.items() if step.made_for is None and "rules" not in step.values}
    unknown = {name for name in handlers if "inputs" not in graph.steps[name].values}
    first = next(iter(graph.steps.values()), None)
    if first is None or not graph.complete or graph.tainted:
        return
    if not unknown and ("input",) not in known:
        for name in _properties(document.get("input_schema")):
            if ("input", name) not in known:
                place = first.reading.key("input_schema", "properties", name)
                first.report("T078", f"nothing reads `input.{name}`", place, "remove it, or use it")
    below = Ancestry(graph.children)
    for step in graph.steps.values():
        if step.made_for is None and "for_each" not in step.values:
            _report_results(step, below.of(step.name), unknown, known)


def _report_results(step: StepDraft, below: Iterable[str], unknown: set[str], known: set[Path]) -> None:
    """Warn about unread properties of a result; the result of a last step is for the submitter of the task."""
    names = [*below]
    if not names or unknown.intersection(names) or ("steps", step.name) in known:
        return
    if step.type is not None and step.type.traits.waits:
        return
    for name in _properties(step.values.get("result_schema")):
        if ("steps", step.name, name) not in known:
            place = step.reading.key(*step.path, "result_schema", "properties", name)
            step.report("T078", f"nothing reads `{name}` of the result of `{step.name}`", place, "remove it, or use it")


def _properties(schema: Any) -> list[str]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return list(properties) if isinstance(properties, Mapping) else []


def _places(value: Any) -> Iterator[Path]:
    """Yield the paths of keys that are no expressions, such as `not_before` and the keys of limits."""
    if isinstance(value, Mapping):
        if isinstance(value.get("input"), list):
            yield ("input", *value["input"])
        if isinstance(value.get("step"), str) and isinstance(value.get("path"), list):
            yield ("steps", value["step"], *value["path"])
        for part in value.values():
            yield from _places(part)
    elif isinstance(value, list):
        for part in value:
            yield from _places(part)
