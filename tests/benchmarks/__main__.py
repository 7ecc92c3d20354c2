"""`python -m tests.benchmarks`."""

import signal
import sys

from tests.benchmarks.run import main

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that whatever was started is stopped
main()
