"""A fleet of many namespaces, each with a template, a queue and a task whose first step waits in it."""

from __future__ import annotations

from dataclasses import replace

from tests.support.engine_fixture import Lab

WAITED = "update tasker.workflow_steps set updated_at = updated_at - interval '1 hour' where state = 'enqueued'"


def space(number: int) -> str:
    """The name of one of the namespaces."""
    return f"space_{number:03}"


def fill(lab: Lab, namespaces: int, first: int = 0) -> None:
    """Make the namespaces from the `first` on; their steps wait for an hour."""
    plan = lab.chain(2, name="flow")
    for number in range(first, namespaces):
        lab.one.submit(replace(plan, namespace=space(number)), {})
    lab.one.execute(WAITED)


def lose_messages(lab: Lab, namespaces: int) -> None:
    """Delete the messages of the namespaces, as a broker that was replaced."""
    for number in range(namespaces):
        lab.one.execute(f"delete from pgmq.q_worker_{space(number)}_queue")
