"""Real processes on one database: started, killed, frozen and stopped by tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.waiting import until

ROOT = Path(__file__).parents[2]


class Fleet:
    """Worker and orchestrator processes. Leave it with `stop`, which ends whatever still runs."""

    def __init__(self, database_url: str, folder: Path, *, chaos: str = "", backend: Sequence[str] = ()) -> None:
        self._folder = folder
        self._common = ["--no-config", "--database-url", database_url, *backend]
        self._environment = {**os.environ, **({"TASKER_CHAOS": chaos} if chaos else {})}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}

    def worker(self, name: str, *arguments: str) -> None:
        """Start a worker; its lease is short, so that its loss is seen soon."""
        self._start(name, ["worker", *arguments, "--lease", "3"])

    def orchestrator(self, name: str) -> None:
        """Start an orchestrator."""
        self._start(name, ["orchestrator"])

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

    def stop(self) -> None:
        """End everything gracefully, at last by force."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def log(self, name: str) -> str:
        """What the process has printed."""
        return (self._folder / f"{name}.log").read_text()

    def _start(self, name: str, arguments: list[str]) -> None:
        self._commands[name] = [sys.executable, "-m", "tasker", *arguments, *self._common]
        self._launch(name)
        until(lambda: self._is_ready(name), f"{name} is ready", show=lambda: self.log(name))

    def _launch(self, name: str) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                self._commands[name], cwd=ROOT, env=self._environment, stdout=log, stderr=subprocess.STDOUT
            )

    def _is_ready(self, name: str) -> bool:
        assert self.processes[name].poll() is None, self.log(name)
        text = self.log(name)
        return "worker " in text or "orchestrator " in text


def pause(seconds: float) -> None:
    """Let processes run for a moment: what they do meanwhile is checked by the oracle, not by this time."""
    time.sleep(seconds)
