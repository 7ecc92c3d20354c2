"""The workflows that are measured. Handlers do next to nothing, so what is left is the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tasker.contracts.plan import Plan
from tasker.handler import HandlerRegistry
from tasker.step_handler.functional import batch_analyzer, batch_worker, step_handler
from tasker.template import compile_text

ROWS = 1000
CURSORS = 5


@step_handler("bench.noop")
async def noop(context) -> dict[str, int]:  # type: ignore[no-untyped-def]
    """The smallest asynchronous handler."""
    return {"value": 1}


@batch_analyzer("bench.analyze", worker_template="work")
async def analyze(context):  # type: ignore[no-untyped-def]
    """A thousand rows in five cursors."""
    from tasker.step_handler.functional import BatchConfig

    return BatchConfig(total_items=ROWS, batch_size=ROWS // CURSORS)


@batch_worker("bench.work")
async def work(batch_context) -> dict[str, int]:  # type: ignore[no-untyped-def]
    """Adds up the rows of one cursor."""
    return {"sum": sum(range(batch_context.start_cursor, batch_context.end_cursor))}


def adopt(registry: HandlerRegistry) -> None:
    """Register the handlers above."""
    for handler in (noop, analyze, work):
        registry.register(handler._handler_class.handler_name, handler._handler_class)


def dag(name: str, steps: Mapping[str, Sequence[str]]) -> Plan:
    """A plan of no-op steps from step name to dependencies."""
    lines = [f"name: {name}", "namespace_name: bench", 'version: "1.0.0"', "steps:"]
    for step, parents in steps.items():
        lines.append(f"  - {{name: {step}, handler: bench.noop, dependencies: [{', '.join(parents)}]}}")
    return compiled("\n".join(lines))


def compiled(text: str) -> Plan:
    """The one plan of a template's text."""
    result = compile_text(text)
    assert result.plans, result.diagnostics
    return result.plans[0]


def fan_out(width: int) -> Plan:
    """One step, `width` steps below it, one step below all of those."""
    middle = [f"s{number:04}" for number in range(width)]
    return dag(f"fan_{width}", {"first": [], **{name: ["first"] for name in middle}, "last": middle})


SHAPES: Mapping[str, Callable[[], Plan]] = {
    "linear4": partial(dag, "linear4", {"a": [], "b": ["a"], "c": ["b"], "d": ["c"]}),
    "diamond4": partial(dag, "diamond4", {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}),
    "complex7": partial(
        dag,
        "complex7",
        {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["b"], "f": ["c"], "g": ["d", "e", "f"]},
    ),
    "tree8": partial(
        dag,
        "tree8",
        {"a": [], "b": ["a"], "c": ["a"], "d": ["b"], "e": ["b"], "f": ["c"], "g": ["c"], "h": ["d", "e", "f", "g"]},
    ),
    "fan100": partial(fan_out, 100),
    "fan1000": partial(fan_out, 1000),
    "batch1000": partial(
        compiled,
        """
name: batch1000
namespace_name: bench
version: "1.0.0"
steps:
  - {name: analyze, type: batchable, handler: bench.analyze}
  - {name: work, type: batch_worker, handler: bench.work, dependencies: [analyze]}
  - {name: total, type: deferred_convergence, handler: bench.noop, dependencies: [work]}
""",
    ),
}
