"""Which release of Tasker this is. The one place that says so: packaging, the command line and the database read it."""

from __future__ import annotations

__version__ = "0.1.0"
