"""Release of Tasker and its distribution name.

The single source for packaging, the command line, hints and the database.
"""

from __future__ import annotations

__version__ = "0.1.0"

DISTRIBUTION = "tasker-engine"
"""Name of Tasker on PyPI; the name `tasker` belongs to another package there."""
