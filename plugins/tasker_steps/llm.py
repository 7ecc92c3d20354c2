"""Plugin `llm`: the step `tasker.llm` asks a language model behind an API that is compatible with OpenAI's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import ConfigurationError, PermanentError, RetryableError
from tasker.handlers.builtin import INVALID_INPUTS, MOST_IN_MESSAGE, BuiltinHandler
from tasker.handlers.context import StepContext
from tasker.handlers.http.step import Exchange
from tasker.handlers.results import StepHandlerResult
from tasker.plugins.hooks import hookimpl
from tasker.resources.http import HttpResource, make_http
from tasker.resources.tables import HTTP_KEYS, number_of, refuse_unknown
from tasker.template.builtin import BUILTIN, LLM
from tasker.template.schema_check import check_result

TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens")
MAX_TOKENS = 4096
TIMEOUT_SECONDS = 120
REPAIRS = 1
"""How often a model is asked again, within an attempt, for an answer that fits the schema."""


@dataclass(frozen=True, slots=True)
class LlmResource:
    """Model behind a service, and the maximum number of tokens of an answer."""

    service: HttpResource
    model: str
    max_tokens: int = MAX_TOKENS
    kind: str = "llm"

    def close(self) -> None:
        """Close the connections."""
        self.service.close()


def make_llm(settings: Mapping[str, Any]) -> LlmResource:
    """Make the resource of a table. Raises `ConfigurationError`."""
    refuse_unknown("llm", settings)
    model = settings.get("model")
    if not isinstance(model, str) or not model:
        raise ConfigurationError(f"model: expected the name of a model, got {model!r}")
    http = {"timeout_seconds": TIMEOUT_SECONDS, **{key: value for key, value in settings.items() if key in HTTP_KEYS}}
    return LlmResource(make_http(http), model, int(number_of(settings, "max_tokens", MAX_TOKENS)))


class AskModel(BuiltinHandler):
    """Asks a model; with a schema the answer is JSON that fits it. It runs in a thread."""

    handler_name = LLM
    step = BUILTIN[LLM]

    def call(self, context: StepContext) -> StepHandlerResult:
        """Return the answer and the number of tokens."""
        inputs = self.inputs(context)
        resource = context.resource(inputs["resource"])
        if not isinstance(resource, LlmResource):
            raise PermanentError(f"the resource `{inputs['resource']}` is not of the kind llm")
        if ("prompt" in inputs) == ("messages" in inputs):
            raise PermanentError("expected either `prompt` or `messages`", error_code=INVALID_INPUTS)
        messages = [dict(message) for message in inputs.get("messages", ())]
        messages = messages or [{"role": "user", "content": inputs["prompt"]}]
        conversation = _Conversation(context, resource, inputs, messages)
        if "schema" not in inputs:
            return self.success(conversation.result({"text": conversation.ask()}))
        return self.success(conversation.result({"json": conversation.ask_for_json(inputs["schema"])}))


class _Conversation:
    def __init__(
        self, context: StepContext, resource: LlmResource, inputs: Mapping[str, Any], messages: list[dict[str, Any]]
    ) -> None:
        self._context, self._resource, self._messages = context, resource, messages
        self._tokens: Counter[str] = Counter()
        self._model = resource.model
        self._body: dict[str, Any] = {
            "model": resource.model,
            "max_tokens": min(inputs.get("max_tokens", resource.max_tokens), resource.max_tokens),
        }
        if "temperature" in inputs:
            self._body["temperature"] = inputs["temperature"]
        if "schema" in inputs:
            form = {"name": "answer", "schema": inputs["schema"]}
            self._body["response_format"] = {"type": "json_schema", "json_schema": form}

    def result(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of the step."""
        return {**answer, "model": self._model, "usage": {name: self._tokens[name] for name in TOKENS}}

    def ask_for_json(self, schema: Mapping[str, Any]) -> Any:
        """Return an answer that fits the schema; a model that gives another one is asked again once."""
        for repair in range(REPAIRS + 1):
            text = self.ask()
            problems = _problems(text, schema)
            if isinstance(problems, _Fitting):
                return problems.value
            if repair < REPAIRS:
                again = f"This does not match the schema: {problems}. Answer with the corrected JSON only."
                self._messages += [{"role": "assistant", "content": text}, {"role": "user", "content": again}]
        raise RetryableError(f"the answer does not fit the schema: {problems}", error_code="invalid_answer")

    def ask(self) -> str:
        """Return the text of the next answer. A request has no effects, so that any may be sent again."""
        request = {"method": "POST", "path": "/chat/completions", "idempotent": True, "response": "json"}
        inputs = {**request, "json": {**self._body, "messages": self._messages}}
        answer: Any = Exchange(self._context, self._resource.service, inputs).one().get("json")
        try:
            choice = answer["choices"][0]
            text, refusal = choice["message"].get("content"), choice["message"].get("refusal")
            finish, usage = choice.get("finish_reason"), answer.get("usage") or {}
        except (KeyError, IndexError, TypeError, AttributeError):
            code = "invalid_response"
            raise PermanentError("the response is not one of a chat completion", error_code=code) from None
        self._model = str(answer.get("model") or self._model)
        self._tokens.update({name: usage[name] for name in TOKENS if type(usage.get(name)) is int})
        if refusal or finish == "content_filter":
            raise PermanentError(f"the model refuses to answer: {refusal or finish}"[:500], error_code="refused")
        if finish == "length":
            hint = "raise max_tokens of the step, or of the resource"
            raise PermanentError("the answer has more tokens than max_tokens", error_code="answer_cut", hint=hint)
        if not isinstance(text, str):
            raise PermanentError("the response has no text", error_code="invalid_response")
        return text


@dataclass(frozen=True, slots=True)
class _Fitting:
    value: Any


def _problems(text: str, schema: Mapping[str, Any]) -> _Fitting | str:
    """Return the value that the text has, or why it does not fit."""
    try:
        value = json.loads(_without_fence(text))
    except ValueError as error:
        return f"not JSON: {error}"
    mismatches = check_result(schema, value)
    return "; ".join(map(str, mismatches[:MOST_IN_MESSAGE])) if mismatches else _Fitting(value)


def _without_fence(text: str) -> str:
    """Return the JSON of an answer that some models wrap in a block of Markdown."""
    lines = text.strip().splitlines()
    fenced = len(lines) > 2 and lines[0].startswith("```") and lines[-1] == "```"
    return "\n".join(lines[1:-1]) if fenced else text


@hookimpl
def tasker_handlers() -> list[type[BuiltinHandler]]:
    """Return the handler."""
    return [AskModel]
