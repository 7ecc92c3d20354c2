"""Which settings a running process takes over: those of its ears, of its breakers, and of who is let in."""

from __future__ import annotations

from dataclasses import replace

from tasker.app.configured import Configured, configured
from tasker.settings.catalogue import Parameter, is_live
from tasker.settings.check import check
from tasker.settings.http import Auth
from tasker.settings.nested import nested
from tests.support.parameters import READ, changed, companions
from tests.support.tables import for_each


def live_part(found: Configured) -> tuple[object, ...]:
    let_in = [each.auth.replace(enabled=False, api_key_header="") for each in (found.http, found.worker_port)]
    worker = (found.worker.events, found.worker.execution.error_rules, found.worker.named_limits)
    return (found.breakers, *worker, found.orchestrator_events, *let_in)


def rest(found: Configured) -> Configured:
    default = Configured()
    worker = replace(
        found.worker,
        events=default.worker.events,
        execution=found.worker.execution.replace(error_rules=()),
        named_limits=default.worker.named_limits,
    )
    found = replace(
        found,
        http=found.http.replace(auth=_whether(found.http.auth)),
        database=found.database.replace(listen_url=""),
        worker_port=found.worker_port.replace(auth=_whether(found.worker_port.auth)),
    )
    return replace(found, breakers=default.breakers, orchestrator_events=default.orchestrator_events, worker=worker)


def _whether(auth: Auth) -> Auth:
    return Auth(enabled=auth.enabled, api_key_header=auth.api_key_header)


@for_each(READ)
def test_what_is_said_to_be_taken_over_is_all_that_a_setting_changes(parameter: Parameter) -> None:
    beside = check(nested(companions(parameter.path))).settings
    assert beside
    before = configured(beside)
    after = [configured(settings) for _, settings in changed(parameter)]
    if is_live(parameter.path):
        assert all(rest(each) == rest(before) for each in after)
    else:
        assert all(live_part(each) == live_part(before) for each in after)
