"""Transactional steps whose session, process or claim is lost between any two statements."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import tasker
from tasker.db import handler_transaction
from tasker.db.handler_transaction import AsyncHandlerTransaction, HandlerTransaction
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import step_handler
from tests.integration.app.test_transactional_steps import (
    INSERT,
    after,
    entries,
    failures,
    plan,
    post_here,
    post_here_async,
    run,
    url,
    violations,
)

__all__ = ["url"]


class Killer:
    """Ends the session of the handler's transaction before or after its statement of a number, once."""

    def __init__(self, url: str, at: int, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url, self.at, self.after, self.counted = url, at, after, itertools.count()
        opened, commit = handler_transaction.caller_transaction, HandlerTransaction.commit

        def watched(handle: Any) -> Any:
            return Watched(opened(handle), handle, self)

        def watched_commit(transaction: HandlerTransaction) -> None:
            self.around(transaction.handle, lambda: commit(transaction))

        monkeypatch.setattr(handler_transaction, "caller_transaction", watched)
        monkeypatch.setattr(HandlerTransaction, "commit", watched_commit)

    def around(self, handle: Any, call: Callable[[], Any]) -> Any:
        number = next(self.counted)
        if number == self.at and not self.after:
            self.kill(handle)
        answer = call()
        if number == self.at and self.after:
            self.kill(handle)
        return answer

    def kill(self, handle: psycopg.Connection[Any]) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("select pg_terminate_backend(%s, 5000)", (handle.info.backend_pid,))


class Watched:
    """The transaction of a handler, whose statements a killer counts."""

    def __init__(self, inner: Any, handle: Any, killer: Killer) -> None:
        self._inner, self._handle, self._killer = inner, handle, killer

    def value(self, statement: str, *arguments: str) -> Any:
        return self._killer.around(self._handle, lambda: self._inner.value(statement, *arguments))

    def is_lost(self, error: Exception) -> bool:
        return bool(self._inner.is_lost(error))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(5))
def test_session_that_ends_between_two_statements_leaves_neither_or_both(
    url: str, at: int, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statements are: begin, mark, prepare, write, commit; the second attempt does what the first did not."""
    Killer(url, at, after, monkeypatch)
    report = run(url, post_here)
    committed = after and at == 4
    assert (report.status, entries(url), violations(url)) == ("complete", 1, 0)
    assert report.steps["post"].attempts == (1 if committed else 2), failures(report)


def test_commit_whose_answer_was_lost_is_looked_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = HandlerTransaction.commit

    def lost(transaction: HandlerTransaction) -> None:
        original(transaction)
        raise handler_transaction.CommitUnknown

    monkeypatch.setattr(HandlerTransaction, "commit", lost)
    report = run(url, post_here)
    assert (report.status, entries(url), report.steps["post"].attempts) == ("complete", 1, 1)


async def test_commit_of_an_async_handler_whose_answer_was_lost_is_looked_up(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(transaction: AsyncHandlerTransaction) -> None:
        await transaction.handle.rollback()
        monkeypatch.undo()
        raise handler_transaction.CommitUnknown

    monkeypatch.setattr(AsyncHandlerTransaction, "commit", lost)
    registry = HandlerRegistry()
    registry.register("post", post_here_async)
    registry.register("after", after)
    async with tasker.App(url, registry=registry) as app:
        report = await app.run(plan(), {}, timeout=60)
    assert (report.status, entries(url), failures(report)) == ("complete", 1, ["transaction_lost"])


def test_process_that_freezes_before_the_commit_loses_its_session(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = HandlerTransaction.commit
    frozen: list[bool] = []

    def frozen_once(transaction: HandlerTransaction) -> None:
        if not frozen:
            frozen.append(True)
            with psycopg.connect(url, autocommit=True) as other:
                state, gone = "select 1 from pg_stat_activity where pid = %s", transaction.handle.info.backend_pid
                while other.execute(state, (gone,)).fetchone() is not None:
                    other.execute("select pg_sleep(0.01)")
        original(transaction)

    monkeypatch.setattr(handler_transaction, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(HandlerTransaction, "commit", frozen_once)
    report = run(url, post_here)
    assert (report.status, entries(url), failures(report)) == ("complete", 1, ["transaction_lost"])
    assert violations(url) == 0


def test_claim_that_was_lost_meanwhile_commits_nothing(url: str) -> None:
    """A sweep gives the step to another worker while the handler runs: the token refuses the first one."""
    calls: list[int] = []

    @step_handler("post", effect="transactional")
    def handler(transaction: Any, context: Any) -> dict[str, Any]:
        transaction.execute(INSERT)
        calls.append(1)
        if len(calls) == 1:
            with psycopg.connect(url, autocommit=True) as other:
                args = """jsonb_build_object('worker', s.worker_uuid, 'slots', 0, 'namespace_ids', '[]'::jsonb,
                  'unserved', '[]'::jsonb, 'window', 100, 'timeout_ms', 30000, 'grace_ms', 10000, 'items',
                  jsonb_build_array(jsonb_build_object('s', s.workflow_step_uuid, 't', s.task_uuid, 'kind', 'retry',
                    'k', s.claim_token, 'w', s.worker_uuid, 'd', 1, 'n', '{"lost": true}'::jsonb,
                    'e', '{"message": "lost", "error_type": "worker_lost"}'::jsonb)))"""
                other.execute(
                    f"select tasker.advance_v1({args}) from tasker.workflow_steps s where workflow_step_uuid = %s",
                    (context.step_uuid,),
                )
        return {}

    report = run(url, handler)
    assert (report.status, entries(url), len(calls), violations(url)) == ("complete", 1, 2, 0)
