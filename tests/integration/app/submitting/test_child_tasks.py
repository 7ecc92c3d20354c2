"""Steps that start child tasks, through a program: their inputs and outputs, failures, and what is handed down."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.template import compile_text
from tasker.template.plan import Plan

CHILD = """
name: encode
namespace: media
version: {version}
input_schema: {{type: object, required: [url], properties: {{url: {{type: string}}}}}}
steps:
  - {{name: fetch, handler: fetch}}
  - {{name: pack, handler: pack, dependencies: [fetch]}}
"""
PARENT = """
name: batch
namespace: media
version: 1
steps:
  - {name: plan, handler: plan}
  - {name: videos, type: task, template: encode, dependencies: [plan], KEYS}
  - {name: report, handler: report, dependencies: [videos]}
"""


@pytest.fixture
def registry() -> HandlerRegistry:
    registry = HandlerRegistry()
    registry.register("plan", lambda context: {"urls": context.input_data.get("urls", []), "one": "a.mp4"})
    registry.register("fetch", _fetch)
    registry.register("pack", lambda context: {"packed": context.get_dependency_result("fetch")["size"] * 2})
    registry.register("report", lambda context: {"read": context.get_dependency_result("videos")})
    return registry


def _fetch(context: Any) -> dict[str, Any]:
    url = context.input_data["url"]
    if url.startswith("broken"):
        raise tasker.errors.PermanentError(f"cannot read {url}")
    return {"size": len(url), "url": url}


@pytest.fixture
def media(app: tasker.SyncApp) -> Iterator[tasker.SyncApp]:
    app.template_texts.register(CHILD.format(version="1.0.0"))
    return app


def compiled(text: str) -> Plan:
    (plan,) = compile_text(text).plans
    return plan


def parent(keys: str) -> Plan:
    return compiled(PARENT.replace("KEYS", keys))


def until(read: Callable[[], list[Any]], count: int) -> list[Any]:
    """Return what is read once it has so many items."""
    for _ in range(600):
        if len(found := read()) >= count:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{len(read())} of {count}")


def test_one_child_runs_with_its_input_and_its_output_is_the_result(media: tasker.SyncApp) -> None:
    report = media.run(parent("inputs: {url: '${steps.plan.one}'}, output: steps.pack.packed"), {}, timeout=60)

    result = report.steps["videos"].result
    assert (report.status, result["output"]) == ("complete", 10)
    assert report.steps["report"].result == {"read": result}
    child = media.views.task(result["task_uuid"])
    assert (child.status, child.name, child.initiator) == ("complete", "encode", "step:media/batch/videos")


WAITS = "- {name: w, type: wait, for: 9d}\n"
LIST = "for_each: {in: input.urls, as: url}, inputs: {url: '${url}'}"


def test_what_a_child_marks_as_sensitive_is_in_its_output_only_if_it_was_asked_for(media: tasker.SyncApp) -> None:
    schema = "result_schema: {type: object, properties: {url: {type: string, x-sensitive: true}}}"
    media.template_texts.register(f"""
name: encode
namespace: media
version: "2"
steps:
  - {{name: fetch, handler: fetch, {schema}}}
