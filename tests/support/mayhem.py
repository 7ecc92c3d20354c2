"""Mixed tasks on a fleet whose processes are killed at random moments of the work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.acceptance.workflow_cases import FOLDERS
from tests.support.fleet import Fleet
from tests.support.mixture import SLOW, Mixed, mixture, serving
from tests.support.oracle import Oracle
from tests.support.waiting import until

LIMIT = 600.0
KINDS = ("worker", "orchestrator", "dev", "submitter")


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

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)
        self.tasks: list[Mixed] = mixture(self.count, seconds=self.seconds, seed=self.seed)

    def start(self, path: str, *, workers: int, kinds: tuple[str, ...] = KINDS) -> None:
        """Start processes of these kinds; the submitter begins with the work."""
        for number in range(workers):
            self.fleet.worker(f"worker{number}", *serving(), "--result-path", path, "--concurrency", "10")
        for number in range(2 if "orchestrator" in kinds else 0):
            self.fleet.orchestrator(f"orchestrator{number}")
        if "dev" in kinds:
            self.fleet.dev("dev", *map(str, [*FOLDERS, SLOW]), "--concurrency", "5")
        command = [self.database_url, self.backend, str(self.count), str(self.seconds), str(self.seed)]
        self.fleet.program("submitter", "-m", "tests.support.submitting", *command)

    def kill(self, kills: int, disturb: Callable[[int], None] = lambda number: None) -> None:
        """Kill that many processes, each kind in turn, and start them again; `disturb` does more harm each time."""
        moments = sorted(self.chance.sample(range(1, self.count * 3 // 4), kills))
        for number, moment in enumerate(moments):
            self._wait_until(moment)
            self._strike(number)
            disturb(number)

    def end(self, limit: float = 240.0) -> None:
        """Everything is submitted and every task is final."""
        until(self._submitted, "everything is submitted", limit=limit)
        until(self._finished, f"{self.count} tasks are final", limit=limit, show=self.oracle.open_steps)

    def told(self) -> str:
        """What was done and what came of it."""
        lost, repairs = self.oracle.failures("worker_lost"), dict(+self.oracle.repairs())
        done = (
            f"seed {self.seed}, {self.backend}: {self.count} tasks, killed {dict(self.killed)}, revived {self.revived}"
        )
        return f"{done}, lost attempts {lost}, refused results {self.oracle.refused()}, repairs {repairs}"

    def _strike(self, number: int) -> None:
        kinds = sorted({name.rstrip("0123456789") for name in self.fleet.processes})
        kind = kinds[number % len(kinds)]
        name = self.chance.choice(sorted(name for name in self.fleet.processes if name.startswith(kind)))
        if self.fleet.processes[name].poll() is None:
            self.fleet.kill(name)
            self.killed[kind] += 1
            self.fleet.restart(name)

    def _wait_until(self, moment: int) -> None:
        until(lambda: self._revived() and self.oracle.finished() >= moment, f"{moment} tasks are final", limit=LIMIT)

    def _submitted(self) -> bool:
        return self._revived() and self.fleet.ended("submitter")

    def _finished(self) -> bool:
        return self._revived() and self.oracle.finished() >= self.count

    def _revived(self) -> bool:
        for name, process in self.fleet.processes.items():
            if process.poll() and self.supervised:
                self.revived += 1
                self.fleet.restart(name)
            assert not process.poll() or self.supervised, self.fleet.log(name)
        return True
