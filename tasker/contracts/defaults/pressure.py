"""The defaults of what bounds work that waits: in queues, in buffers, at a consumer."""

from __future__ import annotations

CRITICAL_DEPTH = 5000
"""Ready steps of a namespace from which on new tasks without priority are refused."""

OVERFLOW_DEPTH = 10_000
"""Ready steps from which on tasks of positive priority are refused, too."""

COMPLETION_BUFFER = 1000
"""Results that wait to be stored before nothing more is claimed."""

BUFFER_WARNING_SHARE = 0.8
"""Fill level, as a share of a buffer's size, from which on it is warned of."""

VISIBILITY_TIMEOUT_SECONDS = 30
"""How long a received message stays hidden before it is delivered again."""
