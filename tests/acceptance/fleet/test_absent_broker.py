"""A process that starts before its broker waits for it, says so, and works once it is there."""

from __future__ import annotations

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest
import redis

import tasker
from tasker.errors import BackendUnavailable
from tasker.messaging import MessagingService, load_backend
from tasker.process.connections import open_broker
from tests.support.fleets.fleet import ROOT, Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.servers import brokers
from tests.support.waiting import until

WORKFLOW = ROOT / "tests" / "benchmarks" / "workflows" / "linear"
WAITS = "waiting for the broker"


@pytest.mark.slow
@pytest.mark.servers
@pytest.mark.parametrize("kind", brokers.KINDS, ids=lambda kind: kind.name)
def test_a_worker_that_started_before_its_broker_runs_a_task_once_it_is_there(
    database_url: str, tmp_path: Path, oracle: Oracle, kind: brokers.Kind
) -> None:
    backend = next(name for name, found in brokers.KIND_OF.items() if found is kind)
    with brokers.private_server(kind) as server, ThreadPoolExecutor() as threads:
        server.kill()
        fleet = Fleet(database_url, tmp_path, backend=backend, broker=server.url)
        try:
            started = threads.submit(fleet.worker, "worker", str(WORKFLOW))
            until(lambda: "worker" in fleet.processes and WAITS in fleet.log("worker"), "it waits")
            assert not started.done()
            server.start()
            started.result()
            oracle.wait_for_the_end([asyncio.run(submit(database_url, backend, server.url))])
            assert not +oracle.repairs()
        finally:
            fleet.stop()


async def submit(database_url: str, backend: str, broker_url: str) -> str:
    async with tasker.App(database_url, backend=backend, backend_settings={"url": broker_url}, work=False) as app:
        return (await app.submit(WORKFLOW, {})).task_uuid


@pytest.mark.slow
def test_a_process_that_waits_for_its_broker_stops_when_it_is_told_to(database_url: str, tmp_path: Path) -> None:
    absent = f"redis://127.0.0.1:{brokers.free_port()}/0"
    fleet = Fleet(database_url, tmp_path, backend="redis", broker=absent)
    with ThreadPoolExecutor() as threads:
        started = threads.submit(fleet.orchestrator, "orchestrator")
        try:
            until(lambda: "orchestrator" in fleet.processes and WAITS in fleet.log("orchestrator"), "it waits")
            fleet.signal("orchestrator", signal.SIGTERM)
            assert fleet.processes["orchestrator"].wait(30) == 0, fleet.log("orchestrator")
        finally:
            fleet.stop()
        assert started.exception() is not None, "it was never ready"


@pytest.mark.parametrize("backend", ["rabbitmq", "redis", "nats"])
async def test_waiting_ends_with_an_error_that_says_what_to_do(
    backend: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    url = brokers.KIND_OF[backend].url(brokers.free_port())
    messaging = MessagingService(load_backend(backend, {"url": url, "connection_timeout_seconds": 1}))
    with pytest.raises(BackendUnavailable) as caught:
        await open_broker(messaging, 0.2)
    await messaging.close()

    assert caught.value.message.startswith(f"waited 0.2 seconds in vain for the broker ({backend}): ")
    assert f"common.queues.{backend}.url" in str(caught.value.hint)
    assert "common.database.connect_wait_seconds" in str(caught.value.hint)
    assert f"waiting for the broker ({backend}), at most 0.2 seconds: " in caplog.text
    assert capsys.readouterr().out == "", "nothing is printed where a program's output belongs"


async def test_without_a_time_to_wait_an_absent_broker_is_an_error_at_once(caplog: pytest.LogCaptureFixture) -> None:
    messaging = MessagingService(load_backend("redis", {"url": f"redis://127.0.0.1:{brokers.free_port()}/0"}))
    with pytest.raises(BackendUnavailable, match="does not answer"):
        await open_broker(messaging, 0)
    assert WAITS not in caplog.text


@pytest.mark.parametrize("backend", ["rabbitmq", "redis"])
async def test_a_wrong_password_is_not_waited_for(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    with brokers.private_server(brokers.REDIS) if backend == "redis" else nullcontext() as server:
        if server:
            redis.Redis.from_url(server.url).config_set("requirepass", "right")
            url = server.url.replace("redis://", "redis://:wrong@")
        else:
            url = brokers.shared_url(brokers.RABBITMQ).replace("guest:guest", "guest:wrong")
        messaging = MessagingService(load_backend(backend, {"url": url}))
        with pytest.raises(BackendUnavailable) as caught:
            await open_broker(messaging, 3600)
    assert not caught.value.retryable
    assert WAITS not in caplog.text
    assert "wrong" not in f"{caught.value} {caught.value.hint}"
