"""Which settings a running process takes over: those of its ears and of its breakers, and no other (B-9)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tasker.app.configured import Configured, configured
from tasker.settings.catalogue import Parameter
from tasker.settings.installed import settings_model
from tasker.settings.live import is_live
from tests.support.parameters import READ, changed, path_of


def live_part(found: Configured) -> tuple[object, ...]:
    return (found.breakers, found.worker.events, found.orchestrator_events)


def rest(found: Configured) -> Configured:
    default = Configured()
    worker = replace(found.worker, events=default.worker.events)
    return replace(found, breakers=default.breakers, orchestrator_events=default.orchestrator_events, worker=worker)


@pytest.mark.parametrize("parameter", READ, ids=path_of)
def test_what_is_said_to_be_taken_over_is_all_that_a_setting_changes(parameter: Parameter) -> None:
    before = configured(settings_model()())
    after = [configured(settings) for _, settings in changed(parameter)]
    if is_live(parameter.path):
        assert all(rest(each) == rest(before) for each in after)
    else:
        assert all(live_part(each) == live_part(before) for each in after)
