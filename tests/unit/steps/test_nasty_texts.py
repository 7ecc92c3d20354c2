"""Two hundred hostile texts as values of every built-in step: each arrives as it is, or is refused with a message."""

from __future__ import annotations

import asyncio
import inspect
import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tasker.errors import PermanentError
from tasker.handlers.builtin import Collect, Fail, Log, Transform, Validate
from tasker.handlers.http.step import HttpRequest
from tasker.handlers.results import StepHandlerResult
from tasker.testing.contexts import fake_http, step_context
from tasker_steps.command import RunCommand, make_command
from tasker_steps.files import CopyFile, ListFiles, ReadFile, WriteFile, make_files
from tasker_steps.llm import AskModel, LlmResource
from tasker_steps.notify import Notify, NotifyResource
from tasker_steps.sql import RunStatement, make_sql

SEEDS = [
    "", " ", "'", '"', "`id`", "$(id)", "${input.x}", "$${x}", "{{7*7}}", "{0}", "{x}", "%s%n", "%(a)s", "%00",
    "%2e%2e/", "\\", "\\x00", "\0", "\x01", "\x1b[31m", "\x7f", "\x85", "\n", "\r\n", "\r\nX-Injected: 1", "\t",
    "\u2028", "\u202e", "\ufeff", "\ud800", "\udfff", "é", "e\u0301", "ß", "İ", "\U0001d54f", "👩‍👩‍👧", "٣",
    "\u200b", "..", "../../etc/passwd", "/etc/passwd", "~root", "C:\\x", "a//b", "./a", "a/../b",
    "file:///etc/passwd", "http://169.254.169.254/", "//evil.example", "@evil.example", "?a=b", "#x", "&a=1",
    "a=b;c", "-rf", "--help", "-", "--", "|cat", ";id", "&&id", ">x", "<x", "*", "[a-z]", "?", "!", "$HOME",
    "\\$", "' or 1=1 --", "'; drop table t; --", "\\'; --", "1;select 1", ":name", "::text", "@@version", "/*",
    "*/", "null", "None", "NaN", "true", "0x10", "1e999", "-0", "<script>", "]]>", "&lt;", "<!DOCTYPE x>",
    "__proto__", "constructor", "__class__", "{\"a\": 1}", "[1]", "\\u0000", "=cmd()", "+1", "{% raw %}",
    "#{x}", "<%= x %>",
]  # fmt: skip
TEXTS = [*SEEDS, *(f"a{seed}b" for seed in SEEDS), "x" * 10_000, "\n" * 500, "'" * 999, "../" * 300, "é" * 5_000]


def outcome(handler: Any, inputs: dict[str, Any], resources: dict[str, Any]) -> StepHandlerResult | PermanentError:
    """Return the result, or the permanent failure, which must have a message; any other exception is a defect."""
    try:
        result = handler().call(step_context({"resource": "r", **inputs}, resources=resources))
        if inspect.isawaitable(result):
            return asyncio.run(_awaited(result))
        assert isinstance(result, StepHandlerResult)
        return result
    except PermanentError as error:
        return error if error.message else pytest.fail(f"no message for {inputs}")


async def _awaited(result: Any) -> StepHandlerResult:
    done: StepHandlerResult = await result
    return done


def test_there_are_two_hundred_texts() -> None:
    assert len(set(TEXTS)) >= 200


async def test_pure_steps_take_every_text() -> None:
    for text in TEXTS:
        context = step_context({"value": text, "schema": {"const": text}})
        assert (Validate().call(context).result or {})["valid"], text
        assert (await Transform().call(step_context({text: text}))).result == {text: text}
        assert not (await Fail().call(step_context({"message": text, "code": text}))).success
        await Log().call(step_context({"message": text, "fields": {text or "a": text}}))
        await Collect().call(step_context({}, results={"a": {"x": text}}))


