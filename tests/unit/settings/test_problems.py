"""What is said about a configuration that is wrong, and what is hidden."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.redaction import PATTERNS, REDACTED, redacted, without_password
from tasker.settings import check as checking
from tasker.settings.check import SettingProblem, render
from tasker.settings.nested import nested
from tasker.settings.sources import Substitution

check = partial(checking.check, reserved={})  # what is reserved has its form already


def problems_of(values: dict[str, Any]) -> dict[str, SettingProblem]:
    return {problem.path: problem for problem in check(nested(values)).problems}


def test_a_problem_has_four_lines() -> None:
    (problem,) = check(nested({"common.database.pool.max_connections": 5000})).problems
    assert str(problem) == (
        "Validation Error: common.database.pool.max_connections\n"
        "Value: 5000\n"
        "Issue: Exceeds maximum allowed value (1000)\n"
        "Fix: Reduce to 1000 or less"
    )


def test_an_address_without_a_port_number_is_explained() -> None:
    (problem,) = check(nested({"orchestration.web.bind_address": "invalid:port"})).problems
    assert str(problem) == (
        "Validation Error: orchestration.web.bind_address\n"
        'Value: "invalid:port"\n'
        "Issue: Invalid IP:port format\n"
        'Fix: Use format like "0.0.0.0:8080" or "127.0.0.1:3000"'
    )


@pytest.mark.parametrize("address", ["127.0.0.1:3000", "[::1]:8080", "worker-1.internal:80"])
def test_addresses_with_a_host_and_a_port_are_accepted(address: str) -> None:
    assert not check(nested({"worker.web.bind_address": address})).problems


@pytest.mark.parametrize("address", ["8080", ":8080", "host:", "host:99999", "host:80:80", "http://host:80"])
def test_other_addresses_are_refused(address: str) -> None:
    assert check(nested({"worker.web.bind_address": address})).problems


def test_all_problems_are_found_at_once_each_with_its_place() -> None:
    values = nested(
        {
            "common.database.pool.max_connections": 5000,
            "common.databse.url": "x",
            "common.pgmq_database.enabled": True,
            "worker.lease.lease_ms": "soon",
            "orchestration.decision_points.warn_threshold_depth": 90,
            "nonsense": 1,
        }
    )
    found = check(values, place_of=lambda path: f"file:{len(path)}").problems
    assert {problem.path for problem in found} == {
        "common.database.pool.max_connections",
        "common.databse",
        "common.pgmq_database",
        "worker.lease.lease_ms",
        "orchestration.decision_points.warn_threshold_depth",
        "nonsense",
    }
    assert all(f"(file:{len(problem.path)})" in str(problem) for problem in found)
    assert render(found).count("Validation Error:") == len(found)


@pytest.mark.parametrize(
    ("path", "suggestion"),
    [
        ("common.database.pool.max_conections", "common.database.pool.max_connections"),
        ("common.databse.url", "common.database"),
        ("database.url", "common.database"),
        ("common.environment", "common.execution.environment"),
        ("worker.handler_timeout_ms", "worker.mpsc_channels.handler_dispatch.handler_timeout_ms"),
        ("comon.queues.backend", "common.queues"),
        ("comon.queue.backend", "common.queues"),
        ("comon.queue.pgm.poll_interval_ms", "common.queues.pgmq"),
        ("comon.zzz.backend", "common"),
    ],
)
def test_an_unknown_key_gets_a_suggestion(path: str, suggestion: str) -> None:
    (problem,) = check(nested({path: "x"})).problems
    assert problem.issue == "This setting does not exist"
    assert problem.fix == f"Did you mean {suggestion}?"


def test_an_unknown_key_that_is_like_nothing_gets_the_list() -> None:
    assert "common has: approvals, backoff" in problems_of({"common.zzz": 1})["common.zzz"].fix


def test_a_value_where_a_table_belongs_is_said() -> None:
    assert problems_of({"common.database": 5})["common.database"].issue == "Expected a value, got a table"


def test_what_is_refused_says_what_to_use_instead() -> None:
    found = problems_of({"worker.max_concurrent_steps": 50})["worker.max_concurrent_steps"]
    assert "max_concurrent_handlers" in found.fix


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"common.database.pool.max_connections": 3}, "common.database.pool.min_connections"),
        (
            {"common.queues.pgmq.queue_depth_thresholds.overflow_threshold": 4000},
            "common.queues.pgmq.queue_depth_thresholds.critical_threshold",
        ),
        (
            {"orchestration.decision_points.max_decision_depth": 5},
            "orchestration.decision_points.warn_threshold_depth",
        ),
        ({"worker.web.bind_address": "0.0.0.0:8080"}, "worker.web.bind_address"),
        (
            {
                "worker.event_systems.worker.deployment_mode": "PollingOnly",
                "worker.event_systems.worker.metadata.fallback_poller.enabled": False,
            },
            "worker.event_systems.worker.metadata.fallback_poller.enabled",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(values: dict[str, Any], path: str) -> None:
    assert list(problems_of(values)) == [path]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("common.database.url", "mysql://localhost/x"),
        ("common.queues.rabbitmq.url", "http://localhost"),
        ("common.queues.orchestration_queues.step_results", "two--dashes"),
        ("orchestration.dlq.staleness_detection.actions.event_channel", "x" * 64),
        ("common.task_templates.search_paths", ["a/{b"]),
        ("common.task_templates.search_paths", []),
        ("worker.worker_id", ""),
    ],
)
def test_texts_have_a_form(path: str, value: Any) -> None:
    (problem,) = check(nested({path: value})).problems
    assert problem.path.partition("[")[0] == path


def test_a_queue_whose_announcements_no_orchestrator_would_hear_is_refused() -> None:
    path = "common.queues.orchestration_queues.step_results"
    found = problems_of({path: "results"})[path]
    assert "orchestrators listen only for such queues" in found.issue
    assert "Begin the name with 'orchestration'" in found.fix
    assert not problems_of({path: "orchestration_results"})


def test_a_secret_is_not_shown_in_a_problem() -> None:
    (problem,) = check(nested({"common.database.url": "mysql://me:hunter2@host/x"})).problems
    assert "hunter2" not in str(problem)
    assert "hunter2" not in str(problem.to_dict())
    assert f"Value: {REDACTED}" in str(problem)


def test_secrets_are_replaced_in_tables_and_lists_and_their_paths_are_told() -> None:
    values = {
        "database": {"url": "postgresql://u:p@h/d", "name": "d", "database_PASSWORD": "x"},
        "worker": {"auth_token": "t", "servers": [{"Secret_Token": "s", "host": "h"}, {"host": "i"}]},
        "keys": ["a", "b"],
        "api_key": "",
        "token_enabled": True,
        "credentials": {"user": "u", "password": None},
    }
    copy, paths = redacted(values)
    assert copy == {
        "database": {"url": REDACTED, "name": "d", "database_PASSWORD": REDACTED},
        "worker": {
            "auth_token": REDACTED,
            "servers": [{"Secret_Token": REDACTED, "host": "h"}, {"host": "i"}],
        },
        "keys": [REDACTED, REDACTED],
        "api_key": "",
        "token_enabled": True,
        "credentials": {"user": "u", "password": None},
    }
    assert paths == [
        "database.database_PASSWORD",
        "database.url",
        "keys[0]",
        "keys[1]",
        "worker.auth_token",
        "worker.servers[0].Secret_Token",
    ]
    assert values["database"]["url"] == "postgresql://u:p@h/d"  # type: ignore[index]


@pytest.mark.parametrize(
    "key",
    ["password", "client_secret", "auth_token", "jwt_private_key", "api_key", "aws_credentials", "database_url", "url"],
)
@pytest.mark.parametrize("value", ["hunter2", 20_081_976, 3.5])
def test_what_may_be_a_secret_is_hidden_also_when_it_is_a_number(key: str, value: object) -> None:
    assert redacted({key: value}) == ({key: REDACTED}, [key])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_counts_anywhere_in_a_key_and_in_any_case(pattern: str) -> None:
    assert redacted({f"my_{pattern.upper()}_x": "v"})[0] == {f"my_{pattern.upper()}_x": REDACTED}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://tasker:hunter2@host:5/db", "postgresql://tasker:***@host:5/db"),
        ("postgresql://u:hun#ter2@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u:hun[ter2@h/db", "postgresql://u:***@h/db"),
        ("postgresql://h/db?user=u&password=hunter2", "postgresql://h/db?user=u&password=***"),
        ("postgresql://h/db?pass%77ord=hunter2&x=1", "postgresql://h/db?pass%77ord=***&x=1"),
        ("postgresql://h/db?password=ab&hunter2", "postgresql://h/db?password=***&***"),
        ("postgresql+psycopg://u:p@h1:1,h2:2/db", "postgresql+psycopg://u:***@h1:1,h2:2/db"),
        ("postgresql://u:ab/hunter2@h/db", "postgresql://***"),
        ("postgresql://u:ab@hunter2@h/db", "postgresql://***"),
        ("postgresql://u:hunter2", "postgresql://***"),
        ("host=h password=hunter2", "***"),
        ("postgresql://u@[::1]:5432/db", "postgresql://u@[::1]:5432/db"),
        ("postgresql:///db?host=/run", "postgresql:///db?host=/run"),
        ("", ""),
    ],
)
def test_a_url_is_shown_without_what_is_secret(url: str, shown: str) -> None:
    assert without_password(url) == shown


@given(st.text())
def test_whatever_the_text_is_it_can_be_shown_and_a_password_cannot_be_seen(text: str) -> None:
    without_password(text)
    assert "hunter2" not in without_password(f"postgresql://u:hunter2{text}@h/db")
    assert "hunter2" not in without_password(f"postgresql://u:{text}hunter2@h/db")


@pytest.mark.parametrize("url", ["u:a/b@h/db", "u:a@b@h/db", "u:a%zz@h/db", "u:port/db"])
def test_a_database_url_that_would_be_taken_apart_wrongly_says_what_to_encode(url: str) -> None:
    (problem,) = check(nested({"common.database.url": f"postgresql://{url}"})).problems
    assert problem.issue == "The URL cannot be parsed"
    assert problem.fix.startswith("Percent-encode special characters of user and password: % as %25, @ as %40")


@pytest.mark.parametrize("password", ["a/b", "a?b", "a#b", "1/b", "/b"])
@pytest.mark.parametrize(("name", "scheme"), [("rabbitmq", "amqp"), ("redis", "redis"), ("nats", "nats")])
def test_a_brokers_url_that_would_be_taken_apart_wrongly_says_what_to_encode(
    name: str, scheme: str, password: str
) -> None:
    (problem,) = check(nested({f"common.queues.{name}.url": f"{scheme}://u:{password}@h:1/"})).problems
    assert problem.issue == "The URL cannot be parsed"
    assert problem.fix.startswith("Percent-encode special characters of user and password: % as %25, @ as %40, / as")


@pytest.mark.parametrize("url", ["nats://a:4222,nats://b:4222", "nats://u:p@a:4222,b:4222,u:p@c:4222", "tls://[::1]:1"])
def test_a_nats_url_names_one_server_or_many(url: str) -> None:
    assert not check(nested({"common.queues.nats.url": url})).problems


@pytest.mark.parametrize("url", ["amqp://u:p,q@h:1/%2F", "amqps://u:p@q@h", "amqp://u:a%2Fb@h/v"])
def test_a_rabbitmq_url_may_hold_what_cannot_be_misread(url: str) -> None:
    assert not check(nested({"common.queues.rabbitmq.url": url})).problems


@pytest.mark.parametrize("name", ["rabbitmq", "redis", "nats"])
def test_a_brokers_url_with_a_stray_bracket_has_the_wrong_form(name: str) -> None:
    (problem,) = check(nested({f"common.queues.{name}.url": "amqp://u:p[x@h"})).problems
    assert problem.issue.startswith("Expected a URL that begins with ")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({"common.queues.rabbitmq.ulr": "amqp://u:hunter2@h"}, "a text"),
        ({"common.passwort": ["hunter2"]}, "a list"),
        ({"passwort": 1234}, "a whole number"),
        ({"common.database": "postgresql://u:hunter2@h/db"}, "a text"),
        ({"common.database": [{"url": "postgresql://u:hunter2@h/db"}]}, "a list"),
        ({"common.task_templates.search_paths": [{"passwort": "hunter2"}]}, "a table"),
        ({"common.backoff.jitter_enabled": [{"passwort": "hunter2"}]}, "a list"),
        ({"common.pgmq_database.ulr": "hunter2"}, "a table"),
    ],
)
def test_of_what_is_no_settings_value_only_the_kind_is_shown(values: dict[str, Any], shown: str) -> None:
    (problem,) = check(nested(values)).problems
    assert f"\nValue: {shown}\n" in str(problem)
    assert problem.to_dict()["value"] == shown


def test_a_placeholder_of_an_unknown_key_shows_nothing_around_it() -> None:
    substitution = Substitution({}.get)
    substitution.tables({"ulr": "amqp://u:hunter2@${HOST}"})
    assert "hunter2" not in str(substitution.problems[0])
