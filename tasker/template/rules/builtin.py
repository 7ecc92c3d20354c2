"""Rules of built-in steps: their inputs fit the schemas of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tasker.template.builtin import COLLECT, LLM, PREFIX, TRANSFORM, VALIDATE, BuiltinStep
from tasker.template.diagnostics import did_you_mean, listed, near
from tasker.template.documents import Path, StepDraft
from tasker.template.generated_steps import WITHOUT_HANDLER
from tasker.template.schema_check import check_result, schema_problems

if TYPE_CHECKING:
    from tasker.expressions.check_scope import CheckScope
    from tasker.expressions.types import Type

IS_BUILTIN = re.compile(r"tasker\.[a-z0-9_-]+(\.[a-z0-9_-]+)?")
"""Names that only built-in steps have; longer ones are import paths."""
TypesOfTexts = Mapping[Path, "Type"]
"""Types of the texts that consist of one expression, by their path in `inputs`; texts with a problem are absent."""


def callable_of(step: StepDraft) -> str | None:
    """Return the name of the step's handler, None if it could not be read."""
    handler = step.values.get("handler")
    return handler.get("callable") if isinstance(handler, dict) else None


def builtin_of(step: StepDraft) -> BuiltinStep | None:
    """Return the built-in step that the handler's name stands for."""
    return step.reading.builtin.get(callable_of(step) or "")


def check_names(steps: Iterable[StepDraft]) -> None:
    """Report handlers whose name has the prefix of the built-in steps, but is the name of none."""
    for step in steps:
        name = callable_of(step) or ""
        if IS_BUILTIN.fullmatch(name) and name not in step.reading.builtin and name not in WITHOUT_HANDLER:
            known = [known.removeprefix(PREFIX) for known in step.reading.builtin if known.startswith(PREFIX)]
            meant = near(name.removeprefix(PREFIX), known)
            hint = f"did you mean `{PREFIX}{meant[0]}`?" if meant else f"built-in steps: {listed(step.reading.builtin)}"
            step.report("T170", f"there is no built-in step `{name}`", step.location("handler", "callable"), hint)


def check_step(step: StepDraft, types: TypesOfTexts) -> None:
    """Check the settings and inputs of a built-in step."""
    name = callable_of(step) or ""
    builtin = step.reading.builtin[name]
    for key in ("initialization", "method"):
        if key in step.values["handler"] and step.values["handler"][key] not in ({}, "call"):
            hint = "write its values below `inputs`" if key == "initialization" else f"remove `{key}`"
            step.report("T104", f"`{name}` has no `{key}`", step.location("handler", key), hint)
    if step.type is not None and step.type.expands:
        hint = "its result creates no steps: remove `type`, or write a handler in Python"
        step.report("T104", f"`{name}` cannot handle a step with `type: {step.type}`", step.location("type"), hint)
    inputs = step.values.get("inputs")
    if builtin.inputs is None:
        if inputs is not None:
            place = step.reading.key(*step.path, "inputs")
            step.report("T100", f"`{name}` takes no inputs", place, "remove `inputs`")
    elif not isinstance(inputs, dict):
        if not step.reading.has(*step.path, "inputs"):
            needed = listed(builtin.inputs.get("required", ()))
            hint = f"write `inputs` with {needed or 'the values of its result'}"
            step.report("T101", f"`{name}` needs inputs", step.location("handler", "callable"), hint)
    else:
        _check_names(step, inputs, builtin.inputs)
        for key, value in inputs.items():
            _check_value(step, key, value, builtin, types)
        if callable_of(step) == TRANSFORM:
            _check_result_schema(step, inputs, types)


