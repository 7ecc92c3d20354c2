"""Mixed tasks on a fleet whose processes are killed at random moments of the work."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.acceptance.examples.workflow_cases import WITH_HANDLERS
from tests.support.fleets.fleet import Fleet, children_of, is_gone
from tests.support.fleets.mixture import SLOW, Mixed, mixture, serving, slow_tasks
from tests.support.fleets.oracle import Oracle
from tests.support.waiting import until

LIMIT = 600.0
KINDS = ("submitter", "worker", "orchestrator", "dev", "child")
"""In the order in which they are killed. A child is a worker that `dev` or `worker --processes` has started."""
WITHOUT_CHILDREN = ("submitter", "worker", "orchestrator")
SLOTS = {"worker": 10, "dev": 5, "child": 5, "orchestrator": 20, "submitter": 1}
"""How many steps, results or tasks a process has in hand at a time; an orchestrator those of the workers."""
HOLDS = 4
"""Messages for each of them: the one that it took, and those of the steps that become ready (most often one or two)."""


@dataclass
class Mayhem:
    """`count` tasks whose slow steps take `seconds`, on `workers` workers, two orchestrators and `tasker dev`.

    A kill happens when the work has come so far as the seed says: kills are spread over the first three quarters of it,
    however quick the machine is.
    """

    fleet: Fleet
    oracle: Oracle
    database_url: str
    backend: str
    count: int
    seconds: float
    seed: int
    supervised: bool = False
    """Processes that end by themselves, because a server is away, are started again."""
    killed: Counter[str] = field(default_factory=Counter)
    revived: int = 0
    disturbed: int = 0
    """How often a server went away, under every process."""
    frozen: int = 0
    """How many workers were frozen past their lease: what they held then is as good as lost."""
    path: str = ""
    kinds: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)
        self.tasks: list[Mixed] = mixture(self.count, seconds=self.seconds, seed=self.seed)

    def start(self, path: str, *, workers: int, kinds: Sequence[str] = KINDS) -> None:
        """Start processes of these kinds; the submitter begins with the work."""
        self.path, self.kinds = path, kinds
        options = (*serving(), "--result-path", path, "--concurrency")
        for number in range(workers):
            self.fleet.worker(f"worker{number}", *options, str(SLOTS["worker"]))
        if "child" in kinds:
            self.fleet.worker(f"worker{workers}", *options, str(SLOTS["child"]), "--processes", "2")
        for number in range(2 if "orchestrator" in kinds else 0):
            self.fleet.orchestrator(f"orchestrator{number}")
        if "dev" in kinds:
            self.fleet.dev("dev", *map(str, [*WITH_HANDLERS, SLOW]), "--concurrency", str(SLOTS["dev"]))
        command = [self.database_url, self.backend, str(self.count), str(self.seconds), str(self.seed)]
        self.fleet.program("submitter", "-m", "tests.support.fleets.submitting", *command)

    def more(self) -> None:
        """Submit slow tasks, half as many as there are: other ones than before."""
        seed, before = self.seed + self.count, self.oracle.created()
        further = slow_tasks(self.count // 2, seconds=self.seconds, seed=seed)
        command = [self.database_url, self.backend, str(len(further)), str(self.seconds), str(seed), "--slow"]
        self.fleet.program(f"submitter {seed}", "-m", "tests.support.fleets.submitting", *command)
        until(lambda: self.oracle.created() > before, "there is more to do")
        self.tasks, self.count = [*self.tasks, *further], self.count + len(further)

    def kill(self, kills: int, disturb: Callable[[int], None] | None = None) -> None:
        """Kill that many processes, each kind in turn, and start them again; `disturb` does more harm each time."""
        moments = sorted(self.chance.sample(range(1, self.count * 3 // 4), kills))
        for number, moment in enumerate(moments):
            self._wait_until(moment, self.oracle.created if number == 0 else self.oracle.finished)
            self._strike(number)
            if disturb is not None:
                disturb(number)
                self.disturbed += 1
        assert sum(self.killed.values()) == kills
        assert kills < len(self.kinds) or {*self.killed} == {*self.kinds}, self.killed

    def end(self, limit: float = 240.0) -> None:
        """Everything is submitted and every task is final."""
        until(self._submitted, "everything is submitted", limit=limit)
        until(self._finished, f"{self.count} tasks are final", limit=limit, show=self.oracle.open_steps)

    def explained(self) -> dict[str, int]:
        """The most repairs of each kind that the faults, kills and outages of this run explain."""
        faults = self.fleet.faults()
        missing = sum(count for (fault, _), count in faults.items() if fault in ("drop", "delay"))
        harmed = self.killed + Counter(worker=self.frozen)
        held = HOLDS * sum(SLOTS[kind] * number for kind, number in harmed.items())
        held += HOLDS * self.disturbed * sum(SLOTS[kind] * 2 for kind in self.kinds)
        outside = bool(faults) or self.backend != "pgmq"
        return {
            "hint_lost": missing + held if outside else 0,
            "result_message_lost": missing + held if self.path == "queued" else 0,
        }

    def told(self) -> str:
        """What was done and what came of it."""
        lost, repairs = self.oracle.failures("worker_lost"), dict(+self.oracle.repairs())
        faults = {fault: sum(self.fleet.faults(fault).values()) for fault in ("drop", "dup", "delay")}
        done = f"seed {self.seed}, {self.backend}, {self.path}: {self.count} tasks, killed {dict(self.killed)}"
        done += f", frozen {self.frozen}, servers away {self.disturbed}, revived {self.revived}"
        done += f", faults {dict(+Counter(faults))}"
        came = f"lost attempts {lost}, refused results {self.oracle.refused()}, repairs {repairs}"
        return f"{done}: {came}, of at most {self.explained()}"

    def _strike(self, number: int) -> None:
        """Kill one of the kind whose turn it is; of the next kind when the submitter has done its work."""
        kind = self.kinds[number % len(self.kinds)]
        living = self._awaited(kind)
        if not living:
            return self._strike(number + 1)
        self._kill(kind, self.chance.choice(self._busy(living)))
        self.killed[kind] += 1

    def _awaited(self, kind: str) -> list[str]:
        """Those of the kind that live, once there is one; none when it is the submitter's turn and it has ended."""
        living: list[str] = []

        def seen() -> bool:
            living[:] = self._living(kind)
            return self._revived() and (kind == "submitter" or bool(living))

        until(seen, f"a {kind} lives")
        return living

    def _living(self, kind: str) -> list[str]:
        """The names of the processes of that kind; of children the numbers."""
        if kind == "child":
            own = {process.pid for process in self.fleet.processes.values()}
            return [str(pid) for pid in self.oracle.pids() if pid not in own and not is_gone(pid)]
        names = sorted(name for name in self.fleet.processes if name.startswith(kind))
        return [name for name in names if self.fleet.processes[name].poll() is None]

    def _busy(self, living: list[str]) -> list[str]:
        """Those in which steps run, or in whose children they do, so that a kill costs something; else all."""
        busy = {*self.oracle.busy_pids()}
        pids = {name: int(name) if name.isdigit() else self.fleet.processes[name].pid for name in living}
        return [name for name, pid in pids.items() if busy & {pid, *children_of(pid)}] or living

    def _kill(self, kind: str, name: str) -> None:
        if kind == "child":
            os.kill(int(name), signal.SIGKILL)
            until(lambda: is_gone(int(name)), "the child is gone")
        else:
            self.fleet.kill(name)
            self.fleet.restart(name)

    def _wait_until(self, moment: int, count: Callable[[], int]) -> None:
        until(lambda: self._revived() and count() >= moment, f"{moment} tasks are there", limit=LIMIT)

    def _submitted(self) -> bool:
        return self._revived() and self.fleet.ended("submitter")

    def _finished(self) -> bool:
        return self._revived() and self.oracle.finished() >= max(self.count, self.oracle.created())  # with children

    def _revived(self) -> bool:
        for name, process in self.fleet.processes.items():
            if process.poll() and self.supervised:
                self.revived += 1
                self.fleet.restart(name)
            assert not process.poll() or self.supervised, self.fleet.log(name)
        return True
