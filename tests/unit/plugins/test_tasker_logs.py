"""The plugin `logs`: a line of JSON for each event, ids first, in a file that may be moved away."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tasker.plugins.found import PluginChoice, installed
from tasker.plugins.hook_arguments import (
    AttemptEnded,
    AttemptStarted,
    BreakerChanged,
    ClaimsThrottled,
    ProcessInfo,
    SweepRepaired,
    TaskFinished,
    TasksSubmitted,
    TaskSubmitted,
)
from tasker.plugins.hooks import ASKED, Hooks
from tasker.plugins.host import plugins_of, ready
from tasker_logs import Logs
from tasker_logs.journal import Journal
from tasker_logs.lines import line
from tasker_logs.table import LogsTable

STARTED = AttemptStarted("task", "step", "shop", "order", "pay", "shop.pay", 2, 3, 7, "worker", "correlation")
NOW = int(datetime(2026, 11, 22, 9, 13, 30, tzinfo=UTC).timestamp()) * 1000 + 484


def logs(folder: Path, **settings: object) -> tuple[Logs, Path]:
    plugin, file = Logs(), folder / "deep" / "journal.jsonl"
    plugin.tasker_configured(LogsTable.parse({"path": str(file), **settings}))
    return plugin, file


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_failed_attempt_is_a_line_with_its_ids_first() -> None:
    ended = AttemptEnded(STARTED, "failed", 12, "timeout", "no answer", True)
    found = line("Step failed", ended, NOW)
    assert list(found.items())[:13] == [
        ("timestamp", "2026-11-22T09:13:30.484+00:00"),
        ("level", "WARNING"),
        ("message", "Step failed"),
        ("correlation_id", "correlation"),
        ("task_uuid", "task"),
        ("step_uuid", "step"),
        ("namespace", "shop"),
        ("template", "order"),
        ("step_name", "pay"),
        ("state", "failed"),
        ("duration_ms", 12),
        ("error", "no answer"),
        ("error_type", "timeout"),
    ]
    assert {key: found[key] for key in ("retry_count", "max_retries", "token", "retryable")} == {
        "retry_count": 1,
        "max_retries": 2,
        "token": 7,
        "retryable": True,
    }


def test_a_line_carries_the_millisecond() -> None:
    told = [line("Step claimed", STARTED, NOW - each)["timestamp"] for each in (0, 477, 484, 485)]
    assert [each[17:] for each in told] == ["30.484+00:00", "30.007+00:00", "30.000+00:00", "29.999+00:00"]


def test_a_line_holds_all_of_an_attempt_but_its_place_in_a_trace_and_its_times() -> None:
    found, fields = line("Step claimed", STARTED, NOW), STARTED.__dataclass_fields__
    told = fields.keys() - {"attempt", "max_attempts", "step", "started_at", "traceparent", "tracestate"}
    assert {key: found[key] for key in told} == {key: getattr(STARTED, key) for key in told}
    assert (found["step_name"], found["retry_count"], found["max_retries"]) == ("pay", 1, 2)
    assert found.keys() - told == {"timestamp", "level", "message", "step_name", "retry_count", "max_retries"}


def test_every_event_of_a_process_is_in_the_journal_and_starts_where_they_are_asked_for(tmp_path: Path) -> None:
    process = ProcessInfo("worker", "uuid", ("shop",))
    begun = ["Task initialized: task_uuid=task", "Step claimed: step_uuid=step"]
    for starts, first in ((False, []), (True, begun)):
        plugin, file = logs(tmp_path / str(starts), starts=starts)
        plugin.tasker_process_started(process)
        plugin.tasker_tasks_submitted(TasksSubmitted("shop", "order", 1, 2.0, (TaskSubmitted("task", "correlation"),)))
        plugin.tasker_attempt_started(STARTED)
        plugin.tasker_attempt_ended(AttemptEnded(STARTED, "succeeded", 3))
        plugin.tasker_task_finished(TaskFinished("task", "complete"))
        plugin.tasker_breaker_changed(BreakerChanged("messaging", "closed", "open", ""))
        plugin.tasker_claims_throttled(ClaimsThrottled("breaker", 0))
        plugin.tasker_sweep_repaired(SweepRepaired((("hint_lost", 2),)))
        plugin.tasker_process_stopped(process)
        plugin.tasker_batch_delivered()
        told = [each["message"] for each in lines(file)]
        ended = ["Step completed: step_uuid=step", "Task finalized: task_uuid=task"]
        between = ["Circuit breaker changed", "Claims held", "Repaired"]
        assert told == ["Process started", *first, *ended, *between, "Process stopped"]
    assert lines(file)[-2]["hint_lost"] == 2


def test_a_journal_that_was_moved_away_goes_on_in_a_new_file_within_a_second(tmp_path: Path) -> None:
    now, file = [0.0], tmp_path / "journal"
    journal = Journal(str(file), lambda: now[0])

    def write(number: int) -> None:
        journal.add({"n": number})
        journal.flush()

    write(1)
    file.rename(tmp_path / "older")
    write(2)
    now[0] = 1
    write(3)
    assert (lines(tmp_path / "older"), lines(file)) == ([{"n": 1}, {"n": 2}], [{"n": 3}])


def test_many_lines_are_written_before_somebody_asks_and_any_text_can_be_one(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "journal"))
    odd = {"n": 2**70, "half": "\ud800", "what": {1}}
    journal.add(odd)
    assert lines(tmp_path / "journal") == []
    for number in range(1000):
        journal.add({"n": number, "text": "x" * 100})
    told = lines(tmp_path / "journal")
    assert told[0] == {"n": 2**70, "half": "\ud800", "what": "{1}"}
    assert len(told) > 500
    journal.flush()
    assert [each["n"] for each in lines(tmp_path / "journal")[1:]] == [*range(1000)]


async def test_it_is_on_where_it_is_named_and_a_file_that_cannot_be_written_refuses_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (plugin,) = [each for each in installed() if each.name == "logs"]
    assert not PluginChoice().has(plugin)
    where = LogsTable(path=str(tmp_path / "journal.jsonl"))
    plugins = plugins_of(PluginChoice(enabled=("logs",), settings={"logs": where}))
    plugins.notify("tasker_task_finished", TaskFinished("task", "complete"))
    await plugins.settle()
    assert lines(tmp_path / "journal.jsonl")[0]["task_uuid"] == "task"
    nowhere = PluginChoice(enabled=("logs",), settings={"logs": LogsTable(path="/proc/nowhere/journal")})
    assert "/proc/nowhere" in (ready(plugin, nowhere)[1] or "")
    assert plugins_of(nowhere).states() == ()
    assert "plugin_refused plugin=logs (tasker_logs:Logs) reason=" in caplog.text


def test_it_is_told_of_starts_only_where_it_writes_them(tmp_path: Path) -> None:
    starts = ("tasker_attempt_started", "tasker_tasks_submitted")
    for asked, hearers in ((False, ()), (True, ("logs",))):
        where = LogsTable(path=str(tmp_path / "journal.jsonl"), starts=asked)
        plugins = plugins_of(PluginChoice(enabled=("logs",), settings={"logs": where}))
        assert [plugins.having(hook) for hook in starts] == [hearers] * 2
        assert plugins.having("tasker_attempt_ended") == ("logs",)


def test_it_hears_of_everything_that_a_plugin_hears_of() -> None:
    heard = {name for name in vars(Hooks) if name.startswith("tasker_") and name not in ASKED}
    assert {name for name in heard if not hasattr(Logs, name)} == {
        "tasker_attempts_stored",
        "tasker_event_published",
        "tasker_queue_polled",
        "tasker_process_stopping",
        "tasker_request_answered",
        "tasker_tasks_closed",
        "tasker_transitions",
        "tasker_write_committed",
    }
