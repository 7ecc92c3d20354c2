"""Operations are declared once: services, clients and commands have the declared parameters and defaults."""

from __future__ import annotations

from datetime import UTC, datetime
from inspect import Parameter, getdoc, getmembers_static, signature
from typing import get_args

import pytest
from pydantic import TypeAdapter

from tasker.app.sync_app import SERVICES
from tasker.client import HttpClient, SyncHttpClient
from tasker.client.calls.operations import plain_value
from tasker.errors import UsageError
from tasker.operations.analytics import AnalyticsOperations
from tasker.operations.dead_letters import DeadLetterOperations, FailureSelection
from tasker.operations.fleet import FleetOperations
from tasker.operations.operation import REQUIRED, Operation
from tasker.operations.schedules import ScheduleOperations
from tasker.operations.tasks import ON_DUPLICATE, OnDuplicate, TaskOperations
from tasker.server.shapes.tasks import TaskRequest
from tasker.server.shapes.texts import Moment
from tasker.server.streams import seconds_of
from tasker.services.audit import AuditLog
from tasker.services.submission.submit import ON_DUPLICATE as SERVICE_CHOICES
from tasker.services.submission.submit import Submission
from tests.support.command_line import invoke

OPERATIONS = [member for _, member in getmembers_static(HttpClient) if isinstance(member, Operation)]
WITH_THE_LOG = {**SERVICES, "operator_log": AuditLog}
NOWHERE = "postgresql://nobody@nowhere.invalid/none"
OPTIONS = {
    "dlq list --limit": DeadLetterOperations.list_dead_letters,
    "dlq queue --limit": DeadLetterOperations.investigation_queue,
    "dlq staleness --limit": DeadLetterOperations.staleness,
    "dlq groups --limit": DeadLetterOperations.dead_letter_groups,
    "dlq replay --limit": DeadLetterOperations.begin_replay,
    "task refused --limit": TaskOperations.list_refused_messages,
    "actions --limit": FleetOperations.list_operator_actions,
    "analytics performance --hours": AnalyticsOperations.performance,
    "analytics bottlenecks --hours": AnalyticsOperations.bottlenecks,
    "analytics bottlenecks --limit": AnalyticsOperations.bottlenecks,
    "analytics bottlenecks --min-executions": AnalyticsOperations.bottlenecks,
    "analytics scaling --max-workers": AnalyticsOperations.scaling,
    "analytics scaling --clear-within-seconds": AnalyticsOperations.scaling,
    "schedule list --limit": ScheduleOperations.list_schedules,
    "schedule next --count": ScheduleOperations.list_upcoming_fires,
}
"""Options whose bounds and defaults are those of an operation's parameter."""


def service_defaults(operation: Operation[..., object]) -> dict[str, object]:
    """The defaults of the service's method; it reads all that an operation reads page by page."""
    service, method = operation.endpoint.service.split(".")
    parameters = signature(getattr(WITH_THE_LOG[service], method)).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not Parameter.empty}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_services_have_the_declared_defaults(operation: Operation[..., object]) -> None:
    declared = {each.name: each.default for each in operation.parameters if each.default is not REQUIRED}
    defaults = service_defaults(operation)

    both = declared.keys() & defaults.keys() - ({"limit"} if operation.name.endswith("_page") else set())
    assert {name: defaults[name] for name in both} == {name: declared[name] for name in both}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_operations_are_documented_and_both_clients_have_them(operation: Operation[..., object]) -> None:
    assert operation.description
    for client in (HttpClient("http://tasker"), SyncHttpClient.__new__(SyncHttpClient)):
        method = getattr(client, operation.name)
        assert signature(method) == operation.signature
        assert getdoc(method) == getdoc(operation.declared)


OF_PAGES = {"analytics.paces", "dead_letters.trend", "fleet.activity", "fleet.backlog", "fleet.in_flight"}
"""Series and sums for the charts of pages: their form follows the pages, and nothing is promised of it."""
OF_WORKERS = {"replays.advance", "replays.plan", "replays.skipped"}
"""Steps of a replay. `plan` is `begin` with `dry_run`; skipped tasks stay in the list of dead letters."""


