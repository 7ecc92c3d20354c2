"""Every named query is one that each server understands, whichever of them its callers are tested on."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
from psycopg import pq

from tasker.db.sql_files import FOLDER, query

PARAMETER, PART = re.compile(r"%\((\w+)\)s"), re.compile(r"\{\w+\}")
COLUMNS = query("client", "columns")
ASSEMBLED = {
    "{columns}": COLUMNS,
    "{matching}": "from tasker.tasks t join tasker.task_details d on d.task_uuid = t.task_uuid where true",
    "{beyond}": "<",
    "{of_common}": "select d.task_uuid from tasker.task_details d",
    "{common}": "and d.initiator = 'shop'",
    "{order}": "desc",
    "{missing}": "tasker_pgmq.missing_v1",
    "{page_of_steps}": query("tasks", "page_of_steps"),
    "{edges_of_page}": "and e.to_step_uuid = any (array['01900000-0000-7000-8000-000000000000'::uuid])",
    "{of_page}": "and s.workflow_step_uuid = any (array['01900000-0000-7000-8000-000000000000'::uuid])",
    "{names}": "null",
    "{mine}": query("approvals", "mine") + query("approvals", "named"),
    "{task}": query("client", "tasks").format(columns=COLUMNS),
    "{steps}": query("client", "steps"),
}
NOT_ALONE = {
    ("listing", "tasks"),
    ("listing", "details"),
    ("database", "costly"),
    ("tasks", "static_names"),
    ("client", "columns"),
    ("approvals", "mine"),
    ("approvals", "named"),
}
"""What begins the lists below or is a part of another, and what is asked of an extension that need not be there."""
CONDITION = f"select {ASSEMBLED['{matching}']} and "


def statements() -> Iterator[tuple[str, str]]:
    """Each query with where it is, if it says something by itself or as a condition of a list."""
    texts = ((file, file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.sql")))
    named = {(file.stem, name) for file, text in texts for name in re.findall(r"^-- name: (.+)$", text, re.M)}
    for file, name in sorted(named - NOT_ALONE):
        text = PART.sub(lambda part: ASSEMBLED[part[0]], query(file, name))
        is_condition = file == "listing" and not text.startswith(("select", "with"))
        yield f"{file}.sql: {name}", CONDITION + text if is_condition else text


def numbered(text: str) -> bytes:
    """With parameters as the server has them."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(PARAMETER.findall(text)), 1)}
    return PARAMETER.sub(lambda found: f"${numbers[found[1]]}", text).replace("%%", "%").encode()


def test_each_query_fits_the_schema(module_database_url: str) -> None:
    with psycopg.connect(module_database_url, autocommit=True) as connection:
        answers = {where: connection.pgconn.prepare(b"", numbered(text)) for where, text in statements()}

    wrong = {where: each for where, each in answers.items() if each.status != pq.ExecStatus.COMMAND_OK}
    assert len(answers) > 100
    assert {where: each.error_message.decode() for where, each in wrong.items()} == {}