""")

    silent = media.run(parent("inputs: {url: a.mp4}"), {}, timeout=60)
    asked = media.run(parent("inputs: {url: a.mp4}, output: steps.fetch.url"), {}, timeout=60)

    assert silent.steps["videos"].result["output"] == {"fetch": {"size": 5, "url": None}}
    assert asked.steps["videos"].result["output"] == "a.mp4"


def test_who_is_confined_to_a_namespace_registers_no_template_that_starts_tasks_elsewhere(
    media: tasker.SyncApp,
) -> None:
    text = PARENT.replace("KEYS", "namespace: vault")

    with pytest.raises(tasker.errors.NotPermitted, match="in namespace vault"):
        media.template_texts.register(text, namespaces=["media"])
    media.template_texts.register(text, namespaces=["media", "vault"])


def test_children_of_a_list_have_their_results_in_its_order(media: tasker.SyncApp) -> None:
    urls = [f"{'x' * number}.mp4" for number in range(7)]

    report = media.run(parent(f"{LIST}, output: steps.pack.packed, max_parallel: 2"), {"urls": urls}, timeout=60)

    result = report.steps["videos"].result
    assert result == {"total": 7, "succeeded": 7, "failed": [], "results": [2 * len(url) for url in urls]}


async def in_async(context: Any) -> dict[str, Any]:
    return {"read": [child.output async for child in context.children("videos")]}


def in_thread(context: Any) -> dict[str, Any]:
    return {"read": [(child.index, child.state, child.output) for child in context.children("videos")]}


def test_a_handler_reads_outputs_in_pages(
    media: tasker.SyncApp, registry: HandlerRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasker.handlers.child_pages.PAGE", 2)

    registry.register("in_async", in_async)
    registry.register("in_thread", in_thread)
    plan = compiled(
        PARENT.replace("KEYS", f"{LIST}, output: steps.fetch.size, collect: none, tolerated_failures: 1")
        + "  - {name: one, handler: in_async, dependencies: [videos]}\n"
        + "  - {name: two, handler: in_thread, dependencies: [videos]}\n"
        + "  - {name: one_apart, handler: in_async, dependencies: [videos], execution: {mode: process}}\n"
        + "  - {name: two_apart, handler: in_thread, dependencies: [videos], execution: {mode: process}}\n"
    )

    report = media.run(plan, {"urls": ["a", "broken", "ccc", "dd", "e"]}, timeout=60)

    assert report.steps["videos"].result == {"total": 5, "succeeded": 4, "failed": [1]}
    assert report.steps["one"].result == {"read": [1, None, 3, 2, 1]}
    assert [report.steps[name].result for name in ("one_apart", "two_apart")] == [
        report.steps[name].result for name in ("one", "two")
    ]
    assert [row[1] for row in report.steps["two"].result["read"]] == ["succeeded", "failed", *["succeeded"] * 3]


def test_children_of_a_step_that_starts_none_are_refused(media: tasker.SyncApp, registry: HandlerRegistry) -> None:
    registry.register("report", lambda context: {"read": len(list(context.children("vidoes")))})

    failed = media.run(parent(LIST), {"urls": ["a"]}, timeout=60)

    expected = "context.children: batch has no step 'vidoes' that starts child tasks; steps with `type: task`: videos"
    assert failed.steps["report"].error["message"] == expected


def test_an_empty_list_starts_nothing(media: tasker.SyncApp) -> None:
    report = media.run(parent(LIST), {"urls": []}, timeout=60)

    assert report.steps["videos"].result == {"total": 0, "succeeded": 0, "failed": [], "results": []}


def test_tolerated_failures_are_listed_and_have_no_result(media: tasker.SyncApp) -> None:
    urls = ["a.mp4", "broken.mp4", "b.mp4", "broken2.mp4"]

    report = media.run(parent(f"{LIST}, output: steps.fetch.url, tolerated_failures: 50%"), {"urls": urls}, timeout=60)

    result = report.steps["videos"].result
    assert (report.status, result["succeeded"], result["failed"]) == ("complete", 2, [1, 3])
    assert result["results"] == ["a.mp4", None, "b.mp4", None]


def test_a_step_fails_after_more_failures_than_are_tolerated(media: tasker.SyncApp) -> None:
    urls = ["a.mp4", "broken.mp4", *(f"{number}.mp4" for number in range(20))]

    report = media.run(parent(f"{LIST}, max_parallel: 1"), {"urls": urls}, timeout=60)

    step = report.steps["videos"]
    assert (report.status, step.error["type"]) == ("error", "too_many_children_failed")
    assert step.error["message"].startswith("1 of 22 child tasks failed, 0 tolerated; the first: child task ")
    assert step.error["message"].endswith("ended in error: step fetch: cannot read broken.mp4")
    assert len(media.tasks.list(template="encode")) == 2, "children were started after the failure"


def test_a_failed_child_is_a_failure_with_which_the_task_may_go_on(media: tasker.SyncApp) -> None:
    plan = parent("inputs: {url: broken.mp4}, on_failure: continue")

    report = media.run(plan, {}, timeout=60)

    assert (report.status, report.outcome) == ("complete", "partial")
    assert report.steps["videos"].error["type"] == "child_task_failed"
    assert report.steps["report"].state == "complete"


def test_a_step_fails_whose_children_cannot_be_started(media: tasker.SyncApp) -> None:
    wrong = "inputs: {url: '${input.number}'}"
    unknown = parent("inputs: {url: x}").to_json().replace('"template":"encode"', '"template":"decode"')
    reports = [
        media.run(parent(wrong), {"number": 1}, timeout=60),
        media.run(parent(wrong), {}, timeout=60),
        media.run(Plan.from_json(unknown), {}, timeout=60),
    ]

    errors = [report.steps["videos"].error for report in reports]
    assert [error["type"] for error in errors] == [
        "child_input_invalid",
        "input_mapping_failed",
        "child_template_not_found",
    ]
    assert "$.url" in errors[0]["message"]
    assert media.tasks.list(template="encode") == []


def test_the_end_of_a_parent_cancels_its_children(media: tasker.SyncApp) -> None:
    media.template_texts.register(CHILD.format(version="2").replace("- {name: fetch", f"{WAITS}  - {{name: fetch"))
    task = media.submit(parent(LIST), {"urls": ["a", "b", "c"]}).task_uuid
    children = until(lambda: list(media.tasks.list(template="encode")), 3)

    media.tasks.cancel(task, reason="no longer needed")

    for child in children:
        assert media.wait(child.task_uuid, timeout=60).status == "cancelled"
