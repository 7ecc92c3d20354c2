"""How long it takes after `kill -9` until what was lost moves again."""

from __future__ import annotations

import signal
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tasker.execution.settings import WorkerSettings
from tests.benchmarks.conditions import Conditions, Figure
from tests.benchmarks.processes import WORKFLOWS, Bench, bench, broker_of
from tests.support.waiting import until

NAMES = ("recovery-worker", "recovery-orchestrator")
SHORT_LEASE, DEFAULT_LEASE = 3.0, WorkerSettings().lease.lease_ms / 1000
OUTSIDE = "rabbitmq"
"""Where messages are not in the database."""
CASES = ("beside another", "started again", "none left")
RUNS = 3
TASKS, NAP_SECONDS = 60, 4.0
RUNNING = """select s.workflow_step_uuid, w.pid from tasker.workflow_steps s join tasker.workers w using (worker_uuid)
  where s.state = 'in_progress'"""
MOVED = """select l.workflow_step_uuid, extract(epoch from min(l.created_at) - %s)::float8
  from tasker.step_transition_log l where l.workflow_step_uuid = any (%s::uuid[]) and l.created_at > %s and {what}
  group by l.workflow_step_uuid"""


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """Seconds until the last of the lost steps moved."""
    if "recovery-worker" in names:
        yield _of_worker(conditions, "pgmq", SHORT_LEASE, tell)
        if not conditions.quick:
            yield _of_worker(conditions, "pgmq", DEFAULT_LEASE, tell)
        yield _of_worker(conditions, OUTSIDE, SHORT_LEASE, tell)
    if "recovery-orchestrator" in names:
        for case in CASES[:1] if conditions.size > 1 else CASES[:2] if conditions.quick else CASES:
            yield _of_orchestrator(conditions, "pgmq", case, tell)
        yield _of_orchestrator(conditions, OUTSIDE, CASES[0], tell)


def _of_worker(conditions: Conditions, backend: str, lease: float, tell: Callable[[str], None]) -> Figure:
    """Two workers, one is killed while it runs steps; until the other one runs them."""
    runs = 1 if conditions.quick or lease > SHORT_LEASE else RUNS
    times: list[float] = []
    name = f"worker_{backend}_{lease:.0f}"
    with broker_of(backend) as broker, bench(conditions, name, backend, broker) as fleet:
        for number in range(runs + 1):
            fleet.fleet.worker(f"worker{number}", str(WORKFLOWS / "naps"), lease=lease)
        for number in range(runs):
            tell(f"{backend}, worker killed, lease {lease:g} s: {number + 1} of {runs}")
            times += _kill_worker(conditions, fleet)
    return _figure(f"{backend}, worker, {lease:g} s", times, runs)


def _kill_worker(conditions: Conditions, bench: Bench) -> list[float]:
    tasks = bench.submit("naps", conditions.fewer(TASKS, 10), seconds=NAP_SECONDS)
    until(lambda: len(bench.rows(RUNNING)) >= len(tasks) // 2, "steps run")
    pids = [pid for _, pid in bench.rows(RUNNING)]
    victim = bench.fleet.name_of(max(pids, key=pids.count))
    pid = bench.fleet.processes[victim].pid
    bench.fleet.kill(victim)
    del bench.fleet.processes[victim]
    killed = bench.value("select clock_timestamp()")
    lost = [step for step, of in bench.rows(RUNNING) if of == pid]
    times = _moved(bench, killed, lost, "l.path like '%%>in_progress'")
    bench.finish(tasks)
    return times


def _of_orchestrator(conditions: Conditions, backend: str, case: str, tell: Callable[[str], None]) -> Figure:
    """It is frozen until results are parked, then killed; until these have moved on."""
    tell(f"{backend}, orchestrator killed, {case}")
    name = f"orchestrator_{backend}_{case.replace(' ', '_')}"
    with broker_of(backend) as broker, bench(conditions, name, backend, broker) as fleet:
        fleet.fleet.worker("worker", str(WORKFLOWS / "linear"), "--result-path", "queued", lease=DEFAULT_LEASE)
        for number in range(2 if case == "beside another" else 1):
            fleet.fleet.orchestrator(f"orchestrator{number}")
        return _figure(f"{backend}, orch., {case}", _kill_orchestrator(conditions, fleet, case), 1)


def _kill_orchestrator(conditions: Conditions, bench: Bench, case: str) -> list[float]:
    bench.finish(bench.submit("linear", conditions.fewer(TASKS, 5)))
    names = [name for name in bench.fleet.processes if name.startswith("orchestrator")]
    for name in names:
        bench.fleet.signal(name, signal.SIGSTOP)
    tasks = bench.submit("linear", conditions.fewer(TASKS * 5, 10))
    parked = "select workflow_step_uuid from tasker.workflow_steps where state = 'enqueued_for_orchestration'"
    until(lambda: len(bench.rows(parked)) >= len(tasks), "results are parked")
    lost, killed = [step for (step,) in bench.rows(parked)], bench.value("select clock_timestamp()")
    bench.fleet.kill(names[0])
    for name in names[1:]:
        bench.fleet.signal(name, signal.SIGCONT)
    if case == "started again":
        bench.fleet.restart(names[0])
    times = _moved(bench, killed, lost, "l.path like 'enqueued_for_orchestration>%%'")
    if case == "none left":
        bench.fleet.restart(names[0])
    bench.finish(tasks)
    return times


def _moved(bench: Bench, since: Any, steps: Sequence[Any], what: str) -> list[float]:
    """Seconds from the kill until each step moved."""
    query = MOVED.format(what=what)
    until(lambda: len(bench.rows(query, since, steps, since)) >= len(steps), "what was lost moves again")
    return [float(seconds) for _, seconds in bench.rows(query, since, steps, since)]


def _figure(name: str, times: Sequence[float], runs: int) -> Figure:
    more = {"first": min(times), "median": statistics.median(times), "steps": len(times), "runs": runs}
    return Figure(name, "s", max(times), more, "recovery")
