"""Short templates for tests, and marks that say where a diagnostic must point."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tasker.template.compile import CompileResult, compile_text
from tasker.template.diagnostics import Diagnostic
from tasker.template.plan import Plan

DATA = Path(__file__).parents[2] / "data" / "templates"
HEAD = "name: flow\nnamespace_name: tests\nversion: 1.0.0\n"


def compiled(text: str, environment: str | None = None) -> CompileResult:
    return compile_text(textwrap.dedent(text), environment=environment)


def steps(text: str, head: str = HEAD) -> str:
    """A template with the given list of steps."""
    return head + "steps:\n" + textwrap.indent(textwrap.dedent(text).strip("\n"), "  ") + "\n"


def step(text: str) -> str:
    """A template with one step `a` and further keys for it."""
    return (
        HEAD
        + "steps:\n  - name: a\n    handler: h\n"
        + textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")
        + "\n"
    )


def top(text: str) -> str:
    """A template with one step and further keys at the top."""
    return HEAD + textwrap.dedent(text).strip("\n") + "\nsteps: [{name: a, handler: h}]\n"


def plan_of(text: str, environment: str | None = None) -> Plan:
    result = compiled(text, environment)
    assert result.ok, [d.message for d in result.errors]
    (plan,) = result.plans
    return plan


def marked(text: str) -> tuple[str, tuple[int, int, int]]:
    """The text without its one mark «...», and the line, column and length of what the mark holds."""
    before, _, rest = text.partition("«")
    inside, _, after = rest.partition("»")
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return before + inside + after, (line, column, max(1, len(inside)))


def place(diagnostic: Diagnostic) -> tuple[int, int, int]:
    return (diagnostic.line, diagnostic.column, diagnostic.length)


def codes(result: CompileResult) -> list[str]:
    return [d.code for d in result.diagnostics]
