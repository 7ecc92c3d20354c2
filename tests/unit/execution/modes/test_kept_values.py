"""A child process is sent each value of a task once, however many steps of it read the value there."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.engine.exchange import Result
from tasker.execution.attempt.attempt import Attempt
from tasker.execution.fast.shared_values import REMEMBERED_TASKS, WORTH_KEEPING, SharedValueReceiver, SharedValueSender
from tasker.json_values import VALUE_LIMIT_BYTES, as_stored
from tests.unit.execution.bench import Bench, failure_of
from tests.unit.execution.modes import child_handlers

LARGE = {"text": "x" * WORTH_KEEPING, "changed": []}


def crossed(
    sent: SharedValueSender, received: SharedValueReceiver, task: str, values: dict[str, Any]
) -> tuple[dict[str, Any], int]:
    """What the child reads, and how many bytes it was sent."""
    text = json.dumps(sent.fields(task, results=values))
    message = json.loads(text)
    read = received.read(message["results"])
    received.drop(message["drop"])
    return dict(read), len(text)


def test_what_several_steps_of_a_task_read_is_sent_once() -> None:
    sent, received, sizes = SharedValueSender(), SharedValueReceiver(), []
    for _ in range(5):
        read, size = crossed(sent, received, "task", {"cut": LARGE, "n": 1})
        assert read == {"cut": LARGE, "n": 1}
        sizes.append(size)
    assert min(sizes[:2]) > WORTH_KEEPING > 10 * max(sizes[2:]), "kept from the second step on"


def test_nothing_is_kept_of_tasks_of_which_one_step_runs_here() -> None:
    sent, received = SharedValueSender(), SharedValueReceiver()
    for n in range(300):
        crossed(sent, received, f"task {n}", {"cut": LARGE})
    assert not received._kept


def test_a_value_that_was_asked_for_anew_is_sent_anew() -> None:
    sent, received = SharedValueSender(), SharedValueReceiver()
    for n in range(4):
        assert crossed(sent, received, "task", {"cut": {**LARGE, "n": n}})[0] == {"cut": {**LARGE, "n": n}}
    assert len(received._kept) == 1


def test_a_result_as_large_as_may_be_stored_is_kept_whatever_its_letters() -> None:
    sent, received = SharedValueSender(), SharedValueReceiver()
    largest = {"text": "я" * (VALUE_LIMIT_BYTES // 2 - 20)}
    sizes = [crossed(sent, received, "task", {"cut": largest})[1] for _ in range(3)]

    assert sizes[2] < WORTH_KEEPING


def test_values_of_one_step_do_not_take_the_place_of_each_other() -> None:
    sent, received, other = SharedValueSender(10_000), SharedValueReceiver(), {"text": "x" * 3_000}
    together = {name: {"text": name * 3_000} for name in "abcd"}
    for task in ("other", "task", "other", "task"):
        crossed(sent, received, task, {"x": other} if task == "other" else together)

    read, size = crossed(sent, received, "task", together)

    assert (read, size < 4_000) == (together, True), "three of the four were there"
    assert crossed(sent, received, "other", {"x": other})[0] == {"x": other}


def test_nothing_is_dropped_for_a_value_that_has_no_room_beside_those_of_its_own_step() -> None:
    sent, received, other = SharedValueSender(10_000), SharedValueReceiver(), {"text": "x" * 2_000}
    together = {name: {"text": name * 3_500} for name in "abc"}
    for _ in range(2):
        crossed(sent, received, "other", {"x": other})
    for _ in range(3):
        crossed(sent, received, "task", together)

    assert crossed(sent, received, "other", {"x": other})[1] < WORTH_KEEPING


class Watched(dict[str, str]):
    """A value that can be referred to weakly."""


def test_values_of_a_task_that_is_over_are_let_go() -> None:
    sent, received, value = SharedValueSender(), SharedValueReceiver(), Watched(text="x" * WORTH_KEEPING)
    for _ in range(2):
        crossed(sent, received, "task", {"cut": value})
    held = weakref.ref(value)
    del value

    for n in range(REMEMBERED_TASKS):
        crossed(sent, received, f"other {n}", {})

    gc.collect()
    assert held() is None
    assert not received._kept


Values = dict[str, dict[str, Any]]


@given(
    pools=st.fixed_dictionaries(
        {task: st.lists(st.sampled_from([5_000, 3_000, 1_500, 10]), min_size=3, max_size=3) for task in "abc"}
    ),
    steps=st.lists(st.tuples(st.sampled_from("abc"), st.sets(st.integers(0, 2)), st.booleans()), max_size=40),
    limit=st.sampled_from([6_000, 12_000, 2_000, 0]),
)
def test_whatever_is_kept_and_dropped_the_child_reads_what_its_parent_has(
    pools: dict[str, list[int]], steps: list[tuple[str, set[int], bool]], limit: int
) -> None:
    values: Values = {
        task: {str(n): {"x": "x" * size} for n, size in enumerate(sizes)} for task, sizes in pools.items()
    }
    sent, received = SharedValueSender(limit), SharedValueReceiver()
    for number, (task, which, anew) in enumerate(steps):
        if anew:
            values[task] = {name: {**value, "n": number} for name, value in values[task].items()}
        wanted = {str(n): values[task][str(n)] for n in sorted(which)}
        assert crossed(sent, received, task, wanted)[0] == wanted
        assert sum(len(json.dumps(value)) for value in received._kept.values()) <= limit
        assert {kept.number for kept in sent._kept.values()} == received._kept.keys()


def large(attempt: Attempt, above: dict[str, Any]) -> Attempt:
    return replace(attempt, task_context={"n": LARGE}, dependency_results={"above": above})


async def stored(bench: Bench, attempt: Attempt) -> Any:
    end = await bench.end(attempt)
    assert isinstance(end, Result)
    assert end.success, end.failure
    return as_stored(end.success.encoded)


async def test_a_handler_that_changes_what_it_reads_changes_it_for_itself(bench: Bench) -> None:
    above = dict(LARGE)
    attempt = bench.attempt(child_handlers.ChangesWhatItReads, execution="process")
    answers = [await stored(bench, large(attempt, above)) for _ in range(4)]

    assert len({answer.pop("pid") for answer in answers}) == 1
    assert answers == [{"above": ["mine"], "input": ["mine"], "size": WORTH_KEEPING}] * 4


async def test_a_request_whose_handler_cannot_be_loaded_leaves_what_it_brought(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = dict(LARGE)
    attempt = large(bench.attempt(child_handlers.ChangesWhatItReads, execution="process"), above)
    module = {"__module__": child_handlers.__name__}
    nowhere = type("Nowhere", (child_handlers.ChangesWhatItReads,), module)
    monkeypatch.setattr(child_handlers, "Nowhere", nowhere, raising=False)  # in this process alone
    missing = large(bench.attempt(nowhere, execution="process", callable="missing"), above)
    first = await stored(bench, attempt)

    failure = failure_of(await bench.end(missing))

    assert failure.error_type == "handler_not_importable"
    assert await stored(bench, attempt) == first
