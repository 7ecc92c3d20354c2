"""Plugins: found by entry points, told what they listen to, and kept from harming anything."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from click.testing import CliRunner

from tasker.app.app import App
from tasker.app.worker_assembly import worker_process
from tasker.cli.main import cli
from tasker.execution.slots import Slots
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging import MessagingService, load_backend
from tasker.metrics import Counter
from tasker.plugins import hooks as hookspecs
from tasker.plugins.contributions import metrics_of
from tasker.plugins.found import PluginChoice
from tasker.plugins.hook_arguments import BreakerChanged, ClaimsThrottled, TaskFinished
from tasker.plugins.host import PluginHost, plugins_of
from tasker.plugins.threads import PluginQueueLimits, PluginThread
from tasker.resilience.breakers import Breakers
from tasker.template.plan import BreakerPolicy
from tests.support.strangers import install_plugin
from tests.support.waiting import until

TASK = TaskFinished("task", "complete")
HEAD = "from tasker.plugins.hooks import hookimpl\nheard = []\n"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "tasker.plugins")
    return caplog


def test_without_plugins_nobody_listens_and_nothing_is_imported() -> None:
    assert PluginHost().listener("tasker_attempt_started") is None
    code = "import sys; from tasker.plugins.host import *; plugins_of(PluginChoice()); "
    code += "import tasker.app.worker_assembly; "
    code += "print([name for name in ('pluggy', 'tasker.plugins.hooks') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("value", ["counter_plugin", "counter_plugin:Counter", "counter_plugin:counter"])
async def test_a_plugin_is_a_module_a_class_or_an_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    source = (
        f"{HEAD}class Counter:\n    @hookimpl\n    def tasker_task_finished(self, task): heard.append(task)\n"
        "counter = Counter()\n@hookimpl\ndef tasker_task_finished(task): heard.append(task)\n"
    )
    install_plugin(tmp_path, monkeypatch, "counter", source)
    (tmp_path / "counter_dist" / "counter_dist-1.0.dist-info" / "entry_points.txt").write_text(
        f"[tasker.plugins]\ncounter = {value}\n"
    )
    plugins = plugins_of(PluginChoice())
    plugins.notify("tasker_task_finished", TASK)
    await plugins.settle()
    assert sys.modules["counter_plugin"].heard == [TASK]
    assert plugins_of(PluginChoice()).listener("tasker_sweep_repaired") is None


async def test_a_plugin_hears_nothing_of_the_hooks_that_its_settings_leave_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    hears = "@hookimpl\ndef tasker_task_finished(task): heard.append(task)\n"
    hears += "@hookimpl\ndef tasker_attempt_started(attempt): heard.append(attempt)\n"
    answers = {"some": "['tasker_attempt_started']", "all": "None", "wrong": "['tasker_sweep_repaired']", "odd": "True"}
    for name, left_out in answers.items():
        source = f"{HEAD}{hears}@hookimpl\ndef tasker_configured(settings): return {left_out}\n"
        install_plugin(tmp_path, monkeypatch, name, source)
    plugins = plugins_of(PluginChoice())
    assert plugins.having("tasker_attempt_started") == ("all",)
    assert plugins.having("tasker_task_finished") == ("all", "some")
    plugins.notify("tasker_task_finished", TASK)
    await plugins.settle()
    assert sys.modules["some_plugin"].heard == [TASK]
    reasons = {" ".join(record.getMessage().split("reason=")[1:]) for record in log.records}
    assert reasons == {
        "tasker_configured() leaves out 'tasker_sweep_repaired', which is no hook of the plugin",
        "tasker_configured() gives True, and must give the names of hooks to leave out, or None",
    }


@pytest.mark.parametrize("error", ["ValueError('no')", "SystemExit(3)", "asyncio.CancelledError()"])
async def test_what_a_plugin_raises_is_logged_once_and_counted_and_the_others_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture, error: str
) -> None:
    bad = f"import asyncio\n{HEAD}@hookimpl\ndef tasker_task_finished(): raise {error}\n"
    good = f"{HEAD}@hookimpl\ndef tasker_task_finished(task): heard.append(task.state)\n"
    for name, source in (("bad", bad), ("good", good)):
        install_plugin(tmp_path, monkeypatch, name, source)
    plugins = plugins_of(PluginChoice())
    for _ in range(3):
        plugins.notify("tasker_task_finished", TASK)
    await plugins.settle()
    plugins.log_failures()
    assert sys.modules["good_plugin"].heard == ["complete"] * 3
    assert {each.name: each.failures for each in plugins.states()} == {
        "bad": {"tasker_task_finished": 3},
        "good": {},
    }
    failed, told = [record.getMessage() for record in log.records]
    assert failed.startswith("plugin_failed plugin=bad hook=tasker_task_finished error=")
    assert told == "plugin_failures plugin=bad hook=tasker_task_finished count=3"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("@hookimpl\ndef tasker_task_finnished(task): pass", "tasker_task_finnished"),
        ("@hookimpl\ndef tasker_task_finished(tsk): pass", "tsk"),
        ("@hookimpl\nasync def tasker_task_finished(task): pass", "neither coroutines nor generators"),
        ("import a_module_that_is_not_here", "a_module_that_is_not_here"),
        ("raise SystemExit('not today')", "not today"),
    ],
)
def test_a_plugin_that_cannot_work_is_named_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture, source: str, reason: str
) -> None:
    install_plugin(tmp_path, monkeypatch, "wrong", HEAD + source)
    good = f"{HEAD}@hookimpl\ndef tasker_sweep_repaired(): pass\n"
    install_plugin(tmp_path, monkeypatch, "zealous", good)
    assert plugins_of(PluginChoice()).listener("tasker_task_finished") is None
    assert plugins_of(PluginChoice()).listener("tasker_sweep_repaired") is not None
    (line,) = [record.getMessage() for record in log.records]
    assert line.startswith("plugin_refused plugin=wrong (wrong_plugin) reason=")
    assert reason in line


def test_what_plugins_are_told_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        TASK.state = "error"  # type: ignore[misc]


async def test_holds_of_claims_are_told_with_their_end() -> None:
    heard: list[ClaimsThrottled] = []
    slots = Slots(4, heard.append)
    slots.throttle("breaker")
    slots.throttle("breaker", at_most=1)
    slots.unthrottle("breaker")
    slots.unthrottle("breaker")
    assert heard == [ClaimsThrottled("breaker", 0), ClaimsThrottled("breaker", 1), ClaimsThrottled("breaker", None)]


class HandClock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_changes_of_every_breaker_are_told() -> None:
    heard: list[BreakerChanged] = []
    breakers = Breakers(HandClock(), on_change=heard.append)  # type: ignore[arg-type]
    breakers.messaging.force_open()
    breakers.of_handler("pay", BreakerPolicy()).force_open()
    breakers.messaging.force_closed()
    assert [(each.name, each.before, each.after) for each in heard] == [
        ("messaging", "closed", "open"),
        ("pay", "closed", "open"),
        ("messaging", "open", "closed"),
    ]


async def test_breakers_of_a_program_that_runs_no_steps_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = "@hookimpl\ndef tasker_breaker_changed(breaker): heard.append((breaker.name, breaker.after))\n"
    install_plugin(tmp_path, monkeypatch, "alarm", HEAD + hook)
    app = App(work=False)
    app.breakers.database.force_open()
    await plugins_of(PluginChoice()).settle()
    assert sys.modules["alarm_plugin"].heard == [("database", "open")]


def test_a_command_of_a_plugin_is_one_of_tasker_and_takes_no_name_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"""{HEAD}
import click
@click.command()
def greet():
    "Say hello."
    click.echo("hello")
