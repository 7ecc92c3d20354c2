"""A diamond: the two branches are asynchronous and share one handler, the ends are plain functions."""

from __future__ import annotations

from tasker.step_handler import depends_on, inputs, step_handler

Result = dict[str, int]


@step_handler("diamond.start")
@inputs("number")
def start(number: int) -> Result:
    return {"value": number**2}


@step_handler("diamond.square")
@depends_on(previous="step_1")
async def square(previous: Result) -> Result:
    return {"value": previous["value"] ** 2}


@step_handler("diamond.join")
@depends_on(left="step_2", right="step_3")
def join(left: Result, right: Result) -> Result:
    return {"value": left["value"] * right["value"]}
