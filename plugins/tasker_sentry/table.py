"""Settings of the plugin in the configuration."""

from __future__ import annotations

from tasker.settings.table import Table, flag, text, whole


class SentryTable(Table):
    """The plugin `sentry`: failures of steps and dead tasks as events of Sentry."""

    dsn: str = text("", "Where events are sent, as the project's page shows it.", shortest=0, variable="SENTRY_DSN")
    environment: str = text("production", "The environment that events name.", variable="SENTRY_ENVIRONMENT")
    retried: bool = flag(False, "Send failures that are tried again, too, as warnings.")
    messages: bool = flag(
        False,
        "Send what the handler raised, word for word.",
        advice="A message may hold what a task was given, sensitive values too. Without it an event names the type of "
        "the error, and where it happened; the message is in Tasker.",
    )
    events_per_minute: int = whole(
        60, 1, 10_000, "Events that a process sends in a minute at most; the rest is left out."
    )
