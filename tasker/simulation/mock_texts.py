"""Mocks as files and command lines write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tasker.errors import UsageError
from tasker.simulation.mocks import (
    Mock,
    again_in,
    batched,
    decided,
    event,
    fails,
    lost,
    milliseconds,
    no_decision,
    no_event,
    of_items,
    result,
    route,
)
from tasker.template.diagnostics import did_you_mean

_KINDS = (
    "result",
    "items",
    "fails",
    "route",
    "batches",
    "again_in",
    "lost",
    "event",
    "no_event",
    "approved",
    "no_decision",
)
_OF_VOTES = ("by", "form", "comment", "after")
_FAILURE_KEYS = ("times", "retryable", "message", "code", "retry_after", "raises")
_FAILURE_VALUES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "times": (lambda value: type(value) is int and value > 0, "a whole number above 0"),
    "retryable": (lambda value: isinstance(value, bool), "true or false"),
    "message": (lambda value: isinstance(value, str), "a text"),
    "by": (lambda value: isinstance(value, str), "a name"),
    "comment": (lambda value: isinstance(value, str), "a text"),
    "form": (lambda value: isinstance(value, Mapping), "the values of the form"),
    "code": (lambda value: isinstance(value, str), "a text"),
    "raises": (lambda value: isinstance(value, str), "a text"),
}
_TIMES = ("takes", "after", "retry_after", "again_in")
_EXPECTED_OF = {
    "items": "a list of mocks with `result` or `fails`, one for each item",
    "fails": "a type of failure",
    "route": "a list of steps",
    "batches": "a number of batches from 0 to 100,000",
    "no_event": "true",
    "approved": "true or false",
    "no_decision": "true",
    "lost": "a whole number above 0",
}
_WORDS = ("fail", "route", "batches", "approved", "rejected", "no_decision")
_SETTINGS = (
    "STEP={...} is a result in JSON; others are STEP=fail:TYPE[:TIMES], route:STEP[,STEP], batches:N, approved:NAME, "
    "rejected:NAME and no_decision; those of events are written in a file, --mocks FILE"
)
EXPECTED = "expected one of " + ", ".join(f"{{{kind}: ...}}" for kind in _KINDS) + ", or a list of them"


def read_mock(value: Any, where: str) -> Mock:
    """Return the mock that a file describes: one call, or a list of calls of which the last one stands for all further.

    Raises `UsageError`; `where` names the place of the value.
    """
    if isinstance(value, list) and value:
        first, *rest = [read_mock(each, f"{where}[{number}]") for number, each in enumerate(value)]
        for each in rest:
            first = first.then(each)
        return first
    if not isinstance(value, Mapping) or len(kinds := [key for key in value if key in _KINDS]) != 1:
        near = (did_you_mean(str(key), _KINDS) for key in value) if isinstance(value, Mapping) else ()
        raise UsageError(f"{where}: {EXPECTED}; found {_shown(value)}", hint=next(filter(None, near), None))
    kind = kinds[0]
    times = {"event": ("after",), "approved": _OF_VOTES}.get(kind, ("takes",))
    known = (kind, *times, *(_FAILURE_KEYS if kind == "fails" else ()))
    for key in value:
        if key not in known:
            hint = did_you_mean(str(key), known) or f"its keys: {', '.join(known)}"
            raise UsageError(f"{where}: a mock with `{kind}` has no key {key!r}", hint=hint)
        if key in _FAILURE_VALUES:
            fits, expected = _FAILURE_VALUES[key]
            if not fits(value[key]):
                raise UsageError(f"{where}.{key}: expected {expected}, found {_shown(value[key])}")
        if key in _TIMES:
            _check_time(value[key], f"{where}.{key}")
    return _made(kind, value, where)


def _check_time(value: Any, where: str) -> None:
    try:
        milliseconds(value)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}") from None


def _shown(value: Any) -> str:
    return f"{json.dumps(value, default=str):.100}"


def _made(kind: str, value: Mapping[str, Any], where: str) -> Mock:
    given, takes = value[kind], value.get("takes", 0)
    match kind:
        case "result":
            return result(given, takes=takes)
        case "items" if isinstance(given, list) and given:
            return of_items(*(_item(each, f"{where}.items[{n}]") for n, each in enumerate(given)), takes=takes)
        case "fails" if isinstance(given, str):
            options = {key: value[key] for key in _FAILURE_KEYS if key in value}
            return fails(given, takes=takes, **{"times": 1, **options})
        case "route" if isinstance(given, list) and all(isinstance(name, str) for name in given):
            return route(*given, takes=takes)
        case "batches" if type(given) is int and 0 <= given <= 100_000:
            return batched(given, takes=takes)
        case "again_in":
            return again_in(given, takes=takes)
        case "event":
            return event(given, after=value.get("after", 0))
        case "no_event" if given is True:
            return no_event()
        case "approved" if isinstance(given, bool):
            return decided(given, **{key: value[key] for key in _OF_VOTES if key in value})
        case "no_decision" if given is True:
            return no_decision()
        case "lost" if type(given) is int and given > 0:
            return lost(given, takes=takes)
    raise UsageError(f"{where}.{kind}: expected {_EXPECTED_OF[kind]}, found {_shown(given)}")


def _item(value: Any, where: str) -> Mock:
    if not isinstance(value, Mapping) or not {"result", "fails"} & value.keys():
        raise UsageError(f"{where}: expected {{result: ...}} or {{fails: ...}}, found {_shown(value)}")
    return read_mock(value, where)


def read_setting(text: str) -> tuple[str, Mock]:
    """Return the step and the mock of a command line's STEP=MOCK. Raises `UsageError`."""
    step, given, value = text.partition("=")
    if not step or not given:
        raise UsageError(f"--mock {text}: expected STEP=MOCK", hint=_SETTINGS)
    where = f"--mock {step}"
    kind, _, rest = value.partition(":")
    if kind == "fail":
        error_type, _, times = rest.partition(":")
        if times and not (times.isdecimal() and int(times) > 0):
            raise UsageError(f"{where}: expected a number of failures after the last colon, found {times!r}")
        failing = fails(error_type or "mocked_failure", times=int(times) if times else 1_000_000)
        return step, failing.then(result()) if times else failing
    if kind == "route":
        return step, route(*(name for name in rest.split(",") if name))
    if kind in ("approved", "rejected"):
        return step, decided(kind == "approved", by=rest or "somebody")
    if value == "no_decision":
        return step, no_decision()
    if kind == "batches":
        return step, _made("batches", {"batches": int(rest) if rest.isdecimal() else rest}, where)
    try:
        return step, result(json.loads(value))
    except json.JSONDecodeError as error:
        near = did_you_mean(kind, _WORDS)
        raise UsageError(
            f"{where}: {value!r:.80} is neither a mock nor the JSON of a result: {error.msg}",
            hint=f"{near}; {_SETTINGS}" if near else _SETTINGS,
        ) from None
