"""Mistakes in keys of failure paths."""

from __future__ import annotations

from tests.unit.template.cases import Case
from tests.unit.template.support import HEAD, step, steps

REPORT = "- {name: a, handler: h}\n- {name: report, handler: h}"


def last(finally_: str, written: str = REPORT) -> str:
    """A template with steps of `finally`."""
    return steps(written, HEAD + f"finally: [{finally_}]\n")


FAILURES = (
    Case("T023", step("on_failure: «retry»"), "`skip_cascade`", step("on_failure: skip")),
    Case(
        "T150",
        steps("- {name: a, handler: h, optional: true, «on_failure»: continue}"),
        "keep one of them",
        step("optional: true"),
    ),
    Case(
        "T151",
        steps("- {name: a, handler: h, on_failure: {run: «undp»}}\n- {name: undo, handler: h}"),
        "did you mean `undo`?",
        steps("- {name: a, handler: h, on_failure: {run: undo}}\n- {name: undo, handler: h}"),
    ),
    Case(
        "T152",
        steps(
            "- {name: a, handler: h, on_failure: {run: undo}}\n- {name: b, handler: h, on_failure: {run: «undo»}}\n"
            "- {name: undo, handler: h}"
        ),
        "already runs when `a` fails",
        steps("- {name: a, handler: h, on_failure: {run: undo}}\n- {name: undo, handler: h}"),
    ),
    Case(
        "T153",
        steps("- {name: a, handler: h, for_each: input.x, on_failure: {run: «undo»}}\n- {name: undo, handler: h}"),
        "has many instances",
        steps("- {name: a, handler: h, for_each: input.x, on_failure: continue}"),
    ),
    Case(
        "T154",
        steps(
            "- {name: a, handler: h, on_failure: {run: undo}}\n- {name: b, handler: h}\n"
            "- {name: undo, handler: h, dependencies: [«b»]}"
        ),
        "runs when `a` fails",
        steps("- {name: a, handler: h, on_failure: {run: undo}}\n- {name: undo, handler: h, dependencies: [a]}"),
    ),
    Case(
        "T155",
        steps("- {name: a, handler: h, on_failure: {run: undo}}\n- {name: undo, handler: h, «when»: input.x}"),
        "exists only after a failure",
        steps("- {name: a, handler: h, when: input.x, on_failure: {run: undo}}\n- {name: undo, handler: h}"),
    ),
    Case(
        "T156",
        steps(
            "- {name: a, handler: h, on_failure: {run: undo}}\n- {name: b, handler: h}\n- {name: undo, handler: h}\n"
            "- {name: c, handler: h, dependencies: [«b», undo]}"
        ),
        "make it a `type: deferred_convergence`",
        steps(
            "- {name: a, handler: h, on_failure: {run: undo}}\n- {name: b, handler: h}\n- {name: undo, handler: h}\n"
            "- {name: c, handler: h, type: deferred_convergence, dependencies: [b, undo]}"
        ),
    ),
    Case("T210", last("«repot»"), "did you mean `report`?", last("report")),
    Case(
        "T211",
        last("report", "- {name: a, handler: h}\n- {name: report, handler: h, dependencies: [«a»]}"),
        "remove `a`",
        last("report"),
    ),
    Case(
        "T212",
        last("report", "- {name: a, handler: h}\n- {name: report, handler: h, «when»: input.x}"),
        "`context.outcome`",
        last("report", "- {name: a, handler: h, when: input.x}\n- {name: report, handler: h, optional: true}"),
    ),
    Case(
        "T213", last("a, report").replace("finally", "«finally»"), "name only the steps that run last", last("report")
    ),
    Case(
        "T214",
        step("on_failure: «compensate»"),
        "write `compensate: {handler: ...}`",
        step("on_failure: compensate\ncompensate: undo"),
    ),
    Case(
        "T215",
        step("for_each: input.x\n«compensate»: {handler: undo}"),
        "on the convergence below it",
        step("compensate: {handler: undo, retry: {max_attempts: 9}, timeout_seconds: 5}"),
    ),
    Case(
        "T216",
        steps("- {name: a, handler: h, compensate: {handler: u}}\n- {name: «a.undo», handler: h}"),
        "the compensation of `a`",
        steps("- {name: a, handler: h, compensate: {handler: u}}\n- {name: undo, handler: h}"),
    ),
)