def _check_names(step: StepDraft, inputs: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    name, known = callable_of(step), schema.get("properties")
    if known is None:
        if not inputs:
            step.report("T102", f"`{name}` needs at least one input", step.location("inputs"))
        return
    meant: set[str] = set()
    for key in inputs:
        if key not in known:
            meant.update(near(key, list(known)))
            hint = did_you_mean(key, known) or f"it takes {listed(known)}"
            place = step.reading.key(*step.path, "inputs", key)
            step.report("T100", f"`{name}` does not take the input `{key}`", place, hint)
    for key in schema.get("required", ()):
        if key not in inputs and key not in meant:
            place = step.reading.key(*step.path, "inputs")
            step.report("T101", f"`{name}` needs the input `{key}`", place, f"add `{key}`")


def _check_value(step: StepDraft, key: str, value: Any, builtin: BuiltinStep, types: TypesOfTexts) -> None:
    from tasker.expressions.mapping import texts_of
    from tasker.expressions.types import STRING, fits, type_of_schema

    schema = (builtin.inputs or {}).get("properties", {}).get(key)
    if schema is None:
        return
    text = next(texts_of(value), None)
    if text is None:
        for mismatch in check_result(schema, value):
            step.report("T102", f"`{key}`: {mismatch.message}", step.location("inputs", key))
        if callable_of(step) in (VALIDATE, LLM) and key == "schema" and isinstance(value, dict):
            for problem in schema_problems(value):
                place = step.reading.value(*step.path, "inputs", key, *problem.path)
                step.report("T028", f"not a valid JSON Schema: {problem.message}", place)
    elif key in builtin.literal:
        place = step.reading.value(*step.path, "inputs", key, *text[0])
        hint = "write the value itself; `$${` stands for a plain `${`"
        step.report("T103", f"`{key}` cannot have an expression", place, hint)
    else:
        given, expected = type_of_value(value, types, (key,)), type_of_schema(schema)
        if not fits(given, expected):
            advice = "write string(...) around it" if expected == STRING else None
            step.report("T102", f"`{key}` takes {expected}, got {given}", step.location("inputs", key), advice)


def _check_result_schema(step: StepDraft, inputs: Mapping[str, Any], types: TypesOfTexts) -> None:
    from tasker.expressions.types import fits, type_of_schema

    schema = step.values.get("result_schema")
    if not isinstance(schema, dict):
        return
    expected, place = type_of_schema(schema), step.location("result_schema")
    for key in sorted(expected.required - inputs.keys()):
        step.report("T105", f"the inputs lack `{key}`, which the result_schema requires", place)
    for key, wanted in expected.fields.items():
        if key in inputs and not fits(given := type_of_value(inputs[key], types, (key,)), wanted):
            step.report("T105", f"the input `{key}` is {given}, the result_schema says {wanted}", place)


def type_of_value(value: Any, types: TypesOfTexts, path: Path = ()) -> Type:
    """Return the type of a value of `inputs`."""
    from tasker.expressions.mapping import texts_of
    from tasker.expressions.types import ANY, STRING, list_of, object_of, type_of_literal, union

    if isinstance(value, dict):
        return object_of({key: type_of_value(item, types, (*path, key)) for key, item in value.items()})
    if isinstance(value, list):
        return list_of(union(*(type_of_value(item, types, (*path, number)) for number, item in enumerate(value))))
    if not isinstance(value, str) or not any(texts_of(value)):
        return type_of_literal(value)
    return types.get(path, STRING if value.count("${") > 1 or not value.startswith("${") else ANY)


def type_of_builtin_result(step: StepDraft, types: TypesOfTexts, scope: CheckScope) -> Type | None:
    """Return the type of a built-in step's result; None if its `result_schema` or nothing says more."""
    from tasker.expressions.types import ANY, Type, type_of_schema

    builtin = builtin_of(step)
    if builtin is None or "result_schema" in step.values or (step.type is not None and step.type.is_pattern):
        return None
    if callable_of(step) == TRANSFORM and isinstance(step.values.get("inputs"), dict):
        return type_of_value(step.values["inputs"], types)
    if callable_of(step) == COLLECT:
        parents = [name for name in step.values.get("dependencies", ()) if name in scope.steps]
        certain = frozenset(name for name in parents if name not in scope.uncertain)
        return Type("object", fields={name: scope.steps[name] for name in parents}, required=certain)
    if builtin.result is None:
        return ANY
    inputs = step.values.get("inputs")
    return type_of_schema(_result_schema(builtin, callable_of(step), inputs if isinstance(inputs, dict) else {}))


def _result_schema(builtin: BuiltinStep, name: str | None, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a result, with the one field that the inputs choose."""
    schema: Mapping[str, Any] = builtin.result or {}
    if name == LLM:
        answer, fields = ("json" if "schema" in inputs else "text"), ["text", "json"]
    elif builtin.chosen is not None:
        key, forms = builtin.chosen
        answer, fields = forms.get(inputs.get(key, next(iter(forms))), ""), list(forms.values())
    else:
        return schema
    own = {field: part for field, part in schema["properties"].items() if field not in fields or field == answer}
    if name == LLM and answer == "json":
        own["json"] = inputs["schema"]
    return {**schema, "properties": own, "required": [*schema["required"], *filter(None, [answer])]}