def test_values_of_sql_stay_values(tmp_path: Path) -> None:
    resource = make_sql({"url": f"sqlite:///{tmp_path / 'a.db'}", "read_only": False})
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("create table t (a text)")
    database.close()
    try:
        for text in TEXTS:
            parameters = {"v": text, "l": [text], "m": {text: text}}
            inputs = {"statement": "select :v as v, :l as l, :m as m", "parameters": parameters}
            done = outcome(RunStatement, inputs, {"r": resource})
            if isinstance(done, StepHandlerResult):
                (row,) = (done.result or {})["rows"]
                assert (row["v"], json.loads(row["l"]), json.loads(row["m"])) == (text, [text], {text: text})
            else:
                assert "\0" in text or not _encodes(text), (text, done)
            insert = {"statement": "insert into t values (:v)", "parameters": {"v": text, text: 1}}
            assert isinstance(outcome(RunStatement, insert, {"r": resource}), PermanentError)
            outcome(RunStatement, {"statement": text or " "}, {"r": resource})
        with sqlite3.connect(tmp_path / "a.db") as database:
            assert database.execute("select count(*) from t").fetchone() == (0,)
        database.close()
    finally:
        resource.close()


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def test_paths_stay_below_the_root(tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    (tmp_path / "witness").write_text("untouched")
    resources = {"r": make_files({"url": f"file://{root}", "writable": True})}
    for text in TEXTS:
        written = outcome(WriteFile, {"path": text or " x", "text": text if _encodes(text) else "x"}, resources)
        if isinstance(written, StepHandlerResult):
            read = outcome(ReadFile, {"path": text or " x"}, resources)
            assert isinstance(read, StepHandlerResult)
            assert (read.result or {})["text"] == (text if _encodes(text) else "x")
            assert isinstance(
                outcome(CopyFile, {"path": text or " x", "to_path": "copy"}, resources), StepHandlerResult
            )
        outcome(ListFiles, {"path": text}, resources)
        outcome(CopyFile, {"path": "copy", "to_path": text or " x"}, resources)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["root", "witness"]
    assert (tmp_path / "witness").read_text() == "untouched"
    assert not [path for path in root.rglob("*") if path.is_symlink() or path.name.endswith(".part")]


ECHO = "import sys; sys.stdout.buffer.write(b'\\x00'.join(a.encode('utf-8', 'surrogateescape') for a in sys.argv[1:]))"


def test_arguments_of_a_command_stay_arguments() -> None:
    """One program gets all texts, each as an argument of its own and inside another one."""
    good = [text for text in TEXTS if "\0" not in text and _encodes(text) and not text.startswith("-")]
    names = [f"a{number}" for number in range(len(good))]
    argv = [part for name in names for part in (f"{{{name}}}", f"--x={{{name}}}")]
    arguments = {name: {"type": "string"} for name in names}
    code = [sys.executable, "-I", "-S", "-c", ECHO]
    resource = make_command({"argv": [*code, *argv], "arguments": arguments, "output_bytes": 10**6})
    values = dict(zip(names, good, strict=True))
    done = outcome(RunCommand, {"arguments": values}, {"r": resource})
    assert isinstance(done, StepHandlerResult), done
    assert (done.result or {})["stdout"].split("\0") == [part for text in good for part in (text, f"--x={text}")]
    single = make_command({"argv": [*code, "{a}"], "arguments": {"a": {"type": "string"}}})
    for text in TEXTS:
        if text not in good:
            assert isinstance(outcome(RunCommand, {"arguments": {"a": text}}, {"r": single}), PermanentError)
        assert isinstance(outcome(RunCommand, {"arguments": {text: "x"}}, {"r": single}), PermanentError)


def test_parts_of_a_request_stay_where_they_are() -> None:
    heard: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        heard.append(request)
        return httpx.Response(200, json={})

    resources = {"r": fake_http(answer)}
    base = resources["r"].send("GET", "/").request.url
    uses: list[Callable[[str], dict[str, Any]]] = [
        lambda text: {"path": f"/a/{text}"},
        lambda text: {"query": {"q": text, text: "1"}},
        lambda text: {"headers": {"X-A": text}},
        lambda text: {"headers": {text or "x": "a"}},
        lambda text: {"method": "POST", "json": {text: [text]}},
        lambda text: {"method": "PUT", "text": text},
    ]
    for text in TEXTS:
        for use in uses:
            heard.clear()
            outcome(HttpRequest, use(text), resources)
            for request in heard:
                assert (request.url.host, request.url.scheme) == (base.host, base.scheme), text
                assert request.url.path.startswith("/"), text
                assert "x-injected" not in request.headers, text
                if "json" in use(text):
                    assert json.loads(request.content) == {text: [text]}


def test_texts_for_a_model_and_a_target_arrive_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        choice = {"message": {"content": bodies[-1]["messages"][0]["content"]}, "finish_reason": "stop"}
        return httpx.Response(200, json={"choices": [choice]})

    sent: list[tuple[str, str]] = []

    class Target:
        def notify(self, body: str, title: str, notify_type: str) -> bool:
            sent.append((title, body))
            return True

    monkeypatch.setattr("tasker_steps.notify._target", lambda url, seconds: Target())
    resources = {"r": LlmResource(fake_http(answer), "m")}
    for text in TEXTS:
        done = outcome(AskModel, {"prompt": text}, resources)
        if isinstance(done, StepHandlerResult):
            assert (done.result or {})["text"] == text
        else:
            assert not _encodes(text), (text, done)
        told = outcome(Notify, {"title": text, "text": text or " "}, {"r": NotifyResource("json://a")})
        assert isinstance(told, StepHandlerResult)
        assert sent[-1] == (text, text or " ")
