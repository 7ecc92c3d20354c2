"""Rules of steps that start child tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tasker.template.child_keys import OF_CHILDREN, OF_LISTS
from tasker.template.documents import StepDraft
from tasker.template.graph import DependencyGraph
from tasker.template.rules.inputs import ANY_TYPE, ExpressionText, check_text, types_of_names


def children_are_complete(graph: DependencyGraph, document: Mapping[str, Any]) -> None:
    """Check that each step that starts child tasks names their template, and has only keys with a meaning for it."""
    for step in graph.steps.values():
        if step.type is None or step.made_for is not None:
            continue
        if not step.type.starts_children:
            _check_foreign_keys(step)
            continue
        if not step.reading.has(*step.path, "template"):
            hint = "write `template: NAME`, the template that its children run"
            step.report("T180", f"`{step.name}` does not say what it starts", step.location("type"), hint)
        _check_list(step)
        _check_cycle(step, document)
        if isinstance(step.values.get("output"), str):
            _check_output(step, step.values["output"])


def _check_foreign_keys(step: StepDraft) -> None:
    for key in OF_CHILDREN:
        if key in step.values:
            message = f"`{key}` belongs to a step that starts child tasks, and `{step.name}` is a {step.type} step"
            step.report("T181", message, step.reading.key(*step.path, key), "write `type: task`, or remove it")


def _check_list(step: StepDraft) -> None:
    each = step.values.get("for_each")
    for key in OF_LISTS if each is None and not step.reading.has(*step.path, "for_each") else ():
        if key in step.values:
            message = f"`{key}` needs `for_each`: `{step.name}` starts one child"
            step.report("T183", message, step.reading.key(*step.path, key), "add `for_each`, or remove it")
    for key in ("batch_size", "on_error"):
        if isinstance(each, Mapping) and key in each:
            message = f"`{key}` has no effect: each item has a child task of its own"
            hint = "write `tolerated_failures`" if key == "on_error" else "remove it"
            step.report("T183", message, step.reading.key(*step.path, "for_each", key), hint)


def _check_cycle(step: StepDraft, document: Mapping[str, Any]) -> None:
    namespace = document.get("namespace_name")
    if step.values.get("template") == document.get("name") and step.values.get("namespace", namespace) == namespace:
        message = f"`{step.name}` starts the template that it belongs to, whose tasks would start others without end"
        step.report("T184", message, step.location("template"), "start another template")


def _check_output(step: StepDraft, text: str) -> None:
    from tasker.expressions.check_scope import CheckScope  # needed for templates with expressions only
    from tasker.expressions.types import ANY

    names = {**types_of_names(None), "input": ANY}
    del names["attempt"]
    check_text(step, ExpressionText((*step.path, "output"), text, ANY_TYPE), CheckScope(names, _EveryStep()))


class _EveryStep(Mapping[str, Any]):
    """Results of the steps of another template, of which nothing is known."""

    def __getitem__(self, name: str) -> Any:
        from tasker.expressions.types import ANY

        return ANY

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
