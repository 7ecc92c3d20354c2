"""`make web`: a server with its page, a worker, and example tasks that never end.

    python -m tools.feed [--port 8080] [--every 1.0] [--data-dir FOLDER]

It runs `tasker dev` on some of the examples, and submits a task every second or so, of which some fail, retry and wait
for a person, so that every page has something to show. Ctrl-C ends all of it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[1]
EXAMPLES = (
    "order_fulfillment",
    "payment_processing",
    "diamond_decision_batch",
    "customer_etl",
    "csv_inventory",
    "user_registration",
)
READY_SECONDS = 120.0
TAGS = (["nightly"], ["web"], ["web", "vip"], [])


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="tools.feed", description="A page with example tasks running.")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument(
        "--data-dir", metavar="FOLDER", help="the embedded database's folder (default: .tasker/postgres)"
    )
    given = parser.parse_args(arguments)
    folders = [str(ROOT / "workflows" / name) for name in EXAMPLES]
    command = [sys.executable, "-m", "tasker", "dev", *folders, "--port", str(given.port)]
    command += ["--data-dir", given.data_dir] if given.data_dir else []
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    child = subprocess.Popen(command, env={"TASKER_LOG_LEVEL": "warning", **os.environ})
    try:
        address = f"http://127.0.0.1:{given.port}"
        if not _is_ready(address, child):
            print(f"the server did not become ready on {address}; see the lines above", file=sys.stderr)
            return 1
        print(f"example tasks are running; the page: {address}/ui (Ctrl-C ends it)", flush=True)
        _feed(address, given.every, child)
    except KeyboardInterrupt:
        print("\nending", file=sys.stderr)
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
        child.wait()
    return 0


def _is_ready(address: str, child: subprocess.Popen[bytes]) -> bool:
    """Whether the server answers and knows the examples, within some time."""
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end and child.poll() is None:
        try:
            if httpx.get(f"{address}/v1/templates").json().get("total_count", 0) >= len(EXAMPLES):
                return True
        except (httpx.HTTPError, ValueError):
            pass
        time.sleep(0.3)
    return False


def _feed(address: str, every: float, child: subprocess.Popen[bytes]) -> None:
    """Submit one task after the other for as long as the child runs."""
    with httpx.Client(base_url=address, timeout=10) as client:
        for order in orders():
            if child.poll() is not None:
                return
            with suppress(httpx.HTTPError):  # it is being started again
                client.post("/v1/tasks", json=order)
            time.sleep(every * random.uniform(0.5, 1.5))


def orders() -> Iterator[dict[str, Any]]:
    """Tasks without end: the inputs of the examples, with what makes some of them fail."""
    known = [(name, _template(name), _input(name)) for name in EXAMPLES]
    for number in itertools.count(1):
        name, (namespace, template), context = known[number % len(known)]
        yield {
            "namespace": namespace,
            "name": template,
            "context": varied(name, context, number),
            "tags": random.choice(TAGS),
            "priority": random.choice((0, 0, 0, 5)),
            "idempotency_key": f"feed {time.time_ns()} {number}",
        }


def varied(name: str, context: dict[str, Any], number: int) -> dict[str, Any]:
    """The input of an example; of payments some are refused by the bank, and some time out at first."""
    if name != "payment_processing":
        return context
    made = {**context, "payment_id": f"PMT-{3000 + number}"}
    fate = random.randrange(4)
    if fate == 0:
        made["method"] = {"type": "card", "number": "4000000000000000"}
    elif fate == 1:
        made["simulate"] = {"network_timeouts": 2}
    return made


def _template(name: str) -> tuple[str, str]:
    text = (ROOT / "workflows" / name / "workflow.yaml").read_text(encoding="utf-8")
    found = dict(line.split(":", 1) for line in text.splitlines() if line.startswith(("name:", "namespace")))
    namespace = found.get("namespace") or found["namespace_name"]
    return namespace.strip(), found["name"].strip()


def _input(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "workflows" / name / "input.json").read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
