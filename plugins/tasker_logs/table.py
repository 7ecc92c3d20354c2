"""Settings of the plugin in the configuration."""

from __future__ import annotations

from tasker.settings.table import Table, flag, text


class LogsTable(Table):
    """The journal of the plugin `logs`: a line of JSON for each event of a process."""

    path: str = text(
        "tasker-journal.jsonl",
        "The file that lines are added to; several processes may share it.",
        variable="TASKER_LOGS_PATH",
        advice="It may be moved away at any time, as programs that rotate logs do: within a second a new one is begun.",
    )
    starts: bool = flag(
        False, "Write a line for each task that this process creates and each attempt that begins, too."
    )
