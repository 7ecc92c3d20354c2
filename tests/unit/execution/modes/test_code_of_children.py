"""A child process runs the code that its worker would run, or says why it cannot."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasker.engine.exchange import Result
from tasker.execution.attempt.attempt import AttemptCancelFlag
from tasker.handlers.registry.discovery import handlers_in_path
from tasker.handlers.registry.resolver import HandlerDefinition
from tasker.json_values import as_stored
from tasker.services.workflows.handlers import load_handlers
from tests.unit.execution.bench import Bench, failure_of
from tests.unit.execution.modes import child_handlers, named_handlers


async def result(bench: Bench, handler: Any, **options: Any) -> Any:
    end = await bench.run(handler, **options)
    assert isinstance(end, Result)
    assert end.success, end.failure
    return as_stored(end.success.encoded)


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (named_handlers.audited_charge, {"charged": 5, "audited": True}),
        (named_handlers.count_from_five, {"next": 6}),
        (named_handlers.handle, {"which": "second"}),
        (named_handlers.plain, {"plain": True}),
        (named_handlers.Outer.Inner, {"inner": True}),
    ],
    ids=["a wrapper that has the name of what it wraps", "made by a function", "the last of a name", "plain", "nested"],
)
async def test_a_child_runs_the_handler_that_its_worker_has(bench: Bench, handler: Any, expected: Any) -> None:
    assert await result(bench, handler) == await result(bench, handler, execution="process") == expected


async def test_a_handler_whose_name_has_gone_to_another_one_cannot_run_in_a_child(bench: Bench) -> None:
    failure = failure_of(await bench.run(named_handlers.BOTH[0], execution="process"))

    assert (failure.error_type, failure.retryable) == ("handler_not_importable", False)
    assert "no name in its module leads to it" in failure.message
    assert "give it a name of its own in the module" in failure.message


def test_code_that_another_registry_has_run_anew_meanwhile_still_has_its_name(tmp_path: Path) -> None:
    file = tmp_path / "handlers.py"
    file.write_text("from tasker.step_handler import step_handler\n@step_handler('kept')\ndef kept(): return {}\n")
    first, _ = load_handlers([file]), load_handlers([file])

    source = first.resolved(HandlerDefinition(callable="kept")).source

    assert source.loadable
    assert (source.qualname, source.file) == ("kept", str(file.resolve()))


async def test_a_handler_that_cannot_be_made_again_says_why_as_it_does_in_a_thread(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = bench.attempt(child_handlers.ConnectsOnce, execution="process")
    await bench.end(attempt)
    failure = failure_of(await bench.end(replace(attempt, cancel=AttemptCancelFlag())))
    monkeypatch.setattr(child_handlers.ConnectsOnce, "made", 1)
    here = failure_of(await bench.run(child_handlers.ConnectsOnce, execution="thread"))

    assert "ConnectionError: the service is away" in failure.message
    assert "ConnectionError: the service is away" in here.message
    assert (failure.error_type, failure.retryable) == (here.error_type, here.retryable)


CODE = """
from tasker.step_handler import StepHandler, step_handler

class Counts(StepHandler):
    def call(self, context): return self.success({})
    def upwards(self, context): return self.success({})

@step_handler("charge")
def charge(): return {}
"""


@pytest.mark.parametrize(
    ("name", "method", "was", "now", "said"),
    [
        ("Counts", "upwards", "def upwards", "def downwards", "does not respond to 'upwards'"),
        ("charge", "call", "def charge()", "def charge(amount)", "amount"),
        ("charge", "call", "def charge()", "def charge_card()", "has no 'charge'"),
    ],
)
async def test_code_that_was_edited_since_the_worker_read_it_fails_with_what_is_wrong(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, method: str, was: str, now: str, said: str
) -> None:
    file = tmp_path / f"edited_{len(now)}.py"
    file.write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    attempt = bench.attempt(getattr(importlib.import_module(file.stem), name), execution="process", method=method)

    file.write_text(CODE.replace(was, now))

    failure = failure_of(await bench.end(attempt))
    assert failure.error_type != "handler_crash"
    assert said in failure.message


async def test_a_child_runs_an_edited_file_anew_once_its_worker_has_done_so(bench: Bench, tmp_path: Path) -> None:
    answers, text = [], "from tasker.step_handler import step_handler\n@step_handler('edited')\ndef edited(): return "
    for content in (
        "{'edits': 0, 'pid': __import__('os').getpid()}",
        "{'edits': 1, 'pid': __import__('os').getpid() }",
    ):
        (tmp_path / "handlers.py").write_text(text + content)
        (found,) = handlers_in_path(tmp_path)
        answers += [await result(bench, found.target, execution="process") for _ in range(2)]

    assert [answer["edits"] for answer in answers] == [0, 0, 1, 1]
    assert len({answer["pid"] for answer in answers}) == 1
