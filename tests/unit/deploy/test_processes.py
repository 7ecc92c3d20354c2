"""Every file of `deploy/` starts the same four processes, asks them where they answer, and gives them time to end."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from tasker.process.connections import ORCHESTRATOR, WORKER
from tasker.process.stopping import grace_of
from tasker.settings.catalogue import by_path
from tests.support.deployed import KINDS, Deployed, of_compose, of_kubernetes, of_systemd, parse
from tests.support.repository import ROOT

FILES = {"compose": lambda: of_compose().values(), "systemd": of_systemd, "kubernetes": of_kubernetes}
LONGEST_STOP_SECONDS = int(by_path()["orchestration.shutdown_timeout_ms"].high or 0) / 1000


@cache
def deployed(files: str) -> tuple[Deployed, ...]:
    """Read when a test asks: some of them cost a program."""
    return tuple(FILES[files]())


@pytest.fixture(params=product(FILES, KINDS), ids="-".join)
def process(request: pytest.FixtureRequest) -> Deployed:
    """Each process in each kind of files."""
    files, kind = request.param
    (found,) = [each for each in deployed(files) if each.kind == kind]
    return found


def test_a_command_exists_with_its_options_and_is_the_same_everywhere(process: Deployed) -> None:
    parse(process.words)
    (same,) = [each for each in of_compose().values() if each.kind == process.kind]
    assert process.words == same.words, "compose.yaml says it differently"


@pytest.mark.parametrize("files", FILES)
def test_each_kind_of_process_is_there(files: str) -> None:
    assert sorted(process.kind for process in deployed(files)) == sorted(KINDS)


def test_it_has_longer_to_end_than_it_gives_itself_and_a_worker_the_most_there_is(process: Deployed) -> None:
    if process.kind == "db":
        return  # one transaction: it may end at any time
    assert process.grace_seconds is not None
    assert process.grace_seconds > process.shutdown_seconds
    if process.kind == "worker":
        assert process.shutdown_seconds == LONGEST_STOP_SECONDS


def test_the_guide_says_how_much_of_it_is_for_steps_that_run() -> None:
    page = (ROOT / "docs" / "deploying.md").read_text("utf-8")
    running = grace_of(LONGEST_STOP_SECONDS)
    left = LONGEST_STOP_SECONDS - running
    assert f"{running:g} are for running steps and the last {left:g} for the release of those" in " ".join(page.split())


@pytest.mark.parametrize("files", ["compose", "kubernetes"])
def test_probes_ask_where_the_process_answers(files: str) -> None:
    probed = [each for each in deployed(files) if each.probes]
    assert {each.kind for each in probed} == {*KINDS} - {"db"}
    for process in probed:
        assert {port for port, _ in process.probes} == {process.port}
        assert {path for _, path in process.probes} <= {"/live", "/ready"}


def test_the_guide_s_sum_of_connections_is_that_of_the_code() -> None:
    page = (ROOT / "docs" / "deploying.md").read_text("utf-8")
    worker, orchestrator = len(WORKER) + 1, len(ORCHESTRATOR) + 1  # one more for messages
    assert f"orchestrators * {orchestrator} + workers * {worker} +" in page
    assert f"3 orchestrators and 10 workers with `pgmq` are {3 * orchestrator + 10 * worker} connections" in page
