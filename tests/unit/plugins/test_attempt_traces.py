"""A plugin says which place in a trace a handler carries on; what it does wrong leaves the place of the submission."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tasker.logging.trace_context import TraceContext
from tasker.plugins.contributions import HOOK, trace_of
from tasker.plugins.found import PluginChoice
from tasker.plugins.host import PluginHost, plugins_of
from tasker_otel.identity import attempt_span
from tasker_otel.table import OtelTable

TASK = "01a20288-32b1-7d04-bf4e-698b01000000"
STEP = "01a20288-32b1-7d04-bf4e-698b01000002"
SUBMITTED = TraceContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1")


def asked(answer: Any) -> Any:
    """What comes of this answer of a plugin's hook."""
    return trace_of(PluginHost({"tracer": {HOOK: lambda: answer}}))


def test_where_no_plugin_has_the_hook_nothing_is_called() -> None:
    assert trace_of(PluginHost()) is None
    assert asked(None) is None


def test_the_plugin_otel_makes_a_handler_carry_on_the_span_of_its_attempt() -> None:
    span = attempt_span(STEP, 7).hex()
    for share, flags in ((1.0, "01"), (0.0, "00")):
        trace = trace_of(plugins_of(PluginChoice(enabled=("otel",), settings={"otel": OtelTable(share=share)})))
        assert trace
        own = TraceContext(f"00-{TASK.replace('-', '')}-{span}-{flags}")
        assert trace(TASK, STEP, 7, None) == own
        assert trace(TASK, STEP, 7, SUBMITTED) == (f"00-{SUBMITTED.trace_id}-{span}-01", "vendor=1")


def test_a_function_that_raises_or_says_what_is_no_place_changes_nothing_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    for wrong in (lambda *given: "nonsense", lambda *given: 1 / 0, lambda: "no arguments"):
        caplog.clear()
        trace = asked(wrong)
        assert [trace(TASK, STEP, 7, SUBMITTED) for _ in range(20)] == [SUBMITTED] * 20
        told = [record.getMessage().split()[0] for record in caplog.records]
        assert told == ["plugin_failed", "plugin_disabled"]
    assert asked(lambda *given: None)(TASK, STEP, 7, SUBMITTED) == SUBMITTED


def test_what_is_no_function_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert asked("00-") is None
    assert "must answer a function" in caplog.text
