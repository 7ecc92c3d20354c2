"""A plugin that keeps failing is paused and tried again; an outage of the database never pauses one."""

from __future__ import annotations

import asyncio
import logging
import threading
from itertools import pairwise

import pytest

from tasker.clock import BackoffPolicy
from tasker.errors import BackendUnavailable, DatabaseBreakerOpen, DatabaseUnavailable, PoolExhausted, StatementTimeout
from tasker.plugins import host as background
from tasker.plugins.host import BackgroundJobs, PluginHost
from tasker.plugins.threads import PluginQueueLimits, PluginThread
from tests.support.waiting import until

HOOK = "tasker_sweep_repaired"
ASKED = "tasker_metrics"
LIMITS = PluginQueueLimits(failures=2, pauses=BackoffPolicy(60.0, 240.0))


class SetClock:
    """Monotonic clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        """Return the set time."""
        return self.now


class Recovering:
    """Function of a plugin that fails until the test lets it succeed."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error: BaseException | None = error or ValueError("no")
        self.heard: list[int] = []

    def __call__(self, value: int = 0) -> str:
        """Raise the error, or record the value."""
        if self.error:
            raise self.error
        self.heard.append(value)
        return "answer"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="tasker.plugins")
    return caplog


async def tell(plugins: PluginHost, *values: int) -> None:
    for value in values:
        plugins.notify(HOOK, value)
        await plugins.settle()


def off(plugins: PluginHost) -> str:
    (state,) = plugins.states()
    return state.off


def chain(*errors: BaseException) -> BaseException:
    """Return the first error, raised because of the others."""
    for error, cause in pairwise(errors):
        error.__cause__ = cause
    return errors[0]


async def test_paused_plugin_is_tried_again_after_growing_pauses(
    clock: SetClock, log: pytest.LogCaptureFixture
) -> None:
    function = Recovering()
    plugins = PluginHost({"one": {HOOK: function}}, LIMITS, clock.monotonic)
    await tell(plugins, 1, 2)
    assert off(plugins) == f"{HOOK} has failed 2 times in a row"
    for pause in (60, 120, 240, 240):
        clock.now += pause - 1
        await tell(plugins, 3)
        assert off(plugins)
        clock.now += 1
        assert not off(plugins)
        await tell(plugins, 4)
        assert off(plugins), "one more failure is enough after a pause"

    function.error = None
    clock.now += 240
    await tell(plugins, 5, 6)
    assert (off(plugins), function.heard) == ("", [5, 6])
    _, first, again, *_, last = log.messages
    paused = f"plugin_disabled plugin=one reason={HOOK} has failed 2 times in a row; it is tried again in 60 s"
    assert (first, again) == (paused, "plugin_switched_on plugin=one; its pause is over")
    assert last == "plugin_switched_on plugin=one; its pause is over"

    function.error = ValueError("again")
    await tell(plugins, 7, 8)
    clock.now += 60
    assert not off(plugins), "a success ends the growth"


async def test_plugin_whose_call_returns_late_is_told_again_after_its_pause(clock: SetClock) -> None:
    stuck, heard = threading.Event(), list[int]()

    def hear(value: int) -> None:
        stuck.wait()
        heard.append(value)

    thread = PluginThread("one", {HOOK: hear}, LIMITS, clock.monotonic)
    thread.enqueue(HOOK, 1)
    until(lambda: thread.waiting == 0, "the call is under way")
    clock.now += 31
    thread.enqueue(HOOK, 2)
    assert thread.account.off == "a call has not returned for 30 seconds"
    clock.now += 60
    thread.enqueue(HOOK, 3)
    assert thread.account.off, "it has still not returned"
    stuck.set()
    await asyncio.wrap_future(thread.settled())
    clock.now += 120
    thread.enqueue(HOOK, 4)
    await asyncio.wrap_future(thread.settled())
    assert (thread.account.off, heard) == ("", [1, 4])


def test_plugin_that_is_asked_answers_again_after_its_pause(clock: SetClock) -> None:
    function = Recovering()
    plugins = PluginHost({"one": {ASKED: function}}, LIMITS, clock.monotonic)
    for _ in range(3):
        assert plugins.answers(ASKED) == []
    function.error = None
    assert plugins.answers(ASKED) == []
    clock.now += 60
    assert plugins.answers(ASKED) == [("one", "answer")]


@pytest.mark.parametrize(
    "error",
    [
        DatabaseUnavailable("away"),
        DatabaseBreakerOpen("away"),
        PoolExhausted("full"),
        StatementTimeout("slow"),
        BackendUnavailable("no broker"),
        ExceptionGroup("parts", [ExceptionGroup("parts", [DatabaseUnavailable("away")])]),
        chain(RuntimeError("could not send"), DatabaseUnavailable("away")),
    ],
    ids=repr,
)
async def test_failures_because_of_the_database_pause_no_plugin(
    clock: SetClock, log: pytest.LogCaptureFixture, error: BaseException
) -> None:
    function = Recovering(error)
    plugins = PluginHost({"one": {HOOK: function, ASKED: function}}, LIMITS, clock.monotonic)
    await tell(plugins, *range(20))
    for _ in range(20):
        assert plugins.answers(ASKED) == []
    assert off(plugins) == ""
    assert [each.split()[0] for each in log.messages] == ["plugin_lacks_database"] * 2, "one line for each hook"

    function.error = None
    await tell(plugins, 1)
    function.error = error
    await tell(plugins, 2)
    assert [each.split()[0] for each in log.messages] == ["plugin_lacks_database"] * 3, "a second outage"


async def test_group_with_a_failure_of_its_own_counts_against_a_plugin(clock: SetClock) -> None:
    group = ExceptionGroup("parts", [DatabaseUnavailable("away"), ValueError("a defect")])
    plugins = PluginHost({"one": {HOOK: Recovering(group)}}, LIMITS, clock.monotonic)
    await tell(plugins, 1, 2)
    assert off(plugins)


async def test_background_part_outlives_outages_and_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "AGAIN", BackoffPolicy(0.001, 0.001))
    errors: list[BaseException] = [DatabaseUnavailable("away")] * 25 + [ValueError("a defect")] * 25
    done = threading.Event()

    async def run() -> None:
        if errors:
            raise errors.pop(0)
        done.set()
        await asyncio.Event().wait()

    plugins = PluginHost(
        {"one": {background.HOOK: lambda url: run}}, PluginQueueLimits(failures=10, pauses=BackoffPolicy(0.001, 0.001))
    )
    parts = BackgroundJobs(plugins)
    parts.start("")
    until(done.is_set, "it works again")
    assert plugins.states()[0].failures == {background.HOOK: 25}
    await parts.stop()
