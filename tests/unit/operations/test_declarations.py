"""Operations are declared once: services, clients and commands have the declared parameters and defaults."""

from __future__ import annotations

from inspect import Parameter, getdoc, getmembers_static, signature

import pytest

from tasker.app.sync_app import SERVICES
from tasker.client import HttpClient, SyncHttpClient
from tasker.operations.dead_letters import DeadLetterOperations, FailureSelection
from tasker.operations.operation import REQUIRED, Operation
from tests.support.command_line import invoke

OPERATIONS = [member for _, member in getmembers_static(HttpClient) if isinstance(member, Operation)]
NOWHERE = "postgresql://nobody@nowhere.invalid/none"
COMMANDS = {
    "dlq list": DeadLetterOperations.list_dead_letters,
    "dlq queue": DeadLetterOperations.investigation_queue,
    "dlq staleness": DeadLetterOperations.staleness,
    "dlq groups": DeadLetterOperations.dead_letter_groups,
    "dlq replay": DeadLetterOperations.begin_replay,
}
"""Commands whose numbers are those of an operation."""


def service_defaults(operation: Operation[..., object]) -> dict[str, object]:
    """The defaults of the service's method."""
    service, method = operation.endpoint.service.split(".")
    parameters = signature(getattr(SERVICES[service], method)).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not Parameter.empty}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_services_have_the_declared_defaults(operation: Operation[..., object]) -> None:
    declared = {each.name: each.default for each in operation.parameters if each.default is not REQUIRED}
    defaults = service_defaults(operation)

    both = declared.keys() & defaults.keys()
    assert {name: defaults[name] for name in both} == {name: declared[name] for name in both}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_operations_are_documented_and_both_clients_have_them(operation: Operation[..., object]) -> None:
    assert operation.description
    for client in (HttpClient("http://tasker"), SyncHttpClient.__new__(SyncHttpClient)):
        method = getattr(client, operation.name)
        assert signature(method) == operation.signature
        assert getdoc(method) == getdoc(operation.declared)


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


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_have_the_declared_limit(command: str) -> None:
    limit = COMMANDS[command].parameter("limit")
    most = limit.param.at_most

    refused = invoke(*command.split(), "--limit", f"{most}1", database=NOWHERE)
    assert (refused.exit_code, f"is not in the range 1<=x<={most}" in refused.output) == (2, True), refused.output
    assert f"[default: {limit.default}; 1<=x<={most}]" in " ".join(invoke(*command.split(), "--help").output.split())
