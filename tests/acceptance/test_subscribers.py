"""Subscribers in a running worker: none holds up another, and its port tells where the events went."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tasker
from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.servers.plain_http import PLAIN
from tests.support.waiting import until

pytestmark = pytest.mark.slow

TEMPLATE = """
name: heard
namespace: events
version: 1.0.0
steps:
  - name: tell
    handler: tell
    publishes_events:
      - {name: heard.kept}
      - {name: heard.here, delivery_mode: fast}
      - {name: heard.both, delivery_mode: broadcast}
      - {name: heard.never, schema: {type: object, required: [nothing]}}
"""
HANDLERS = """
import time
from pathlib import Path
from tasker.domain_events import BaseSubscriber, LoggingSubscriber
from tasker.step_handler import step_handler

@step_handler("tell")
def tell():
    return {"told": True}

class Blocks(BaseSubscriber):
    @classmethod
    def subscribes_to(cls):
        return ["*"]

    def handle(self, event):
        while not Path(__file__).with_name("go").exists():
            time.sleep(0.01)

class Raises(BaseSubscriber):
    @classmethod
    def subscribes_to(cls):
        return ["heard.*"]

    def handle(self, event):
        raise RuntimeError("not mine")

class Logs(LoggingSubscriber):
    @classmethod
    def subscribes_to(cls):
        return ["heard.*"]
"""
TASKS = 3


async def test_one_that_blocks_and_one_that_raises_leave_a_third_alone_and_the_port_tells_where_events_went(
    database_url: str, tmp_path: Path
) -> None:
    workflow = write_workflow(tmp_path / "heard", TEMPLATE, HANDLERS)
    fleet = Fleet(database_url, tmp_path)
    try:
        fleet.worker("worker", str(workflow), "--port", "0")
        found = re.search(r"answers on (http://\S+)", fleet.log("worker"))
        assert found
        url = found[1]
        async with tasker.App(database_url, work=False) as app:
            for number in range(TASKS):
                assert (await app.run("events/heard", {"n": number}, timeout=60)).status == "complete"

        def received() -> list[str]:
            return re.findall(r"Domain event received .* event_name=(\S+)", fleet.log("worker"))

        until(lambda: len(received()) == 2 * TASKS, "the third hears all", show=lambda: fleet.log("worker"))
        assert received() == ["heard.here", "heard.both"] * TASKS
        until(lambda: told(url)["router"]["fast_delivery_errors"] == 2 * TASKS, "what one raised is counted")
        stats = told(url)
        assert stats["router"] == {
            "total_routed": 3 * TASKS,
            "durable_routed": TASKS,
            "fast_routed": TASKS,
            "broadcast_routed": TASKS,
            "fast_delivery_errors": 2 * TASKS,
            "routing_errors": TASKS,
        }
        bus = stats["in_process_bus"]
        assert bus["total_events_dispatched"] == stats["router"]["fast_routed"] + stats["router"]["broadcast_routed"]
        assert bus["total_events_dispatched"] == bus["rust_handler_dispatches"] + bus["ffi_channel_dispatches"]
        cache = PLAIN.get(f"{url}/v1/templates", params={"include_cache_stats": True}).json()["cache_stats"]
        assert (cache["total_cached"], cache["supported_namespaces"]) == (1, ["events"])
        assert (cache["cache_misses"], cache["cache_hits"] >= TASKS - 1) == (1, True)
        (workflow / "go").touch()
    finally:
        fleet.stop()
    assert "Raises failed at heard.here" in fleet.log("worker")


def told(url: str) -> dict[str, Any]:
    answer: dict[str, Any] = PLAIN.get(f"{url}/metrics/events").json()
    return answer
