"""Common keys of the tables `[secrets.NAME]` of the providers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

from tasker.errors import ConfigurationError

REFRESH = "refresh_seconds"
TIMEOUT, TIMEOUT_SECONDS = "timeout_seconds", 10.0
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


class ProviderSettings:
    """Table of a provider. References in it are read again at each access, so that they may change."""

    def __init__(self, provider: str, table: Mapping[str, Any], keys: str) -> None:
        self._provider, self._table = provider, table
        known = [*keys.split(), REFRESH, TIMEOUT]
        if unknown := sorted(set(table) - set(known)):
            raise ConfigurationError(
                f"[secrets.{provider}]: unknown key {unknown[0]!r}", hint=f"known keys: {', '.join(known)}"
            )
        self.timeout = self._number(TIMEOUT, TIMEOUT_SECONDS)
        self._refresh = self._number(REFRESH, 1.0) if REFRESH in table else None

    def text(self, key: str, default: str | None = None) -> str | None:
        """Return the text of a key, revealed if it is a secret; raise `ConfigurationError` for any other value."""
        value = self._table.get(key, default)
        value = value.reveal() if hasattr(value, "reveal") else value
        if value is not None and not (isinstance(value, str) and value):
            raise self.error(f"{key}: expected a text")
        return value

    def expires_at(self, now: datetime) -> datetime | None:
        """Return when a value that was read now is read again, None if only a refusal makes it so."""
        return None if self._refresh is None else now + timedelta(seconds=self._refresh)

    def error(self, message: str, hint: str | None = None) -> ConfigurationError:
        """Return an error that names the table."""
        return ConfigurationError(f"[secrets.{self._provider}]: {message}", hint=hint)

    def _number(self, key: str, default: float) -> float:
        value = self._table.get(key, default)
        try:  # a placeholder of the configuration is a text
            number = 0.0 if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = 0.0
        if not 0 < number < inf:
            raise self.error(f"{key}: expected a number above 0, got {value!r}")
        return number
