"""A worker's port of its own: how it does and what it serves, in the published shapes, to who is let in."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from fastapi.openapi.utils import get_openapi
from prometheus_client.parser import text_string_to_metric_families

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.app.http_serving import auth_shown, with_port
from tasker.errors import UsageError
from tasker.process.metric_aliases import SATURATIONS
from tasker.process.metrics import PROCESS_CATALOGUE
from tasker.process.observed import ProcessSnapshot
from tasker.process.status import observed_worker
from tasker.server import process_port as shapes
from tasker.server.auth.authenticator import Authenticator
from tasker.server.auth.gate import ClosedGate
from tasker.server.process_port import PortOptions, configuration_routes, port_application, routes
from tasker.settings.http import Auth, WorkerWeb
from tasker.template import compile_text
from tests.integration.api.conftest import own_app
from tests.integration.api.program import ORDERS, WAITING
from tests.integration.api.published import lacks, misfits, operations
from tests.integration.api.test_options import self_signed

app = own_app

(ORDER,) = compile_text(ORDERS).plans
(NOBODYS,) = compile_text(WAITING).plans
GUARDED = ("/v1/templates", "/templates", "/handlers", "/config", "/v1/templates/shop/orders/1.0.0")
CONFIGURATION = {"auth": auth_shown(Auth()), "messaging": {"backend": "pgmq", "queues": []}}
OPEN = ("/health", "/live", "/ready", "/health/live", "/health/ready", "/health/detailed", "/metrics")


@pytest.fixture
def observed(app: tasker.App) -> ProcessSnapshot:
    assert app.runtime is not None
    return observed_worker(app.runtime, app.registry, [ORDER, NOBODYS])


@pytest_asyncio.fixture(loop_scope="module")
async def port(observed: ProcessSnapshot) -> AsyncIterator[httpx.AsyncClient]:
    options = PortOptions(configuration=CONFIGURATION)
    transport = httpx.ASGITransport(app=port_application(observed, options))
    async with httpx.AsyncClient(transport=transport, base_url="http://worker") as made:
        yield made


def test_the_published_interface_of_a_worker_is_all_there() -> None:
    document = get_openapi(title="port", version="1", routes=[*routes.routes, *configuration_routes.routes])
    for method, path, facts in operations("worker"):
        ours = document["paths"][path][method.lower()]
        wanted = {each.split(":")[1].rstrip("?") for each in facts.get("parameters", ()) if each.startswith("query:")}
        assert wanted <= {each["name"] for each in ours.get("parameters", ())}, path
        assert {*facts["answers"]} - {"500"} <= {*ours["responses"]}, path
        success, name = next((status, name) for status, name in facts["answers"].items() if status.startswith("2"))
        schema = ours["responses"][success]["content"]["application/json"]["schema"]
        assert list(lacks(document, schema, "worker", name)) == [], path


async def test_real_answers_fit_the_published_shapes(port: httpx.AsyncClient) -> None:
    named = {"{namespace}": "shop", "{name}": "orders", "{version}": "1.0.0"}
    for method, path, facts in operations("worker"):
        url = "/".join(named.get(part, part) for part in path.split("/"))
        answer = await port.request(method, url)
        assert answer.status_code == 200, path
        assert list(misfits(answer.json(), "worker", facts["answers"]["200"])) == [], path


async def test_a_worker_that_works_is_healthy_alive_and_ready(
    port: httpx.AsyncClient, observed: ProcessSnapshot
) -> None:
    health = shapes.BasicHealthResponse.model_validate((await port.get("/health")).json())
    assert (health.status, health.worker_id) == ("healthy", observed.identity())
    assert (await port.get("/live")).json()["status"] == "alive"
    ready = shapes.WorkerReadinessResponse.model_validate((await port.get("/ready")).json())
    assert (ready.status, ready.system_info.worker_type) == ("ready", "worker")
    detailed = shapes.WorkerDetailedHealthResponse.model_validate((await port.get("/health/detailed")).json())
    assert {check["status"] for check in detailed.checks.model_dump().values()} == {"healthy"}
    for path in ("/health/live", "/health/ready"):
        assert (await port.get(path)).status_code == 200


async def test_what_it_serves_is_told(port: httpx.AsyncClient) -> None:
    served = shapes.ServedTemplatesResponse.model_validate((await port.get("/v1/templates")).json())
    assert (served.template_count, "shop" in served.supported_namespaces) == (2, True)
    assert set(served.worker_capabilities) >= {"shop.check", "shop.charge"}
    assert (await port.get("/templates", params={"namespace": "shop"})).json()["template_count"] == 1
    assert set((await port.get("/handlers")).json()["handlers"]) >= {"shop.check"}
    found = shapes.TemplateResponse.model_validate((await port.get("/v1/templates/shop/orders/1.0.0")).json())
    assert (found.handler_metadata.handler_class, found.template["name"]) == ("shop.check", "orders")
    missing = await port.get("/v1/templates/shop/orders/9.9.9")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "NOT_FOUND")
    config = shapes.WorkerConfigResponse.model_validate((await port.get("/config")).json())
    assert config.messaging.backend == "pgmq"


async def test_a_template_is_cached_once_one_of_its_steps_has_run(app: tasker.App, port: httpx.AsyncClient) -> None:
    submitted = await app.submit("shop/orders", {"amount": 3})
    await app.finished(submitted.task_uuid, timeout=60)

    run = (await port.get("/v1/templates/shop/orders/1.0.0")).json()
    never_run = (await port.get("/v1/templates/nobody/waiting/1.0.0")).json()
    assert (run["cached"], run["access_count"] >= 1, 0 <= run["cache_age_seconds"] < 3600) == (True, True, True)
    assert (never_run["cached"], never_run["access_count"], never_run["cache_age_seconds"]) == (False, None, None)


async def test_a_template_is_valid_where_its_handlers_are(port: httpx.AsyncClient) -> None:
    fine = (await port.post("/v1/templates/shop/orders/1.0.0/validate")).json()
    lacking = (await port.post("/v1/templates/nobody/waiting/1.0.0/validate")).json()

    assert (fine["valid"], fine["step_handlers"]) == (True, ["shop.charge", "shop.check"])
    assert (lacking["valid"], lacking["errors"]) == (False, ["no handler nobody.never"])


async def test_its_numbers_are_those_of_the_catalogue(port: httpx.AsyncClient, observed: ProcessSnapshot) -> None:
    text = (await port.get("/metrics")).text

    assert f"tasker_steps_slots {observed.load().slots}\n" in text
    assert 'tasker_process_health{part="events"} 0\n' in text
    told = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert {"mpsc_channel_usage_percent", "tasker_circuit_breaker_state"} <= told <= {*PROCESS_CATALOGUE}


async def test_other_names_of_a_number_say_the_same(port: httpx.AsyncClient, observed: ProcessSnapshot) -> None:
    assert observed.process.breakers.messaging.name == "messaging"  # it is made, as with a broker
    families = text_string_to_metric_families((await port.get("/metrics")).text)
    found = {"/".join([each.name, *each.labels.values()]): each.value for family in families for each in family.samples}

    for channel, names in SATURATIONS.items():
        share = found[f"mpsc_channel_usage_percent/{channel}/worker"] / 100
        assert found[f"mpsc_channel_saturation/{channel}/worker"] == share
        assert {found[name] for name in names} == {share}
    assert found["domain_events_dropped_total"] == found["mpsc_channel_full_events_total/domain_events/worker"]
    in_hand = [value for name, value in found.items() if name.startswith("tasker_steps_active_executions/")]
    assert in_hand, "a series for each namespace that it serves, also without a step"
    free = found["tasker_steps_slots"] - sum(in_hand)
    assert found["worker_handler_semaphore_permits_available"] == free
    assert found["tasker_worker_events_failed_total"] == found["tasker_polling_errors_total"]
    for component, name in (("messaging", "messaging"), ("completion", "ffi_completion")):
        rejections = f"{name}_circuit_{'breaker' if component == 'messaging' else 'open'}_rejections_total"
        assert found[rejections] == found[f"tasker_circuit_breaker_rejections_total/{component}"]
    assert found["messaging_circuit_breaker_state"] == found["tasker_circuit_breaker_state/messaging"]


async def test_a_worker_that_stops_is_not_ready_and_still_alive(
    app: tasker.App, port: httpx.AsyncClient, observed: ProcessSnapshot
) -> None:
    await app.stop()

    refused = await port.get("/ready")
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert (await port.get("/live")).status_code == 200
    assert "tasker_process_up 0\n" in (await port.get("/metrics")).text


async def test_with_authentication_only_health_and_numbers_are_open(observed: ProcessSnapshot) -> None:
    gate = ClosedGate(Authenticator(Auth(enabled=True, api_key="k" * 32)))
    transport = httpx.ASGITransport(app=port_application(observed, PortOptions(configuration={}), gate))
    async with httpx.AsyncClient(transport=transport, base_url="http://worker") as port:
        assert {(await port.get(path)).status_code for path in GUARDED} == {401}
        assert {(await port.get(path)).status_code for path in OPEN} == {200}
        let_in = await port.get("/handlers", headers={"X-API-Key": "k" * 32})
        assert let_in.status_code == 200


async def test_a_port_takes_over_other_keys_and_a_renewed_certificate(
    observed: ProcessSnapshot, tmp_path: Path
) -> None:
    def auth(key: str) -> Auth:
        return Auth(enabled=True, api_key=key * 32)

    certificate, key = self_signed(tmp_path)
    settings = WorkerWeb(bind_address="127.0.0.1:0", tls_certificate_path=certificate, tls_key_path=key, auth=auth("a"))
    port, where = with_port(Served(), observed, settings, UNCONFIGURED, ())

    async def status(shown: str) -> int:
        trusted = ssl.create_default_context(cafile=certificate)
        async with httpx.AsyncClient(verify=trusted) as client:
            return (await client.get(f"{where}/handlers", headers={"X-API-Key": shown * 32})).status_code

    await port.start()
    try:
        assert where.startswith("https://")
        assert [await status(each) for each in "ab"] == [200, 401]
        self_signed(tmp_path)  # one that the client does not trust, were the former still shown
        port.change(auth("b"))
        assert [await status(each) for each in "ab"] == [401, 200]
        with pytest.raises(UsageError, match="no credentials are configured"):
            port.change(Auth(enabled=True))
        Path(key).write_text("no key")
        with pytest.raises(UsageError, match="they do not match"):
            port.change(auth("a"))
        assert [await status(each) for each in "ab"] == [401, 200]
    finally:
        await port.stop()


def test_without_authentication_other_machines_cannot_reach_it(observed: ProcessSnapshot) -> None:
    with pytest.raises(UsageError, match=r"is reachable from other machines") as caught:
        with_port(None, observed, WorkerWeb(bind_address="0.0.0.0:0"), UNCONFIGURED, ())  # type: ignore[arg-type]

    assert "[worker.web.auth]" in str(caught.value.hint)


async def test_processes_started_together_take_one_port_after_the_other(
    observed: ProcessSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKER_PROCESSES", "3")
    first, where = with_port(Served(), observed, WorkerWeb(bind_address="127.0.0.1:0"), UNCONFIGURED, ())
    number = int(where.rpartition(":")[2])
    second, beside = with_port(Served(), observed, WorkerWeb(bind_address=f"127.0.0.1:{number}"), UNCONFIGURED, ())
    await first.start()
    await first.start()  # as after a database that was away
    await second.start()
    async with httpx.AsyncClient() as client:
        answers = [(await client.get(f"{url}/live")).status_code for url in (where, beside)]
    await first.stop()
    await second.stop()

    assert answers == [200, 200]
    assert int(beside.rpartition(":")[2]) > number


class Served:
    """Nothing, which is soon done."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


async def test_messages_that_polls_found_are_counted_with_and_without_a_notification(
    port: httpx.AsyncClient, observed: ProcessSnapshot
) -> None:
    async def told() -> dict[str, float]:
        lines = (await port.get("/metrics")).text.splitlines()
        return {name: float(value) for name, _, value in (line.partition(" ") for line in lines) if "polling" in name}

    before = await told()
    for found, polled in ((2_000_000, False), (500_000, True), (0, True)):
        with observed.process.events.poll(polled=polled) as poll:
            poll.found = found
    after = await told()

    grown = {name: after[name] - before[name] for name in before}
    own = 1_000
    """At most as many as this worker polls and finds itself meanwhile."""
    assert 2_500_000 <= grown["tasker_polling_messages_processed_total"] < 2_500_000 + own
    assert 500_000 <= grown["tasker_polling_messages_found_total"] < 500_000 + own
    assert 3 <= grown["tasker_polling_cycles_total"] < own
    assert grown["tasker_polling_errors_total"] < own
