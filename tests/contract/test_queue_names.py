from __future__ import annotations

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.errors import InvalidQueueName
from tasker.messaging import QueueNames, check_namespace, namespace_of, ready_channel
from tasker.messaging.queues import CHANNEL_MAX_BYTES, NAMESPACE_MAX
from tasker.settings.addresses import check_queue_name
from tasker.template import compile_text

NAMESPACES_OF_QUEUES = [
    ("orchestration_task_requests", "orchestration"),
    ("orchestration_step_results", "orchestration"),
    ("orchestration_x_queue", "orchestration"),
    ("orchestrations", "orchestration"),
    ("worker_payments_queue", "payments"),
    ("worker_a_b_queue", "a_b"),
    ("worker_my-ns_queue", "my-ns"),
    ("worker_a_queue_queue", "a_queue"),
    ("worker__queue", "worker"),
    ("worker_queue", "worker"),
    ("payments_queue", "payments"),
    ("Payments2_queue", "Payments2"),
    ("my-ns_queue", "default"),
    ("2fast_queue", "default"),
    ("_queue", "default"),
    ("payments", "default"),
    ("", "default"),
    ("payments_queue\n", "default"),
    ("worker_payments_queue\n", "default"),
]

namespaces = (
    st.from_regex(r"[A-Za-z0-9_-]{1,34}", fullmatch=True)
    .filter(lambda name: "--" not in name)
    .filter(lambda name: not name.startswith("orchestration"))
)


@pytest.mark.parametrize(("queue", "namespace"), NAMESPACES_OF_QUEUES)
def test_the_namespace_is_read_from_the_name_of_a_queue(queue: str, namespace: str) -> None:
    assert namespace_of(queue) == namespace


def test_the_sql_of_the_pgmq_backend_reads_the_same_namespaces(empty_pgmq: str) -> None:
    with psycopg.connect(empty_pgmq) as connection:
        for queue, namespace in NAMESPACES_OF_QUEUES:
            row = connection.execute("select tasker_pgmq.extract_queue_namespace(%s)", (queue,)).fetchone()
            assert row == (namespace,), queue


@given(namespaces)
def test_a_namespace_comes_back_from_its_queue_and_fits_every_backend(namespace: str) -> None:
    queue = QueueNames().step_queue(namespace)
    assert namespace_of(queue) == namespace
    assert check_queue_name(queue) == queue
    assert len(ready_channel(namespace).encode()) <= CHANNEL_MAX_BYTES


@pytest.mark.parametrize(
    ("namespace", "problem"),
    [
        ("", "is empty"),
        ("a" * (NAMESPACE_MAX + 1), "has 35 characters, 34 are possible"),
        ("a b", "contains a character"),
        ("a;drop table x", "contains a character"),
        ('a"b', "contains a character"),
        ("a.b", "contains a character"),
        ("payments\n", "contains a character"),
        ("naïve", "contains a character"),
        ("a--b", "holds '--'"),
        ("orchestration", "is reserved"),
        ("orchestration_x", "is reserved"),
    ],
)
def test_a_hostile_namespace_is_refused_with_the_rule_it_breaks(namespace: str, problem: str) -> None:
    for use in (check_namespace, QueueNames().step_queue):
        with pytest.raises(InvalidQueueName, match=problem) as caught:
            use(namespace)
        assert caught.value.hint == "use 1 to 34 letters, digits, '_' or single '-'"
        assert caught.value.retryable is False


def test_the_orchestration_has_a_channel_of_its_own() -> None:
    assert ready_channel("orchestration") == "pgmq_message_ready.orchestration"
    with pytest.raises(InvalidQueueName):
        ready_channel("orchestration; listen x")


def test_orchestrators_read_three_queues() -> None:
    assert QueueNames().orchestration() == (
        "orchestration_task_requests",
        "orchestration_step_results",
        "orchestration_task_finalizations",
    )


def test_a_configured_queue_name_is_checked_at_once() -> None:
    with pytest.raises(InvalidQueueName, match="'step results'"):
        QueueNames(step_results="step results")


@given(st.from_regex(r"(orchestration|worker)?[A-Za-z0-9_-]{0,20}", fullmatch=True))
def test_a_namespace_that_the_compiler_accepts_can_have_a_queue(namespace: str) -> None:
    result = compile_text(f'name: a\nnamespace_name: "{namespace}"\nversion: 1.0.0\nsteps: [{{name: a, handler: h}}]\n')
    if result.ok:
        assert check_namespace(namespace) == namespace
    if namespace.startswith("orchestration"):
        assert [problem.code for problem in result.errors] == ["T026"]
