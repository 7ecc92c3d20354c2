"""Handlers of the built-in steps. They read the step's `inputs` and have no effects outside of the step."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any, ClassVar

from tasker.errors import PermanentError
from tasker.handlers.context import StepContext
from tasker.handlers.copies import CopyOnRead, deep_copy
from tasker.handlers.dependency_results import names_with_prefix
from tasker.handlers.results import StepHandlerResult
from tasker.handlers.step_handler import StepHandler
from tasker.template.builtin import BUILTIN, COLLECT, FAIL, HTTP, LOG, TRANSFORM, VALIDATE, BuiltinStep
from tasker.template.generated_steps import CONDITION, CUT, RESULTS
from tasker.template.schema_check import check_result

INVALID_INPUTS = "invalid_inputs"
INVALID_DATA = "invalid_data"
MOST_IN_MESSAGE = 5


def read_inputs(context: StepContext, name: str, step: BuiltinStep | None = None) -> Mapping[str, Any]:
    """Return the inputs of a built-in step, uncopied; `step`: that of a plugin.

    Raises `PermanentError` if the value of one does not fit.
    """
    read = context.read_singly("input_data")
    values = {key: read.original(key) for key in read} if isinstance(read, CopyOnRead) else read
    if mismatches := check_result((step or BUILTIN[name]).inputs or {}, values):
        message = f"{name}: {'; '.join(f'inputs{m.path[1:]}: {m.message}' for m in mismatches[:MOST_IN_MESSAGE])}"
        raise PermanentError(message, error_code=INVALID_INPUTS)
    return values


def seconds_left(context: StepContext, since: float | None = None) -> float | None:
    """Return how long an operation of a step may take so that it ends before the step is stopped; None: any time.

    `since` is when the attempt began, by the monotonic clock.
    """
    step, left = context._step, context.time_left
    timeout = None if step is None or step.timeout_seconds is None else step.timeout_seconds
    if timeout is not None and since is not None:
        timeout -= monotonic() - since
    limit = min((seconds for seconds in (timeout, left) if seconds is not None), default=None)
    return None if limit is None else max(0.001, limit - min(1.0, limit / 10))


class BuiltinHandler(StepHandler):
    """Handler of a built-in step that a plugin provides. Subclass it, set `handler_name` and `step`, and write `call`.

    `step` describes the inputs, which the compiler checks, and the result. A plugin returns its classes from the hook
    `tasker_handlers`.
    """

    step: ClassVar[BuiltinStep]

    def inputs(self, context: StepContext) -> Mapping[str, Any]:
        """Return the evaluated inputs; do not change them. Raises `PermanentError` if the value of one does not fit."""
        return read_inputs(context, self.handler_name, self.step)


class Transform(StepHandler):
    """Returns its inputs as the step's result."""

    handler_name = TRANSFORM

    async def call(self, context: StepContext) -> StepHandlerResult:
        """Return the evaluated inputs."""
        return self.success(dict(context.input_data))


class Validate(StepHandler):
    """Checks a value against a JSON Schema. It runs in a thread, since a large value takes a while."""

    handler_name = VALIDATE

    def call(self, context: StepContext) -> StepHandlerResult:
        """Return whether the value fits; with `on_invalid: fail`, which is the default, fail if it does not."""
        values = read_inputs(context, VALIDATE)
        mismatches = check_result(values["schema"], values["value"])
        if mismatches and values.get("on_invalid", "fail") == "fail":
            shown = "; ".join(map(str, mismatches[:MOST_IN_MESSAGE]))
            more = len(mismatches) - MOST_IN_MESSAGE
            message = f"the value does not fit the schema: {shown}{f'; and {more} more' if more > 0 else ''}"
            problems = [mismatch.to_dict() for mismatch in mismatches]
            return self.failure(message, INVALID_DATA, retryable=False, metadata={"problems": problems})
        return self.success({"valid": not mismatches, "problems": [mismatch.to_dict() for mismatch in mismatches]})


class Fail(StepHandler):
    """Fails the step."""

    handler_name = FAIL

    async def call(self, context: StepContext) -> StepHandlerResult:
        """Fail with the given message; permanently unless `retryable` is true."""
        values = read_inputs(context, FAIL)
        return self.failure(
            values["message"], "failed_by_template", values.get("retryable", False), error_code=values.get("code")
        )


class Log(StepHandler):
    """Writes a log line of the step."""

    handler_name = LOG

    async def call(self, context: StepContext) -> StepHandlerResult:
        """Log the message with its fields."""
        values = read_inputs(context, LOG)
        write = getattr(context.log, values.get("level", "info"))
        write(values["message"], **deep_copy(values.get("fields", {})))
        return self.success()


class Collect(StepHandler):
    """Returns the results of the step's dependencies."""

    handler_name = COLLECT

    async def call(self, context: StepContext) -> StepHandlerResult:
        """Return the results of the dependencies that exist, by name; of a batch_worker the list of all."""
        results, step = context.dependency_results, context._step
        collected: dict[str, Any] = {}
        parents = () if step is None else step.depends_on
        for name in parents:
            if name.endswith(CONDITION) and name.removesuffix(CONDITION) in parents:
                continue  # a generated step
            instances = [each for each in names_with_prefix(results, f"{name}_") if each[len(name) + 1 :].isdigit()]
            if name in results:
                collected[name] = results[name]
            elif instances and name + CUT in results:
                collected[name] = [item for instance in instances for item in results[instance][RESULTS]]
            elif instances:
                collected[name] = [results[instance] for instance in instances]
        return self.success(collected)


HANDLERS: Mapping[str, type[StepHandler]] = {cls.handler_name: cls for cls in (Transform, Validate, Fail, Log, Collect)}


def handler_of(name: str) -> type[StepHandler] | None:
    """Return the handler of a built-in step; None for any other name."""
    if name == HTTP:
        from tasker.handlers.http.step import HttpRequest  # needed for steps with requests only

        return HttpRequest
    return HANDLERS.get(name)
