"""Real processes on one database: started, killed, frozen and stopped by tests."""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
URL_VARIABLES = {"rabbitmq": "RABBITMQ_URL", "redis": "TASKER_REDIS_URL", "nats": "NATS_URL"}
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
OUTLIVED = 20.0
"""Seconds that a process has for its graceful end before it is killed."""


class Fleet:
    """Processes by name. Leave it with `stop`, which ends whatever still runs.

    `broker` is the URL of the messaging backend, `environment` is added to that of every process. `chaos` is what goes
    wrong with messages: by `seed`, and differently in each process.
    """

    def __init__(
        self,
        database_url: str,
        folder: Path,
        *,
        backend: str = "pgmq",
        broker: str = "",
        chaos: str = "",
        seed: int = 1,
        environment: Mapping[str, str] = {},
    ) -> None:
        self._folder = folder
        self._common = ["--database-url", database_url, "--backend", backend]
        self.environment = {**os.environ, **environment}
        self._chaos, self._seeds = chaos, itertools.count(1000 * seed)
        if broker:
            self.environment[URL_VARIABLES[backend]] = broker
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, tuple[list[str], Mapping[str, str]]] = {}

    def worker(self, name: str, *arguments: str, lease: float = 3, environment: Mapping[str, str] = {}) -> None:
        """Start a worker; its lease is short, so that its loss is seen soon."""
        self._start(name, ["worker", "--no-config", *arguments, "--lease", str(lease)], environment)

    def orchestrator(self, name: str, *arguments: str, environment: Mapping[str, str] = {}) -> None:
        """Start an orchestrator."""
        self._start(name, ["orchestrator", "--no-config", *arguments], environment)

    def dev(self, name: str, *arguments: str) -> None:
        """Start `tasker dev`, which has a worker as its child."""
        self._start(name, ["dev", *arguments], {})

    def program(self, name: str, *command: str) -> None:
        """Start a Python program of ours."""
        self._commands[name] = [sys.executable, *command], {}
        self._launch(name)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a process of ours."""
        os.kill(self.processes[name].pid, number)

    def kill(self, name: str) -> None:
        """`kill -9`, and wait until it is gone."""
        self.signal(name, signal.SIGKILL)
        self.processes[name].wait()

    def name_of(self, pid: int) -> str:
        """The name under which that process was started."""
        return next(name for name, process in self.processes.items() if process.pid == pid)

    def restart(self, name: str) -> None:
        """Start the same command again."""
        self._launch(name)

    def ended(self, name: str) -> bool:
        """True when the process has ended by itself, and well; fails when it has ended otherwise."""
        code = self.processes[name].poll()
        assert code in (None, 0), self.log(name)
        return code == 0

    def stop(self) -> None:
        """End everything gracefully, at last by force."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(OUTLIVED)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def log(self, name: str) -> str:
        """What the process has printed."""
        return (self._folder / f"{name}.log").read_text()

    def faults(self, fault: str = r"\w+") -> Counter[tuple[str, str]]:
        """What TASKER_CHAOS has done so far by (fault, queue), in processes that were killed as well."""
        logs = "".join(log.read_text() for log in self._folder.glob("*.log"))
        return Counter(re.findall(rf"injected_fault ({fault}) (\S+)", logs))

    def _start(self, name: str, arguments: list[str], environment: Mapping[str, str]) -> None:
        self._commands[name] = [sys.executable, "-m", "tasker", *arguments, *self._common], environment
        self._launch(name)
        until(lambda: self._is_ready(name), f"{name} is ready", show=lambda: self.log(name))

    def _launch(self, name: str) -> None:
        command, environment = self._commands[name]
        chaos = {"TASKER_CHAOS": f"{self._chaos},seed:{next(self._seeds)}"} if self._chaos else {}
        with (self._folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**self.environment, **environment, **chaos},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=_end_with_the_tests,
            )

    def _is_ready(self, name: str) -> bool:
        assert self.processes[name].poll() is None, self.log(name)
        text = self.log(name)
        return re.search(r"(worker|orchestrator) [0-9a-f]{8}-", text) is not None


def _end_with_the_tests() -> None:
    """On Linux: be killed when the tests are, who then cannot stop what they have started."""
    if _LIBC is not None:
        _LIBC.prctl(1, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    """The processes that it has started, where that can be known."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def is_gone(pid: int) -> bool:
    """True for a process that has ended, whether or not its parent has taken notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def pause(seconds: float) -> None:
    """Let processes run for a moment: what they do meanwhile is checked by the oracle, not by this time."""
    time.sleep(seconds)
