"""The commands `tasker` and `tasker-ctl`, and `python -m tasker`: the way in, before anything is imported."""

from __future__ import annotations

import os
import signal
from typing import Any

INTERRUPTED = 130


def main() -> None:
    """Run the command line. Ctrl-C ends it with 130 and without a traceback, also while it is being imported."""
    former = _leave_at_once()
    from tasker.cli.main import main as command

    signal.signal(signal.SIGINT, former)
    try:
        command()
    finally:
        _leave_at_once()


def _leave_at_once() -> Any:
    """From here on Ctrl-C ends the process at once, unless it is ignored, as in the background; what it did before."""
    former = signal.getsignal(signal.SIGINT)
    if former is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))
    return former


if __name__ == "__main__":
    main()