@click.command("run")
def mine(): click.echo("stolen")
@hookimpl
def tasker_commands(): return [greet, mine, 7]
"""
    install_plugin(tmp_path, monkeypatch, "greeter", source)
    assert CliRunner().invoke(cli, ["greet"]).output == (
        "Warning: the plugin greeter cannot add the command 'run'\n"
        "Warning: the plugin greeter cannot add the command 7\nhello\n"
    )
    assert "Commands of plugins:\n  greet  Say hello." in CliRunner().invoke(cli, ["--help"]).output
    assert "Run a workflow" in CliRunner().invoke(cli, ["run", "--help"]).output


async def test_a_plugin_hears_in_a_thread_of_its_own_in_order() -> None:
    heard: list[tuple[int, int]] = []
    plugins = PluginHost({"one": {"tasker_sweep_repaired": lambda value: heard.append((value, threading.get_ident()))}})
    for number in range(100):
        plugins.notify("tasker_sweep_repaired", number)
    await plugins.settle()
    assert [number for number, _ in heard] == list(range(100))
    (thread,) = {thread for _, thread in heard}
    assert thread != threading.get_ident()


async def test_a_plugin_that_does_not_return_keeps_nobody_waiting_and_what_does_not_fit_is_counted(
    log: pytest.LogCaptureFixture,
) -> None:
    stuck, heard = threading.Event(), list[int]()
    hooks = {
        "slow": {"tasker_sweep_repaired": lambda value: stuck.wait()},
        "good": {"tasker_sweep_repaired": heard.append},
    }
    plugins = PluginHost(hooks, PluginQueueLimits(waiting=3))
    plugins.notify("tasker_sweep_repaired", 0)
    until(lambda: plugins.states()[0].waiting == 0, "it was told")
    for number in range(1, 7):
        plugins.notify("tasker_sweep_repaired", number)
        until(lambda: plugins.states()[1].waiting == 0, "it was told")
    await plugins.settle(0.01)
    slow, good = plugins.states()
    assert (slow.waiting, slow.dropped, slow.off) == (4, 3, "")  # one of those that wait asks whether it is done
    assert (heard, good.dropped) == (list(range(7)), 0)
    stuck.set()
    await plugins.settle()
    assert plugins.states()[0].delivered == 4
    assert [line.partition(" hook")[0] for line in log.messages] == ["plugin_overflow plugin=slow"]


async def test_a_plugin_whose_call_takes_too_long_is_switched_off(log: pytest.LogCaptureFixture) -> None:
    stuck, clock = threading.Event(), HandClock()
    thread = PluginThread(
        "slow",
        {"tasker_sweep_repaired": lambda value: stuck.wait()},
        PluginQueueLimits(hang_seconds=30),
        clock.monotonic,
    )
    thread.enqueue("tasker_sweep_repaired", 1)
    until(lambda: thread.waiting == 0, "it was told")
    clock.now = 30
    thread.enqueue("tasker_sweep_repaired", 2)
    assert (thread.account.off, thread.waiting) == ("", 1)
    clock.now = 31
    thread.enqueue("tasker_sweep_repaired", 3)
    assert (thread.account.off, thread.waiting) == ("a call has not returned for 30 seconds", 1)
    stuck.set()
    await asyncio.wrap_future(thread.settled())
    assert thread.account.delivered == 1
    assert log.messages == [
        "plugin_disabled plugin=slow reason=a call has not returned for 30 seconds; it is tried again in 60 s"
    ]


async def test_a_hook_that_keeps_failing_switches_its_plugin_off_and_one_that_recovers_does_not() -> None:
    def bad(value: int) -> None:
        if value != 5:
            raise ValueError("no")

    plugins = PluginHost(
        {"bad": {"tasker_sweep_repaired": bad, "tasker_task_finished": print}}, PluginQueueLimits(failures=10)
    )
    for number in range(20):
        plugins.notify("tasker_sweep_repaired", number)
    await plugins.settle()
    (state,) = plugins.states()
    assert (state.failures, state.delivered) == ({"tasker_sweep_repaired": 15}, 1)
    assert state.off == "tasker_sweep_repaired has failed 10 times in a row"


def test_a_metric_of_a_plugin_takes_no_name_of_ours(log: pytest.LogCaptureFixture) -> None:
    rings = Counter("bell_rings_total", "Rings.")
    plugins = PluginHost(
        {
            "bell": {"tasker_metrics": lambda: [rings, Counter("tasker_info", "Mine."), 7]},
            "copy": {"tasker_metrics": lambda: [Counter("bell_rings_total", "Rings.")]},
        }
    )
    assert metrics_of(plugins, ["tasker_info"]) == [rings]
    assert log.messages == [
        "plugin_metric_refused plugin=bell metric=tasker_info reason=its name is taken",
        "plugin_metric_refused plugin=bell metric=7 reason=it is no Metric",
        "plugin_metric_refused plugin=copy metric=bell_rings_total reason=its name is taken",
    ]


@pytest.mark.parametrize("hook", sorted({*hookspecs.ASKED} - {"tasker_settings", "tasker_configured"}))
def test_a_hook_that_is_asked_and_does_not_answer_is_waited_for_once_and_a_raising_one_is_left_out(hook: str) -> None:
    stuck, calls = threading.Event(), list[str]()

    def block(*values: object) -> None:
        calls.append("blocks")
        stuck.wait()

    hooks = {"blocks": {hook: block}, "raises": {hook: lambda *values: exit(3)}, "works": {hook: lambda *values: ["x"]}}
    plugins = PluginHost(hooks, PluginQueueLimits(answer_seconds=0.01))
    for _ in range(2):
        assert plugins.answers(hook) == [("works", ["x"])]
    assert calls == ["blocks"]
    assert [each.off for each in plugins.states()] == [f"{hook} has not answered within 0.01 seconds", "", ""]
    stuck.set()


def test_every_hook_is_either_asked_or_heard() -> None:
    hooks = {name: function for name, function in vars(hookspecs.Hooks).items() if name.startswith("tasker_")}
    assert {*hookspecs.ASKED} <= {*hooks}
    assert all(len(each.__code__.co_varnames) == 2 for name, each in hooks.items() if name not in hookspecs.ASKED)


def test_a_process_tells_of_its_breakers_and_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = f"{HEAD}@hookimpl\ndef tasker_breaker_changed(breaker): heard.append(breaker.name)\n"
    source += "@hookimpl\ndef tasker_claims_throttled(claims): heard.append(claims.reason)\n"
    install_plugin(tmp_path, monkeypatch, "assembled", source)

    async def assemble() -> None:
        messaging = MessagingService(load_backend("memory", {}))
        runtime = worker_process("postgresql://nobody@127.0.0.1:9/none", messaging, HandlerRegistry(), ["shop"])
        runtime.breakers.task_readiness.force_open()
        runtime.worker.slots.throttle("because")
        await plugins_of(PluginChoice()).settle()

    asyncio.run(assemble())
    assert sys.modules["assembled_plugin"].heard == ["task_readiness", "because"]


async def test_a_plugin_that_has_heard_everything_is_told_so_once() -> None:
    heard, counts = list[object](), list[int]()
    hooks = {"tasker_sweep_repaired": heard.append, "tasker_batch_delivered": lambda told: counts.append(told.calls)}
    plugins = PluginHost({"one": hooks})
    for number in range(3):
        plugins.notify("tasker_sweep_repaired", number)
    await plugins.settle()
    assert (heard, sum(counts), 0 in counts) == ([0, 1, 2], 3, False)
    told = len(counts)
    await plugins.settle()
    assert len(counts) == told
