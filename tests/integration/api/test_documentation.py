"""The page about the interface: its requests do what it says."""

from __future__ import annotations

import shlex
from pathlib import Path

import httpx
import pytest

from tests.docs.snippets import snippets

PAGE = Path(__file__).parents[3] / "docs" / "rest-api.md"
REQUESTS = [block.text for block in snippets(PAGE.read_text(encoding="utf-8")) if block.text.startswith("curl ")]


def as_curl_sends(line: str) -> httpx.Request:
    """The request of a command line; an option that nobody knows here is an error."""
    program, *words = shlex.split(line.replace("\\\n", " "))
    assert program == "curl"
    given = {"-X": "GET", "-d": "", "-H": ""}
    addresses = []
    while words:
        word = words.pop(0)
        if word.startswith("-"):
            assert word in given, line
            given[word] = words.pop(0)
        else:
            addresses.append(word)
    name, _, value = given["-H"].partition(": ")
    (address,) = addresses
    return httpx.Request(given["-X"], f"http://{address}", headers={name: value}, content=given["-d"])


@pytest.mark.parametrize("line", REQUESTS)
async def test_the_example_creates_a_task_and_has_its_end(line: str, client: httpx.AsyncClient) -> None:
    answer = await client.send(as_curl_sends(line))

    assert answer.status_code == 201, answer.text
    assert answer.json()["status"] == "complete"


def test_the_page_has_an_example() -> None:
    assert REQUESTS
