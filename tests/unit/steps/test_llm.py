"""`tasker.llm` asks a model: what is sent, answers that must fit a schema, tokens, and failures."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tasker.errors import ConfigurationError, TaskerError
from tasker.known_secrets import KNOWN, KnownSecrets
from tasker.secrets import Secret
from tasker.testing.contexts import step_context
from tasker_steps.llm import AskModel, make_llm
from tests.support.scripted_server import Reply, reply, scripted_server

SCHEMA = {"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}}


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KnownSecrets.__slots__:
        monkeypatch.setattr(KNOWN, name, getattr(KnownSecrets(), name))


def answer(content: Any, finish: str = "stop", **message: Any) -> bytes:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    choice = {"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return reply(200, {"model": "small-2", "choices": [choice], "usage": usage})


async def asked(*replies: Reply, settings: Any = None, **inputs: Any) -> tuple[dict[str, Any], list[Any]]:
    """Return the result of the step, and the bodies of the requests."""
    async with scripted_server(replies) as server:
        table = {"base_url": server.url + "/v1", "model": "small", "private_networks": ["127.0.0.0/8"]}
        resource = make_llm({**table, **(settings or {})})
        context = step_context({"resource": "ai", **inputs}, resources={"ai": resource})
        try:
            result = await asyncio.to_thread(AskModel().call, context)
        finally:
            resource.close()
        for request in server.heard:
            assert request.startswith("POST /v1/chat/completions ")
            assert "bearer" not in (settings or {}) or "uthorization: Bearer t0ken-4711" in request
        return dict(result.result or {}), server.bodies()


async def failure(*replies: Reply, **inputs: Any) -> TaskerError:
    with pytest.raises(TaskerError) as failed:
        await asked(*replies, **inputs)
    return failed.value


async def test_prompt_is_answered_with_text_and_tokens() -> None:
    settings = {"bearer": Secret("t0ken-4711"), "max_tokens": 100}
    result, (body,) = await asked(answer("four"), settings=settings, prompt="2+2?", max_tokens=1000, temperature=0)
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    assert result == {"text": "four", "model": "small-2", "usage": usage}
    message = {"role": "user", "content": "2+2?"}
    assert body == {"model": "small", "max_tokens": 100, "temperature": 0, "messages": [message]}


async def test_answer_fits_the_schema_at_once_or_after_one_repair() -> None:
    result, (body,) = await asked(answer('```json\n{"total": 7}\n```'), prompt="x", schema=SCHEMA)
    assert result["json"] == {"total": 7}
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    result, (_, again) = await asked(answer('{"total": "7"}'), answer('{"total": 7}'), prompt="x", schema=SCHEMA)
    assert (result["json"], result["usage"]["total_tokens"]) == ({"total": 7}, 24)
    assert [message["role"] for message in again["messages"]] == ["user", "assistant", "user"]
    assert "total" in again["messages"][2]["content"]


@pytest.mark.parametrize(
    ("replies", "inputs", "retryable", "code"),
    [
        ([answer("no JSON")], {"schema": SCHEMA}, True, "invalid_answer"),
        ([answer("cut", "length")], {}, False, "answer_cut"),
        ([answer(None, refusal="I cannot")], {}, False, "refused"),
        ([answer("x", "content_filter")], {}, False, "refused"),
        ([answer(None)], {}, False, "invalid_response"),
        ([reply(200, {"choices": []})], {}, False, "invalid_response"),
        ([reply(200, [])], {}, False, "invalid_response"),
        ([reply(200, "no json", "text/plain")], {}, False, "invalid_response"),
        ([reply(429, "", retry_after="9")], {}, True, "HTTP_429"),
        ([reply(500, "")], {}, True, "outcome_unknown"),
        ([reply(503, "")], {}, True, "HTTP_503"),
        ([None], {}, True, "outcome_unknown"),
        ([reply(401, "")], {}, False, "HTTP_401"),
        ([reply(400, {"error": "no such model"})], {}, False, "HTTP_400"),
        ([answer("x")], {"messages": [{"role": "user", "content": "x"}]}, False, "invalid_inputs"),
    ],
)
async def test_failures_are_classified(replies: Any, inputs: Any, retryable: bool, code: str) -> None:
    error = await failure(*replies, prompt="x", **inputs)
    assert (error.retryable, error.error_code) == (retryable, code)
    assert error.retry_after == (9 if code == "HTTP_429" else None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"base_url": "https://a"}, "model"), ({"model": "m"}, "base_url"), ({"model": "m", "key": "k"}, "unknown key")],
)
def test_mistake_of_the_configuration_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        make_llm(settings)
    assert message in refused.value.message


def test_schema_of_the_answer_types_the_steps_below() -> None:
    from tasker.template import compile_text

    text = f"""name: a
namespace: n
version: 1.0.0
steps:
  - {{name: ask, handler: tasker.llm, inputs: {{resource: ai, prompt: x, schema: {json.dumps(SCHEMA)}}}}}
  - name: use
    handler: h
    dependencies: [ask]
    inputs: {{a: "${{steps.ask.json.total + 1}}", b: "${{steps.ask.PLACE}}"}}
"""
    assert compile_text(text.replace("PLACE", "usage.total_tokens")).ok
    for wrong in ("json.totl", "text"):
        assert [problem.code for problem in compile_text(text.replace("PLACE", wrong)).diagnostics] == ["T091"]
