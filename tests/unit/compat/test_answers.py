"""What is asked of tasker_core is answered as by its version 0.1.8, whose answers were recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasker_core._runtime.client import disconnect
from tasker_core.domain_events import PublisherRegistry
from tasker_core.event_bridge import EventBridge
from tests.support.published_answers import Answers, asked

RECORDED: Answers = json.loads((Path(__file__).parents[2] / "data" / "tasker_core_answers.json").read_text("utf-8"))

DIFFERENT = {
    "ran(refused)": "the engine keeps an error's own code, which was lost in a function",
    "client.TaskListResponse.from_dict({'tasks': [{'name': 'n'}], 'pagination': {'page': 2}})": "tasks can be delayed",
}
"""Questions that are answered otherwise -> why."""


@pytest.fixture(autouse=True)
def without_traces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)  # a client without a database would make one here
    for name in ("TASKER_TEMPLATE_PATH", "TASKER_ENV", "WORKSPACE_PATH"):
        monkeypatch.delenv(name, raising=False)
    yield
    disconnect()
    EventBridge.reset_instance()
    PublisherRegistry.reset()


@pytest.mark.parametrize("part", RECORDED)
def test_it_answers_as_the_published_package(part: str, tmp_path: Path) -> None:
    recorded = RECORDED[part]
    answers = asked([question for question, _ in recorded], tmp_path)

    found = {
        n: pair for n, pair in enumerate(answers) if pair[0] not in DIFFERENT and not holds(pair[1], recorded[n][1])
    }
    assert {n: recorded[n] for n in found} == found


def test_what_is_answered_otherwise_says_why(tmp_path: Path) -> None:
    recorded = {question: answer for pairs in RECORDED.values() for question, answer in pairs}
    for question, answer in asked(list(DIFFERENT), tmp_path):
        assert DIFFERENT[question]
        assert answer != recorded[question]


def holds(found: Any, recorded: Any) -> bool:
    """The same; fields of a model, which say what it is, may be more."""
    if isinstance(found, dict) and isinstance(recorded, dict):
        more = "is" in recorded or found.keys() == recorded.keys()
        return more and all(key in found and holds(found[key], value) for key, value in recorded.items())
    if isinstance(found, list) and isinstance(recorded, list) and len(found) == len(recorded):
        return all(holds(*pair) for pair in zip(found, recorded, strict=True))
    return bool(found == recorded) and type(found) is type(recorded)
