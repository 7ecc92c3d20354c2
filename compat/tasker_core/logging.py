"""Log lines of handlers, with fields."""

from __future__ import annotations

from tasker.logging import log_debug, log_error, log_info, log_trace, log_warn

__all__ = ["log_debug", "log_error", "log_info", "log_trace", "log_warn"]
