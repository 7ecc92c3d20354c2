"""Entry point of the commands `tasker`, `tasker-ctl` and `python -m tasker`; runs before anything else is imported.

Before this module, Ctrl-C can only interrupt Python's own start, `site`, and the few lines of the script that pip
installs.
"""

import _signal as signal  # type: ignore[import-not-found]  # the C module behind `signal`, which would import `enum`
import os

INTERRUPTED = 130
YOUNG = 2000
"""Number of allocated container objects after which the garbage collector runs.

With Python's default of 700 it would scan the imported modules a dozen times, a tenth of the start time.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Run the command line. Ctrl-C ends it with exit code 130 and without a traceback, also during imports."""
    former = _leave_at_once()
    try:
        _collect_rarely()
        from tasker.cli.main import main as command

        try:
            command(lambda: signal.signal(signal.SIGINT, former))
        finally:
            _leave_at_once()
    except KeyboardInterrupt:  # Ctrl-C just before or just after the command line's own handler was active
        os._exit(INTERRUPTED)


def _collect_rarely() -> None:
    import gc

    young, *older = gc.get_threshold()
    if 0 < young < YOUNG:  # otherwise the threshold was set deliberately
        gc.set_threshold(YOUNG, *older)


def _leave_at_once() -> "Any":
    """Make Ctrl-C end the process at once unless SIGINT is ignored (as in background jobs); return the old handler."""
    former = signal.getsignal(signal.SIGINT)
    if former is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))
    return former


if __name__ == "__main__":
    main()