def test_what_operators_read_is_an_operation_but_for_the_charts_of_pages() -> None:
    declared = {operation.endpoint.service for operation in OPERATIONS}
    services = {
        name: WITH_THE_LOG[name] for name in ("analytics", "dead_letters", "fleet", "pauses", "replays", "workers")
    }
    methods = {f"{name}.{method}" for name, service in services.items() for method in vars(service) if method[0] != "_"}
    assert methods - declared == OF_PAGES | OF_WORKERS | {"pauses.of_task", "workers.serving"}


def test_a_text_stands_for_its_parts_and_is_put_together_again() -> None:
    operation = ScheduleOperations.create_schedule
    published = operation.published({"schedule": "shop/orders/nightly", "keys": {"every": "1h"}})

    assert {**published} == {
        **{"namespace": "shop", "template": "orders", "name": "nightly", "schedule": {"every": "1h"}},
        **{"version": None, "overwrite": False, "actor": None},
    }
    assert operation.arguments(published)["schedule"] == "shop/orders/nightly"
    with pytest.raises(UsageError, match="'nightly' does not name a schedule"):
        operation.published({"schedule": "nightly", "keys": {}})


def test_a_group_stands_for_its_fields_and_is_put_together_again() -> None:
    operation = DeadLetterOperations.begin_replay
    group = FailureSelection(fingerprint="f", limit=3)
    published = operation.published({"group": group, "reason": "the provider is back", "dry_run": True})

    assert (published["fingerprint"], published["limit"], published["note"]) == ("f", 3, "the provider is back")
    assert published["reason"] is None
    assert operation.arguments(published) == {
        "group": group,
        "all": False,
        "rate": 10.0,
        "reason": "the provider is back",
        "actor": None,
        "dry_run": True,
    }


def test_a_list_of_tasks_has_as_many_rows_wherever_it_is_asked_for() -> None:
    assert TaskOperations.list_tasks.parameter("per_page").default == 50
    assert TaskOperations.list_task_summaries.parameter("limit").default == 50
    assert "default: 50; 1<=x<=10000" in " ".join(invoke("task", "list", "--help").output.split())


def test_a_wait_is_a_number_of_seconds_for_programs_and_a_text_for_requests() -> None:
    operation = TaskOperations.get_task_page

    assert operation.durations == ("wait",)
    assert plain_value(1.5, operation.parameter("wait")) == "1.500s"
    assert seconds_of("1.500s") == 1.5


def test_on_duplicate_values_are_published_in_one_place() -> None:
    assert (*ON_DUPLICATE,) == get_args(OnDuplicate) == SERVICE_CHOICES
    assert get_args(TaskRequest.model_fields["on_duplicate"].annotation) == (*ON_DUPLICATE.values(),)
    assert signature(HttpClient.create_task).parameters["reason"].default == Submission({}).reason == ""


def test_a_time_without_a_zone_is_in_utc() -> None:
    moment = TypeAdapter(Moment).validate_python

    assert moment("2026-01-31T12:00:00") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert moment("2026-01-31T12:00:00+01:00") == datetime(2026, 1, 31, 11, tzinfo=UTC)


@pytest.mark.parametrize("option", OPTIONS)
def test_options_have_the_declared_bounds_and_default(option: str) -> None:
    *command, flag = option.split()
    parameter = OPTIONS[option].parameter(flag.removeprefix("--").replace("-", "_"))
    least, most = parameter.param.at_least, parameter.param.at_most
    bounds = f"{parameter.param.above}<x<={most}" if least is None else f"{least}<=x<={most}"

    refused = invoke(*command, flag, f"{most}1", database=NOWHERE)
    assert (refused.exit_code, f"is not in the range {bounds}" in refused.output) == (2, True), refused.output
    assert f"[default: {parameter.default}; {bounds}]" in " ".join(invoke(*command, "--help").output.split())
