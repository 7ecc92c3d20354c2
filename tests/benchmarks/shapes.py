"""The workflows that are measured. Handlers do next to nothing, so what is left is the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tasker.handlers.decorators import batch_analyzer, batch_worker, step_handler
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.template import compile_text
from tasker.template.plan import Plan

ROWS = 1000
CURSORS = 5
NOOP, READ = "bench.noop", "bench.read"
READS = "_reads"
"""The end of the names of shapes whose handlers read what they are given."""


@step_handler(NOOP)
async def noop(context) -> dict[str, int]:  # type: ignore[no-untyped-def]
    """The smallest asynchronous handler."""
    return {"value": 1}


@step_handler(READ)
async def read(context) -> dict[str, int]:  # type: ignore[no-untyped-def]
    """Reads the task's input and the result of every step above."""
    above = context.get_all_dependency_results("")
    return {"value": context.get_input("n") + sum(result.get("value", 0) for result in above)}


@batch_analyzer("bench.analyze", worker_template="work")
async def analyze(context):  # type: ignore[no-untyped-def]
    """A thousand rows in five cursors."""
    from tasker.handlers.decisions import BatchConfig

    return BatchConfig(total_items=ROWS, batch_size=ROWS // CURSORS)


@batch_worker("bench.work")
async def work(batch_context) -> dict[str, int]:  # type: ignore[no-untyped-def]
    """Adds up the rows of one cursor."""
    return {"value": sum(range(batch_context.start_cursor, batch_context.end_cursor))}


def adopt(registry: HandlerRegistry) -> None:
    """Register the handlers above."""
    for handler in (noop, read, analyze, work):
        registry.register(handler._handler_class.handler_name, handler._handler_class)


def dag(steps: Mapping[str, Sequence[str]], name: str, handler: str, effect: str = "") -> Plan:
    """A plan from step name to dependencies."""
    lines = [f"name: {name}", "namespace_name: bench", 'version: "1.0.0"', "steps:"]
    for step, parents in steps.items():
        keys = f"name: {step}, handler: {handler}, dependencies: [{', '.join(parents)}]"
        lines.append(f"  - {{{keys}, effect: {effect}}}" if effect else f"  - {{{keys}}}")
    return compiled("\n".join(lines))


def family() -> tuple[Plan, Plan]:
    """A step that starts a child task for each item of the input, and the template of these."""
    parent = """
name: parent
namespace_name: bench
version: "1.0.0"
identity_strategy: always_unique
steps:
  - {name: children, type: task, template: child, for_each: {in: input.list}}
"""
    return compiled(parent), dag({"only": ()}, "child", NOOP)


def compiled(text: str) -> Plan:
    """The one plan of a template's text."""
    result = compile_text(text)
    assert result.plans, result.diagnostics
    return result.plans[0]


def fan_out(width: int, name: str, handler: str) -> Plan:
    """One step, `width` steps below it, one step below all of those."""
    middle = [f"s{number:04}" for number in range(width)]
    return dag({"first": [], **{step: ["first"] for step in middle}, "last": middle}, name, handler)


def batch(name: str, handler: str) -> Plan:
    """A step that makes a worker for each cursor, and one that waits for all of these."""
    return compiled(
        f"""
name: {name}
namespace_name: bench
version: "1.0.0"
steps:
  - {{name: analyze, type: batchable, handler: bench.analyze}}
  - {{name: work, type: batch_worker, handler: bench.work, dependencies: [analyze]}}
  - {{name: total, type: deferred_convergence, handler: {handler}, dependencies: [work]}}
"""
    )


def conditions(count: int, name: str, handler: str) -> Plan:
    """Three steps in a row, the last `count` of them with a condition on the result of the step above."""
    lines = [f"name: {name}", "namespace_name: bench", 'version: "1.0.0"', "steps:"]
    for number in range(3):
        keys = [f"name: s{number}", f"handler: {handler}"]
        if number:
            keys.append(f"dependencies: [s{number - 1}]")
        if number >= 3 - count:
            keys.append(f"when: 'steps.s{number - 1}.value > 0'")
        lines.append(f"  - {{{', '.join(keys)}}}")
    return compiled("\n".join(lines))


LINEAR: Mapping[str, Sequence[str]] = {"a": [], "b": ["a"], "c": ["b"], "d": ["c"]}
DIAMOND: Mapping[str, Sequence[str]] = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
LEAVES: Mapping[str, Sequence[str]] = {"d": ["b"], "e": ["b"], "f": ["c"], "g": ["c"]}
FORMS: Mapping[str, Callable[[str, str], Plan]] = {
    "linear3": partial(conditions, 0),
    "condition3": partial(conditions, 1),
    "conditions3": partial(conditions, 2),
    "linear4": partial(dag, LINEAR),
    "linear4_pure": partial(dag, LINEAR, effect="pure"),
    "diamond4": partial(dag, DIAMOND),
    "complex7": partial(dag, {**DIAMOND, "e": ["b"], "f": ["c"], "g": ["d", "e", "f"]}),
    "tree8": partial(dag, {"a": [], "b": ["a"], "c": ["a"], **LEAVES, "h": list(LEAVES)}),
    "fan100": partial(fan_out, 100),
    "fan1000": partial(fan_out, 1000),
    "batch1000": batch,
}
SHAPES: Mapping[str, Callable[[], Plan]] = {
    f"{name}{ending}": partial(form, f"{name}{ending}", handler)
    for ending, handler in {"": NOOP, READS: READ}.items()
    for name, form in FORMS.items()
}
"""A plan for each name: with handlers that do nothing, and with handlers that read their inputs."""
