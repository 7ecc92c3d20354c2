"""Mistakes in `effect`: keys of a step that contradict it."""

from __future__ import annotations

from tests.unit.template.cases import Case
from tests.unit.template.support import steps


def of(keys: str) -> str:
    return steps(f"- {{name: b, handler: h, {keys}}}")


CALLS = "environments: {production: {steps: [{name: b, retry: {max_attempts: 3}}]}}\n"
REPEATS = (
    Case("T023", of("effect: «never»"), "`transactional`", of("effect: pure")),
    Case("T220", of("effect: once, «retry»: {max_attempts: 3}"), "runs once", of("effect: once")),
    Case(
        "T220",
        of("effect: once, lifecycle: {«max_retries»: 3}"),
        "runs once",
        steps("- {name: b, handler: h, effect: once}") + "defaults: {retry: {max_attempts: 3}}\n",
    ),
    Case(
        "T220",
        steps("- {name: b, handler: h, effect: once}") + CALLS.replace("retry", "«retry»"),
        "`production`",
        steps("- {name: b, handler: h, effect: once}") + CALLS.replace("name: b", "name: ALL"),
    ),
    Case("T221", of("effect: once, on_worker_lost: «retry»"), "run again", of("effect: once, on_worker_lost: fail")),
    Case(
        "T222",
        of("effect: transactional, execution: {mode: «process»}"),
        "thread",
        of("effect: transactional, execution: {mode: thread}"),
    ),
    Case(
        "T223",
        of("effect: pure, publishes_events: [{name: a.b, delivery_mode: «fast»}]"),
        "durable",
        of("effect: pure, publishes_events: [{name: a.b}]"),
    ),
    Case(
        "T223",
        steps("- {name: a, handler: h, effect: pure, «compensate»: {handler: u}}") + "on_failure: compensate\n",
        "nothing to undo",
        steps("- {name: a, handler: h, effect: once, compensate: {handler: u}}") + "on_failure: compensate\n",
    ),
    Case(
        "T224",
        steps("- {name: a, handler: h, effect: «transactional», for_each: '[1, 2]'}"),
        "several items",
        steps("- {name: a, handler: h, effect: once, for_each: '[1, 2]'}"),
    ),
    Case(
        "T224",
        steps(
            "- {name: a, handler: h, type: decision, effect: «transactional»}\n"
            "- {name: b, handler: h, dependencies: [a]}"
        ),
        "creates",
        steps(
            "- {name: a, handler: h, type: decision, effect: once}\n"
            "- {name: b, handler: h, dependencies: [a], effect: transactional}"
        ),
    ),
    Case("T200", of("effect: idempotent, memoize: «{ttl: 1h}»"), "pure", of("effect: pure, memoize: {ttl: 1h}")),
    Case(
        "T201",
        steps("- {name: a, handler: h, effect: pure, memoize: «{ttl: 1h}», for_each: '[1, 2]'}"),
        "each part",
        steps("- {name: a, handler: h, effect: pure, for_each: '[1, 2]'}"),
    ),
    Case(
        "T202",
        of("effect: pure, memoize: {ttl: 1h, key: «steps.c.id»}"),
        "not a step above",
        of("effect: pure, memoize: {ttl: 1h, key: input.id}"),
    ),
    Case(
        "T203",
        of("effect: pure, memoize: {ttl: «0s»}"),
        "stores nothing",
        of("effect: pure, memoize: {ttl: 1s}"),
    ),
)
