"""A worker and an orchestrator of the command line answer on ports of their own, and stop with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.acceptance.fleet.test_loaded_modules import HANDLERS, TEMPLATE
from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.servers.plain_http import PLAIN

pytestmark = pytest.mark.slow


def test_processes_say_on_their_ports_that_they_are_ready(database_url: str, tmp_path: Path) -> None:
    workflow = write_workflow(tmp_path / "loaded", TEMPLATE, HANDLERS)
    fleet = Fleet(database_url, tmp_path)
    try:
        fleet.worker("worker", str(workflow), "--port", "0")
        fleet.orchestrator("orchestrator", "--port", "0")
        for kind in ("worker", "orchestrator"):
            found = re.search(r"answers on (http://\S+)", fleet.log(kind))
            assert found
            ready = PLAIN.get(f"{found[1]}/ready")
            assert (ready.status_code, ready.json()["system_info"]["worker_type"]) == (200, kind)
            assert f'kind="{kind}"' in PLAIN.get(f"{found[1]}/metrics").text
    finally:
        fleet.stop()
    assert [process.returncode for process in fleet.processes.values()] == [0, 0]
