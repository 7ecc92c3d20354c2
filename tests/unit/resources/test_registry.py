"""Clients are made once, at first use, replaced when their secrets change, and closed when nobody uses them."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasker.resources.registry import ResourceRegistry, ResourceUnavailable
from tasker.resources.tables import ResourceTables
from tasker.secrets import Secret

MADE: list[FakeClient] = []


class FakeClient:
    def __init__(self, key: Secret) -> None:
        self.key, self.closed = key.reveal(), threading.Event()
        MADE.append(self)

    def close(self) -> None:
        self.closed.set()


class AsyncClient(FakeClient):
    async def close(self) -> None:  # type: ignore[override]
        self.closed.set()


@pytest.fixture(autouse=True)
def nothing_made(monkeypatch: pytest.MonkeyPatch) -> None:
    MADE.clear()
    monkeypatch.setenv("CLIENT_KEY", "first")


def registry(make: str = "FakeClient", **options: Any) -> ResourceRegistry:
    table = {"kind": "python", "make": f"{__name__}:{make}", "key": {"secret": "env:CLIENT_KEY"}}
    return ResourceRegistry(ResourceTables({"orders": table}), **options)


def test_a_client_is_made_at_first_use_and_once() -> None:
    resources = registry()
    one, other = resources.for_attempt(), resources.for_attempt()
    assert (set(one), MADE) == ({"orders"}, [])
    threads = [threading.Thread(target=lambda: one["orders"]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one["orders"] is other["orders"]
    assert len(MADE) == 1


def test_a_changed_secret_replaces_the_client_and_closes_the_old_one_after_its_last_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resources = registry()
    one, other = resources.for_attempt(), resources.for_attempt()
    old = one["orders"]
    assert other["orders"] is old
    assert one.renew() == []
    monkeypatch.setenv("CLIENT_KEY", "second")
    assert one.renew() == ["orders"]
    new = resources.for_attempt()["orders"]
    assert (old.key, new.key) == ("first", "second")
    one.release()
    assert not old.closed.is_set()
    other.release()
    assert old.closed.wait(10)
    assert not new.closed.is_set()


def test_renew_reports_a_client_that_was_already_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resources = registry()
    one, other = resources.for_attempt(), resources.for_attempt()
    assert one["orders"] is other["orders"]
    monkeypatch.setenv("CLIENT_KEY", "second")
    assert one.renew() == ["orders"]
    resources.for_attempt()["orders"]
    assert other.renew() == ["orders"]
    assert len(MADE) == 2


def test_an_expired_secret_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    resources = registry(now=lambda: now)
    first = resources.for_attempt()
    first["orders"]
    resources._clients["orders"].secrets[0].expires_at = now + timedelta(minutes=5)
    assert resources.for_attempt()["orders"] is MADE[0]
    monkeypatch.setenv("CLIENT_KEY", "second")
    now += timedelta(minutes=5)
    assert resources.for_attempt()["orders"].key == "second"
    first.release()


def test_closing_closes_all_and_makes_none() -> None:
    for make in ("FakeClient", "AsyncClient"):
        resources = registry(make)
        client = resources.for_attempt()["orders"]
        resources.close()
        assert client.closed.is_set()
        with pytest.raises(ResourceUnavailable, match="is stopping"):
            resources.for_attempt()["orders"]


def test_a_client_of_the_program_is_not_closed() -> None:
    client = FakeClient(Secret("x"))
    resources = ResourceRegistry(ResourceTables({"orders": client}))
    assert resources.for_attempt()["orders"] is client
    resources.close()
    assert not client.closed.is_set()


@pytest.mark.parametrize(
    ("make", "message"),
    [("", "expected 'module:function'"), (f"{__name__}:Nothing", "has no function"), ("no_module:x", "no_module")],
)
def test_a_resource_that_cannot_be_made_says_why_and_may_be_tried_again(make: str, message: str) -> None:
    resources = ResourceRegistry(ResourceTables({"orders": {"kind": "python", "make": make}}))
    with pytest.raises(ResourceUnavailable, match=message) as failure:
        resources.for_attempt()["orders"]
    assert failure.value.retryable
