"""A step whose handler uses a resource that no worker has: its own sentence."""

from __future__ import annotations

from tests.integration.engine.explain.conftest import Told, at_work
from tests.support.engine_fixture import change


def test_a_resource_that_no_worker_with_the_handler_has_is_named(told: Told) -> None:
    lab = told.lab
    serve = {"action": "serve", "worker": lab.one.worker, "namespaces": [lab.namespace]}
    at_work(lab.one, "w1").core("worker", {**serve, "callables": ["other"], "lacking": ["noop orders", "other crm"]})
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(change("release", claims["s0"], n={"unserved": "noop"}))
    assert told.sentence(task, "s0") == (
        "no live worker serves noop (missing resource: orders): refused by w1, last since 12:00:00"
    )
    assert told.one(task, "s0").remedy().startswith("start a worker that has the handler and the resource orders; ")

    lab.one.core("worker", {**serve, "callables": ["noop"]})
    assert "orders" not in told.sentence(task, "s0")
