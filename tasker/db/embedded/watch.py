"""Script that stops the server when no process uses it any more; runs outside the process that started it.

    python -I -S watch.py USERS_LOCK PID_FILE PID LINGER_SECONDS

The operating system releases the users' locks however a process ends, so a killed process counts as gone. The script
uses only the standard library, and little of it, because it lives as long as the server.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time

POLL_SECONDS = 0.01
LONGEST_SHUTDOWN_SECONDS = 60.0


def postmaster_pid(pid_file: str) -> int | None:
    """Return the process id in the server's pid file."""
    try:
        with open(pid_file) as file:
            return int(file.readline())
    except (FileNotFoundError, ValueError):
        return None


def is_running(pid: int) -> bool:
    """Return True for a live process; a zombie counts as ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        pass  # ended, or a system without /proc
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def stop_postmaster(pid_file: str, pid: int) -> None:
    """Stop that server, and no other, and wait until it is down (fast shutdown). Hold the users' lock meanwhile."""
    deadline = time.monotonic() + LONGEST_SHUTDOWN_SECONDS
    if postmaster_pid(pid_file) != pid or not is_running(pid):
        return
    os.kill(pid, signal.SIGINT)
    while postmaster_pid(pid_file) == pid and is_running(pid) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def watch(users_lock: str, pid_file: str, pid: int, linger_seconds: float) -> None:
    """Wait until no process has used the server for `linger_seconds`, then stop it.

    A server that was killed leaves its pid file behind; then there is nothing to wait for.
    """
    with open(users_lock) as lock:
        while postmaster_pid(pid_file) == pid and is_running(pid):
            fcntl.flock(lock, fcntl.LOCK_EX)
            fcntl.flock(lock, fcntl.LOCK_UN)
            if postmaster_pid(pid_file) != pid:
                return  # the last user has stopped it
            time.sleep(linger_seconds)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            stop_postmaster(pid_file, pid)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    watch(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
