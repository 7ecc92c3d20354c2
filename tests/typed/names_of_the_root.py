"""A type checker refuses a name that the root package does not have, where Python would find it out when it runs.

Never run, as `app_options`.
"""

from __future__ import annotations

from tasker import App, LogContext  # type: ignore[attr-defined]

made = [App, LogContext]
