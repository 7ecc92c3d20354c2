"""Which release of Tasker this is, and what it is installed as.

The one place that says so: packaging, the command line, hints and the database read it.
"""

from __future__ import annotations

__version__ = "0.1.0"

DISTRIBUTION = "tasker-engine"
"""What `pip` knows Tasker as: the name `tasker` belongs to another package there."""
