"""The commands `tasker` and `tasker-ctl`, and `python -m tasker`: the way in, before anything is imported.

What Ctrl-C finds before this is Python's own: its start, `site`, and the few lines of the script that pip writes.
"""

import _signal as signal  # type: ignore[import-not-found]  # what `signal` wraps, without the time to import `enum`
import os

INTERRUPTED = 130
YOUNG = 2000
"""So many objects may be made before those that refer to each other in circles are looked for. Python's own 700 have it
look through what is imported a dozen times, a tenth of what starting costs."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Run the command line. Ctrl-C ends it with 130 and without a traceback, also while it is being imported."""
    former = _leave_at_once()
    try:
        _collect_rarely()
        from tasker.cli.main import main as command

        try:
            command(lambda: signal.signal(signal.SIGINT, former))
        finally:
            _leave_at_once()
    except KeyboardInterrupt:  # just before or just after what deals with it
        os._exit(INTERRUPTED)


def _collect_rarely() -> None:
    import gc

    young, *older = gc.get_threshold()
    if 0 < young < YOUNG:  # else somebody has chosen
        gc.set_threshold(YOUNG, *older)


def _leave_at_once() -> "Any":
    """From here on Ctrl-C ends the process at once, unless it is ignored, as in the background; what it did before."""
    former = signal.getsignal(signal.SIGINT)
    if former is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))
    return former


if __name__ == "__main__":
    main()
