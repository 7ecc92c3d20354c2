"""Handlers that are not what their qualified names say."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tasker.step_handler import StepHandler, inputs, step_handler
from tasker.types import StepContext, StepHandlerResult

BOTH: list[Any] = []


def audited(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    @functools.wraps(function)
    def wrapper(**arguments: Any) -> dict[str, Any]:
        return {**function(**arguments), "audited": True}

    return wrapper


def charge(amount: Any) -> dict[str, Any]:
    return {"charged": amount}


audited_charge = step_handler("charge")(inputs("amount")(audited(charge)))


def counted(start: int) -> Callable[..., dict[str, int]]:
    @step_handler("counted")
    def count() -> dict[str, int]:
        return {"next": start + 1}

    return count


count_from_five = counted(5)


@step_handler("first")
def handle() -> dict[str, str]:
    return {"which": "first"}


BOTH.append(handle)


@step_handler("second")
def handle() -> dict[str, str]:  # type: ignore[no-redef]
    return {"which": "second"}


BOTH.append(handle)


def plain(context: StepContext) -> dict[str, bool]:
    return {"plain": True}


class Outer:
    class Inner(StepHandler):
        def call(self, context: StepContext) -> StepHandlerResult:
            return self.success({"inner": True})
