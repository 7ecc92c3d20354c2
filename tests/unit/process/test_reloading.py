"""A configuration that is read again: what is taken over, what waits for a restart, what changes nothing."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from tasker.app.configured import Configured
from tasker.errors import ConfigurationError, UsageError
from tasker.process.reloading import Reloading
from tasker.settings.installed_tables import settings_model

STARTED = Configured(settings=settings_model()(), backend_settings={"carrier": {"url": "a"}})


def test_a_changed_table_of_a_backend_without_a_model_needs_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tasker")
    read, applied = [replace(STARTED, backend_settings={"carrier": {"url": "b"}}), STARTED], list[Configured]()
    reload = Reloading(STARTED, lambda: read.pop(0), applied.append)
    reload()
    reload()

    assert caplog.messages == [
        "configuration_reloaded changed=nothing",
        "configuration_needs_restart changed=common.queues.carrier",
        "configuration_reloaded changed=nothing",
    ]
    assert applied[-1] is STARTED


def test_a_configuration_that_cannot_be_used_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def unreadable() -> Configured:
        raise ConfigurationError("no such file")

    def refuse(_: Configured) -> None:
        raise UsageError("no such certificate")

    Reloading(STARTED, unreadable, lambda _: None)()
    Reloading(STARTED, lambda: replace(STARTED, settings=None), refuse)()
    Reloading(STARTED, lambda: STARTED, refuse)()

    kept = "configuration_not_reloaded what was in force stays in force: "
    assert caplog.messages == [
        f"{kept}no such file",
        "configuration_not_reloaded this process was started without a configuration file",
        f"{kept}no such certificate",
    ]
