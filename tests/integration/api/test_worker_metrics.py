"""Metrics of a worker about attempts that another part of it goes on with: threads left behind, steps given back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.process.status import observed_worker
from tasker.server.process_port import PortOptions, port_application
from tasker.step_handler import step_handler
from tasker.template import compile_text

TEMPLATE = """
name: blocked
namespace_name: shop
version: 1.0.0
identity_strategy: always_unique
steps:
  - {name: only, handler: shop.blocked, timeout_seconds: %s, retry: {max_attempts: 1}}
"""
LEFT_BEHIND, GIVEN_BACK = "tasker_steps_threads_left_behind", "tasker_steps_given_back_total"
ACTIVE = 'tasker_steps_active_executions{namespace="shop"}'


@asynccontextmanager
async def worker(database_url: str, handler: Any) -> AsyncIterator[tuple[tasker.App, httpx.AsyncClient]]:
    """Run a program with this handler, and its port of metrics."""
    registry = HandlerRegistry()
    registry.register("shop.blocked", handler)
    async with tasker.App(database_url, registry=registry) as app:
        assert app.runtime is not None
        observed = observed_worker(app.runtime, registry, [])
        transport = httpx.ASGITransport(app=port_application(observed, PortOptions(configuration={})))
        async with httpx.AsyncClient(transport=transport, base_url="http://worker") as port:
            yield app, port


async def metric(port: httpx.AsyncClient, name: str) -> float:
    lines = (await port.get("/metrics")).text.splitlines()
    return float(next((line.rpartition(" ")[2] for line in lines if line.startswith(f"{name} ")), "0"))


async def until(port: httpx.AsyncClient, name: str, value: float) -> None:
    async with asyncio.timeout(30):
        while await metric(port, name) != value:
            await asyncio.sleep(0.02)


async def test_threads_left_behind_are_those_that_still_run_after_their_attempt(database_url: str) -> None:
    begun, go = threading.Event(), threading.Event()

    @step_handler("shop.blocked")
    def blocked() -> None:
        begun.set()
        go.wait()

    try:
        async with worker(database_url, blocked) as (app, port):
            (plan,) = compile_text(TEMPLATE % 0.2).plans
            report = await app.run(plan, timeout=30)
            assert (report.status, begun.is_set()) == ("error", True)
            assert [await metric(port, each) for each in (LEFT_BEHIND, GIVEN_BACK, ACTIVE)] == [1, 0, 0]
            go.set()
            await until(port, LEFT_BEHIND, 0)
    finally:
        go.set()


async def test_given_back_are_the_steps_that_a_stopping_worker_had_running(database_url: str) -> None:
    @step_handler("shop.blocked")
    async def blocked() -> None:
        await asyncio.Event().wait()

    async with worker(database_url, blocked) as (app, port):
        (plan,) = compile_text(TEMPLATE % 60).plans
        for _ in range(2):
            await app.submit(plan)
        await until(port, ACTIVE, 2)
        assert [await metric(port, each) for each in (LEFT_BEHIND, GIVEN_BACK)] == [0, 0]
        await app.stop_working(grace_seconds=0)
        assert [await metric(port, each) for each in (LEFT_BEHIND, GIVEN_BACK, ACTIVE)] == [0, 2, 0]
