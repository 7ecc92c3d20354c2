"""Templates of many steps: compiling and registering them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from tasker.db.connection import Connection
from tasker.engine.plans import PlanStore
from tasker.template import compile_text
from tests.benchmarks.growth.case import Case, Prepare
from tests.support.engine_fixture import Lab

HEAD = 'name: large\nnamespace_name: growth\nversion: "1.0.0"\nsteps:\n'


def chain(length: int) -> str:
    """Each step below the one before it."""
    parents = ["", *(f"s{number}" for number in range(length))]
    return HEAD + "".join(_line(f"s{number}", parents[number]) for number in range(length))


def fan(width: int) -> str:
    """One step, many below it, one below all of those."""
    names = [f"s{number}" for number in range(width - 2)]
    return HEAD + _line("first", "") + "".join(_line(name, "first") for name in names) + _line("last", ", ".join(names))


def _line(name: str, parents: str) -> str:
    return f"  - {{name: {name}, handler: growth.step, dependencies: [{parents}]}}\n"


def expressions(length: int, *, some: bool = True) -> str:
    """Steps in two rows, each with two expressions in its `inputs`, or with two texts that are none."""
    schema = "{type: object, required: [n], properties: {n: {type: number}}}"
    lines = [HEAD.replace("steps:\n", f"input_schema: {schema}\nsteps:\n")]
    for number in range(length):
        above = f"s{number - length // 2}" if number >= length // 2 else ""
        value = f"steps.{above}.n" if above else "input.n"
        texts = f"{{double: '${{{value} * 2.0}}', text: 'the number ${{string({value})}}'}}"
        texts = texts if some else texts.replace("$", "")
        keys = f"handler: growth.step, dependencies: [{above}], result_schema: {schema}, inputs: {texts}"
        lines.append(f"  - {{name: s{number}, {keys}}}\n")
    return "".join(lines)


def compiling(shape: Callable[[int], str]) -> Prepare:
    """What `template validate` does with a text."""

    def prepare(lab: Lab, size: int) -> Callable[[], Any]:
        text = shape(size)

        def compile_it() -> None:
            result = compile_text(text)
            assert len(result.plans[0].steps) == size, result.diagnostics[:3]

        return compile_it

    return prepare


def registering(shape: Callable[[int], str]) -> Prepare:
    """From the text to the rows."""

    def prepare(lab: Lab, size: int) -> Callable[[], Any]:
        text = shape(size)

        def register() -> None:
            asyncio.run(_register(lab.url, text))
            steps = lab.one.value("select jsonb_array_length(t.plan->'steps') from tasker.templates t")
            assert steps == size, steps

        return register

    return prepare


async def _register(url: str, text: str) -> None:
    (plan,) = compile_text(text).plans
    connection = Connection(url)
    try:
        await PlanStore(connection).register(plan)
    finally:
        await connection.close()


CASES = (
    Case("template_chain", "steps", 20_000, 5.0, registering(chain)),
    Case("template_texts", "steps", 2_000, 3.0, compiling(partial(expressions, some=False))),
    Case("template_expressions", "steps", 2_000, 4.0, compiling(expressions)),
    Case("template_fan", "steps", 20_000, 5.0, registering(fan)),
)
