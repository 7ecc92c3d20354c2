"""The words of a list of tasks, as the command that lists the same."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

import click
import pytest

from tasker.cli.commands.task import list_
from tasker.server.web.presenters.tasks import Search

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVERYTHING = {
    "namespace": "a shop",
    "template": "it's",
    "version": "1.0.0",
    "status": "error",
    "tag": "x y",
    "initiator": "ada",
    "source": "cron",
    "correlation": "00000000-0000-7000-8000-000000000000",
    "fingerprint": "0123456789abcdef",
    "since": "2026-02-01T10:00",
    "until": "2026-02-02T10:00",
    "sort": "oldest",
}


@pytest.mark.parametrize("words", [{}, EVERYTHING, {"status": "open", "within": "7d"}])
def test_the_command_of_a_filter_is_one_that_there_is_and_asks_for_the_same(words: dict[str, str]) -> None:
    search = Search.read(words)
    command = shlex.split(search.command)
    assert command[:3] == ["tasker", "task", "list"]
    assert isinstance(list_, click.Command)
    given, which = list_.make_context("list", command[3:]).params, search.filter(None, NOW)
    for option in ("namespace", "template", "version", "status", "initiator", "source_system", "fingerprint"):
        assert given[option] == getattr(which, option), option
    assert (given["tags"], given["open"]) == (tuple(which.tags), which.open)
    assert (given["correlation_id"], given["oldest_first"]) == (which.correlation_id, search.oldest_first)
    if search.since:
        assert (given["since"], given["until"]) == (which.created_after, which.created_before)
