"""Handlers that use Django in the transaction that completes their step; skipped where Django is not installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tasker.step_handler import step_handler
from tests.integration.app.test_transactional_steps import INSERT, entries, failures, post_async, run, url, violations

django = pytest.importorskip("django")

from django.conf import settings  # noqa: E402
from django.db import connections, transaction  # noqa: E402

__all__ = ["url"]


@pytest.fixture
def atomic(url: str) -> Iterator[Any]:
    """What a program gives as the resource; Django is configured for the database of the test."""
    parts = urlsplit(url)
    host = parse_qs(parts.query).get("host", [parts.hostname or ""])[0]
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path[1:],
        "USER": parts.username or "",
        "PASSWORD": parts.password or "",
        "HOST": host,
        "PORT": str(parts.port or ""),
    }
    if not settings.configured:
        settings.configure(DATABASES={"default": database}, USE_TZ=True)
        django.setup()
    connections.close_all()
    connections.databases["default"].update(database)
    yield transaction.atomic()
    connections.close_all()


def posts(then: Callable[[list[int]], Any]) -> Any:
    """A handler that inserts a row with Django and does this with the numbers of its calls."""
    calls: list[int] = []

    @step_handler("post", effect="transactional", transaction="ledger")
    def post() -> Any:
        calls.append(1)
        with transaction.atomic(), connections["default"].cursor() as cursor:
            cursor.execute(INSERT)
        then(calls)
        return {}

    return post


def test_rows_of_django_and_completion_are_one_commit(url: str, atomic: Any) -> None:
    committed: list[bool] = []
    report = run(url, posts(lambda _: transaction.on_commit(lambda: committed.append(True))), atomic)
    assert (report.status, entries(url), violations(url), committed) == ("complete", 1, 0, [True])


def raise_first(calls: list[int]) -> None:
    if len(calls) == 1:
        raise RuntimeError("afterwards")


def test_failed_attempt_leaves_no_rows_of_django(url: str, atomic: Any) -> None:
    report = run(url, posts(raise_first), atomic)
    assert (report.status, entries(url), len(failures(report))) == ("complete", 1, 1)


def test_error_that_the_handler_hides_fails_the_attempt(url: str, atomic: Any) -> None:
    def hides(calls: list[int]) -> None:
        if len(calls) == 1:
            try:
                connections["default"].cursor().execute("select 1/0")
            except Exception:
                transaction.set_rollback(True)

    report = run(url, posts(hides), atomic)
    assert (report.status, entries(url), len(failures(report))) == ("complete", 1, 1)


def test_async_handler_cannot_use_django(url: str, atomic: Any) -> None:
    report = run(url, post_async, atomic)
    assert (report.status, failures(report)) == ("error", ["configuration_error"])
