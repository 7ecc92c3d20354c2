"""`python -m tasker` is the command `tasker`."""

from __future__ import annotations

from tasker.cli.main import main

main()
