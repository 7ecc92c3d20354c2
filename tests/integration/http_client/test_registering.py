"""Templates in files are registered through a server as they are beside the database."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import tasker
from tasker.server.sockets import HttpServer
from tests.support.command_line import invoke

PAGES = 503
"""Templates on more than one page of a server."""
ONE = "name: one\nnamespace: filed\nversion: 1.0.0\nsteps: [{name: a, handler: filed.a}]\n"


async def test_all_templates_of_a_folder_are_sent_and_other_content_is_refused(
    app: tasker.App, http_server: HttpServer, tmp_path: Path
) -> None:
    (tmp_path / "one.yaml").write_text(ONE)
    (tmp_path / "two.yaml").write_text("---\n" + ONE.replace("one", "two"))
    register = ("template", "register", tmp_path, "--url", http_server.address)

    sent = await asyncio.to_thread(invoke, *register)
    assert (sent.exit_code, sent.output) == (0, "registered filed/one:1.0.0\nregistered filed/two:1.0.0\n")
    found = {each["name"] for each in await app.plans.registered() if each["namespace"] == "filed"}
    assert found == {"one", "two"}

    (tmp_path / "one.yaml").write_text(ONE.replace("name: a", "name: b"))
    refused = await asyncio.to_thread(invoke, *register)
    forced = await asyncio.to_thread(invoke, *register, "--force")
    assert (refused.exit_code == 0, forced.exit_code) == (False, 0), refused.output

    as_json = await asyncio.to_thread(invoke, *register, "--format", "json")
    named = [{"namespace": "filed", "name": name, "version": "1.0.0"} for name in ("one", "two")]
    assert json.loads(as_json.stdout) == {"registered": named}


async def test_template_list_follows_pages_up_to_its_limit(app: tasker.App, http_server: HttpServer) -> None:
    texts = [ONE.replace("one", f"page{n:03}").replace("filed", "paged") for n in range(PAGES)]
    await app.template_texts.register("---\n".join(texts))
    everything = ("template", "list", "--namespace", "paged", "--format", "json", "--url", http_server.address)

    whole = await asyncio.to_thread(invoke, *everything)
    cut = await asyncio.to_thread(invoke, *everything, "--limit", str(PAGES - 1))

    assert [each["name"] for each in json.loads(whole.stdout)] == [f"page{n:03}" for n in range(PAGES)]
    assert whole.stderr == ""
    assert json.loads(cut.stdout) == json.loads(whole.stdout)[:-1]
    assert cut.stderr == f"there are more than {PAGES - 1} templates; see --limit and --namespace\n"


TRIED = ONE + "environments: {test: {steps: [{name: a, retry: {max_attempts: 7}}]}}\n"


@pytest.mark.parametrize("through", ["server", "database"])
async def test_templates_of_several_paths_are_registered_for_the_environment(
    app: tasker.App, http_server: HttpServer, tmp_path: Path, through: str
) -> None:
    file, folder = tmp_path / "one.yaml", tmp_path / "folder"
    folder.mkdir()
    text = TRIED.replace("filed", through).rstrip("\n")  # a namespace for each; editors leave out the last line's end
    file.write_text(text)
    (folder / "two.yaml").write_text(text.replace("one", "two"))
    place = ("--url", http_server.address) if through == "server" else ("--database-url", app.database_url)
    register = ("template", "register", file, folder, "--env", "test", *place)

    first = await asyncio.to_thread(invoke, *register)
    stored = [(await app.plans.find(through, name)).plan for name in ("one", "two")]
    file.write_text(text.replace("7", "8"))
    refused = await asyncio.to_thread(invoke, *register)
    forced = await asyncio.to_thread(invoke, *register, "--force")

    registered = f"registered {through}/one:1.0.0\nregistered {through}/two:1.0.0\n"
    assert (first.exit_code, first.output) == (0, registered)
    assert [plan.by_name["a"].retry.max_attempts for plan in stored] == [7, 7]
    assert (refused.exit_code == 0, forced.exit_code) == (False, 0), refused.output
    changed = await app.plans.find(through, "one")
    assert changed.plan.by_name["a"].retry.max_attempts == 8


@pytest.mark.parametrize("through", ["server", "database"])
async def test_a_plan_is_made_and_applied_through_both_transports(
    app: tasker.App, http_server: HttpServer, tmp_path: Path, through: str
) -> None:
    place = ("--url", http_server.address) if through == "server" else ("--database-url", app.database_url)
    text, file = ONE.replace("filed", f"planned_{through}"), tmp_path / "plan.json"
    (tmp_path / "one.yaml").write_text(text)
    (tmp_path / "two.yaml").write_text(text.replace("name: one", "name: two"))

    async def run(*arguments: object) -> tuple[int, str]:
        result = await asyncio.to_thread(invoke, *arguments, *place)
        return result.exit_code, result.output

    code, output = await run("plan", tmp_path, "--output", file)
    assert (code, output.splitlines()[-1]) == (2, "to register: 2 new")
    assert await run("apply", file) == (0, "".join(f"registered planned_{through}/{n}:1.0.0\n" for n in ("one", "two")))
    assert await run("apply", file) == (0, "nothing to register\n")
    assert (await run("plan", tmp_path))[0] == 0

    (tmp_path / "one.yaml").write_text(text.replace("name: a", "name: b"))
    code, output = await run("plan", tmp_path, "--format", "github")
    assert code == 1
    assert output.startswith(f"::error file={tmp_path}/one.yaml,line=1::planned_{through}/one:1.0.0: REFUSED")
    (tmp_path / "one.yaml").write_text(text.replace("1.0.0", "1.1.0").replace("name: a", "name: b"))
    assert (await run("plan", tmp_path, "--output", file))[0] == 2
    await app.template_texts.register(text.replace("1.0.0", "2.0.0"))
    code, output = await run("apply", file)
    assert (code, "the registered templates have changed since the plan" in output) == (1, True)
