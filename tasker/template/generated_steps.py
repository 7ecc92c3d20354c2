"""Decision and batchable steps that the compiler generates from `when` and `for_each`.

`when` on the step `pay` becomes the decision `pay.when`, whose only branch is `pay`. `for_each` becomes the batchable
step `pay.each`, and `pay` a `batch_worker`. Each takes over the dependencies of the step, which then depends on it
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tasker.template.documents import StepDraft
from tasker.template.failure_words import FAIL_TASK, RUN
from tasker.template.step_types import DEFAULT, OF_ITEMS, OF_LISTS, OF_RULES, StepType

RULES, FOR_EACH, WAIT = "tasker.rules", "tasker.for_each", "tasker.wait"
"""Callables of steps without a handler, for messages and lists of handlers."""
WITHOUT_HANDLER = frozenset({RULES, FOR_EACH, WAIT})
CONDITION, CUT = ".when", ".each"
"""Suffixes of the names of generated steps."""
RESULTS = "results"
"""Key under which an instance of a step with `for_each` stores the results of its items."""


RESULTS_OF_ITEM = "result_schema"
"""Key of the draft's `for_each` for the schema of one result, as its author wrote it."""


def may_have_condition(type_: StepType) -> bool:
    """Return whether `when` fits a step of this type: batches and convergences are created by other steps."""
    return type_.is_plain


def with_generated_steps(drafts: Sequence[StepDraft]) -> list[StepDraft]:
    """Return the steps with those made for `when` and `for_each`, each directly before the step it is made for.

    A convergence of conditional steps also waits for their conditions: when none is true, it still has a dependency.
    """
    if not any("when" in draft.values or "for_each" in draft.values for draft in drafts):
        return list(drafts)
    all_drafts = [made for draft in drafts for made in _expanded(draft)]
    conditions = {draft.made_for: draft.name for draft in all_drafts if draft.made_for and "rules" in draft.values}
    return [_joining(draft, conditions) for draft in all_drafts]


def _expanded(draft: StepDraft) -> Iterable[StepDraft]:
    values = draft.values
    condition, each = values.get("when"), values.get("for_each")
    has_condition = isinstance(condition, str) and draft.type is not None and may_have_condition(draft.type)
    each = each if isinstance(each, Mapping) and "in" in each and draft.type is DEFAULT else None
    if draft.unreadable_dependencies or not (has_condition or each):
        return [draft]
    generated: list[StepDraft] = []
    parents = draft.depends_on
    if has_condition:
        first = draft.name + CUT if each else draft.name
        rules = [{"when": condition, "then": [first]}]
        generated.append(_made(draft, CONDITION, OF_RULES, parents, {"rules": rules}, RULES))
        parents = (draft.name + CONDITION,)
    if each:
        generated.append(_made(draft, CUT, OF_LISTS, parents, {"for_each": each}, FOR_EACH))
        parents = (draft.name + CUT,)
        values = {**values, **_of_items(values, each)}
    type_ = OF_ITEMS if each else draft.type
    return [*generated, replace(draft, type=type_, depends_on=parents, values=values)]


def _made(
    draft: StepDraft, end: str, type_: StepType, parents: tuple[str, ...], values: Mapping[str, Any], handler: str
) -> StepDraft:
    name = draft.name + end
    written = {"name": name, "handler": {"callable": handler}, "dependencies": [*draft.depends_on], **values}
    made = replace(draft, name=name, type=type_, depends_on=parents, values=written, made_for=draft.name)
    return made if draft.on_failure != RUN else replace(made, on_failure=FAIL_TASK, run_on_failure=None)


def _of_items(values: Mapping[str, Any], each: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of one item, by default the item itself, and the schema of the results of an instance."""
    name = each.get("as", "item")
    collects = each.get("on_error") == "collect"
    return {
        "for_each": {**each, RESULTS_OF_ITEM: values.get("result_schema")},
        "inputs": values.get("inputs", {name: f"${{{name}}}"}),
        "result_schema": schema_of_results(values.get("result_schema"), collects),
    }


def schema_of_results(schema: Mapping[str, Any] | None, collects: bool) -> dict[str, Any]:
    """Return the schema of what an instance stores, from that of the handler's result for one item."""
    place = f"#/properties/{RESULTS}/items" + ("/properties/result" if collects else "")
    item: Any = _moved(schema or {}, place)
    if collects:
        text = {"type": "string"}
        error = {"type": "object", "required": ["type", "message"], "properties": {"type": text, "message": text}}
        item = {
            "type": "object",
            "required": ["ok"],
            "properties": {"ok": {"type": "boolean"}, "result": item, "error": error},
        }
    return {"type": "object", "required": [RESULTS], "properties": {RESULTS: {"type": "array", "items": item}}}


def _moved(schema: Any, place: str) -> Any:
    """Return the schema with its references to itself, which begin at the root, as they are below `place`."""
    if isinstance(schema, list):
        return [_moved(part, place) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: place + part[1:]
        if key == "$ref" and isinstance(part, str) and part.startswith("#")
        else _moved(part, place)
        for key, part in schema.items()
    }


def _joining(draft: StepDraft, conditions: Mapping[str, str]) -> StepDraft:
    if draft.type is None or not draft.type.converges:
        return draft
    added = [conditions[name] for name in draft.depends_on if name in conditions]
    if not added:
        return draft
    names = [*(name for name in draft.depends_on if name not in added), *added]
    return replace(draft, depends_on=tuple(names))
