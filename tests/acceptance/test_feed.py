"""`make web`: one command, and there is a page on which something happens."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.repository import ROOT
from tests.support.servers.brokers import free_port
from tests.support.servers.plain_http import PLAIN
from tests.support.waiting import until


@pytest.mark.slow
def test_the_page_shows_tasks_that_run_until_it_is_interrupted(tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log"
    command = [sys.executable, "-m", "tools.feed", "--port", str(port), "--every", "0.05"]
    with log.open("w") as out:
        feed = subprocess.Popen(
            [*command, "--data-dir", str(tmp_path / "pg")], cwd=ROOT, stdout=out, stderr=out, start_new_session=True
        )
    root = f"http://127.0.0.1:{port}"

    def complete() -> bool:
        try:
            found = PLAIN.get(f"{root}/v1/tasks", params={"status": "complete"}).json()
        except httpx.HTTPError:
            return False
        return {"order_fulfillment", "diamond_decision_batch"} <= {task["name"] for task in found.get("tasks", ())}

    try:
        until(complete, "tasks are complete", show=log.read_text)
        assert f"the page: {root}/ui" in log.read_text()
        assert "order_fulfillment" in PLAIN.get(f"{root}/ui").text
    finally:
        feed.send_signal(signal.SIGINT)
        feed.wait(60)
    assert feed.returncode == 0
    with pytest.raises(httpx.HTTPError):
        PLAIN.get(f"{root}/live")
