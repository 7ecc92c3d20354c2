"""Every page and every answer to a GET: status, content type, and what it says."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import httpx

from tests.integration.two_transports.conftest import Served, without_moments
from tests.support.recorded import assert_recorded

ANSWERS = [
    "health",
    "live",
    "ready",
    "v1/analytics/bottlenecks?min_executions=16",
    "v1/analytics/performance",
    "v1/analytics/performance?hours=0",
    "v1/analytics/scaling?min_workers=1&max_workers=3",
    "v1/analytics/templates/shop/orders",
    "v1/analytics/templates/shop/nothing",
    "v1/dlq?limit=1&offset=1",
    "v1/dlq?resolution_status=nothing",
    "v1/dlq/task/FAILED",
    "v1/dlq/task/COMPLETE",
    "v1/dlq/groups",
    "v1/dlq/investigation-queue?limit=1",
    "v1/dlq/stats",
    "v1/doctor",
    "v1/events",
    "v1/events/incoming",
    "v1/events/subscribers",
    "v1/handlers",
    "v1/handlers/shop",
    "v1/handlers/shop/orders",
    "v1/handlers/shop/nothing",
    "v1/limits",
    "v1/listings/identifiers?beginning=0",
    "v1/listings/tasks?limit=1&template=orders&status=error",
    "v1/operator_actions?limit=1",
    "v1/pauses",
    "v1/queues",
    "v1/refused-messages",
    "v1/schedules?limit=1",
    "v1/schedules/shop/orders/nightly",
    "v1/schedules/shop/orders/nightly/fires",
    "v1/schedules/shop/orders/nightly/upcoming?count=2&after=2027-03-26T00:00:00Z",
    "v1/schedules/shop/orders/nightly/upcoming?count=0",
    "v1/tasks?per_page=2",
    "v1/tasks?per_page=2&page=2&sort=created_at",
    "v1/tasks?status=complete&namespace=shop&name=orders&tag=a",
    "v1/tasks?per_page=0",
    "v1/tasks?sort=size",
    "v1/tasks?cursor=x",
    "v1/tasks/COMPLETE",
    "v1/tasks/COMPLETE?steps_limit=1&steps_offset=1",
    "v1/tasks/FAILED",
    "v1/tasks/nothing",
    "v1/tasks/01900000-0000-7000-8000-000000000000",
    "v1/tasks/FAILED/audit",
    "v1/tasks/FAILED/context",
    "v1/tasks/FAILED/details",
    "v1/tasks/FAILED/explain",
    "v1/tasks/WAITING/explain?step=never&names=true",
    "v1/tasks/FAILED/history?limit=2",
    "v1/tasks/COMPLETE/logs?step=charge&limit=2",
    "v1/tasks/COMPLETE/logs?level=loud",
    "v1/tasks/COMPLETE/logs?after=nothing",
    "v1/tasks/COMPLETE/progress",
    "v1/tasks/COMPLETE/report?limit=1",
    "v1/tasks/COMPLETE/template",
    "v1/tasks/FAILED/workflow_steps",
    "v1/tasks/COMPLETE/workflow_steps?limit=1&offset=1",
    "v1/templates",
    "v1/templates?per_page=1",
    "v1/templates/shop/orders/1.0.0",
    "v1/templates/shop/orders/9.9.9",
    "v1/templates/shop/orders/1.0.0/graph?format=dot",
    "v1/templates/shop/orders/1.0.0/graph?format=svg",
    "v1/workers?stopped=true",
    "v1/nothing",
]
PAGES = [
    "ui/tasks",
    "ui/tasks?status=error&limit=2",
    "ui/tasks?status=nothing",
    "ui/tasks/COMPLETE",
    "ui/tasks/FAILED",
    "ui/tasks/WAITING",
    "ui/tasks/SCHEDULED",
    "ui/tasks/nothing",
    "ui/dead-letters",
    "ui/dead-letters/groups",
    "ui/dead-letters/entries",
    "ui/dead-letters/stale",
    "ui/dead-letters/tasks/FAILED",
    "ui/dead-letters/replays",
    "ui/templates",
    "ui/templates/shop/orders",
    "ui/templates/shop/orders/1.0.0",
    "ui/templates/new",
    "ui/schedules",
    "ui/schedules/shop/orders/nightly",
    "ui/fleet",
    "ui/events",
    "ui/settings",
    "ui/settings/doctor",
    "ui/settings/actions",
    "ui/help",
    "ui/nothing",
]
ATTRIBUTES = ("href", "action", "name", "value", "aria-label", "title", "data-state")
SECRET = "form_token"


class Shown(HTMLParser):
    """The text of a page's main part with its links and fields, one per line."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._is_in_main = self._is_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_in_main |= tag == "main"
        self._is_script = tag == "script"
        values = dict(attrs)
        shown = [f"{name}={values[name]}" for name in ATTRIBUTES if values.get(name)]
        if (values.get("class") or "").startswith("state "):
            shown.append(f"class={values['class']}")
        if shown and self._is_in_main and values.get("name") != SECRET:
            self.lines.append(f"<{tag} {' '.join(shown)}>")

    def handle_endtag(self, tag: str) -> None:
        self._is_in_main &= tag != "main"
        self._is_script = False

    def handle_data(self, data: str) -> None:
        if self._is_in_main and not self._is_script and (text := " ".join(data.split())):
            self.lines.append(text)


def test_the_api_answers_what_is_recorded(served: Served) -> None:
    texts: dict[str, str] = {}
    with httpx.Client(base_url=served.url) as client:
        for path in ANSWERS:
            response = client.get(f"/{_with_tasks(served, path)}")
            kind = response.headers["content-type"]
            body = json.dumps(response.json(), indent=1, ensure_ascii=False) if "json" in kind else response.text
            subject = path.removeprefix("v1/").partition("/")[0].partition("?")[0]
            _append(texts, subject, f"GET /{path}  {response.status_code} {kind}", body)
    assert_recorded("answers", texts)


def test_the_pages_show_what_is_recorded(served: Served) -> None:
    texts: dict[str, str] = {}
    with httpx.Client(base_url=served.url, follow_redirects=True) as client:
        for path in PAGES:
            response = client.get(f"/{_with_tasks(served, path)}")
            page = Shown()
            page.feed(response.text)
            subject = path.removeprefix("ui").strip("/").partition("/")[0].partition("?")[0] or "overview"
            _append(texts, subject, f"GET /{path}  {response.status_code}", "\n".join(page.lines))
    assert_recorded("pages", texts)


def test_log_lines_go_on_after_the_place_of_the_last_one(served: Served) -> None:
    with httpx.Client(base_url=served.url) as client:
        path = _with_tasks(served, "/v1/tasks/COMPLETE/logs")
        lines = client.get(path).json()
        rest = client.get(path, params={"after": lines[1]["place"]}).json()
    assert rest == lines[2:] != []


def _with_tasks(served: Served, path: str) -> str:
    """The path with the tasks that its words in capitals stand for."""
    return re.sub(r"\b[A-Z]+\b", lambda word: served.tasks[word[0].lower()][0], path)


def _append(texts: dict[str, str], subject: str, request: str, body: str) -> None:
    _, text, _ = without_moments((0, body, ""))
    texts[subject] = texts.get(subject, "") + f"{request}\n{text}\n\n"
