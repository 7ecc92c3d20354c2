"""One set of commands, two transports: what a server's client is shown is what the database's is, byte for byte."""

from __future__ import annotations

import pytest

from tests.integration.two_transports.conftest import MOVING, UUID, Served, without_moments
from tests.support.recorded import assert_recorded

EXACT = [
    "task list",
    "task list --format json",
    "task list --status error --template orders --tag nothing",
    "task list --waiting-for event",
    "approval list",
    "approval list --namespace shop --template orders --limit 3 --format json",
    "approval show COMPLETE charge",
    "approval decide COMPLETE charge --approve --comment fine",
    "events incoming",
    "events incoming --namespace shop --name payment.settled --key 7 --limit 3 --format json",
    "events send shpo payment.settled --key 7",
    "events send shop payment.settled --keep 7 --payload [1]",
    "task list --open --version 1.0.0 --initiator nobody --source-system none --until 1h --oldest-first",
    "task list --fingerprint 0123456789abcdef",
    "task list --correlation-id 00000000-0000-7000-8000-000000000000",
    "task list --namespace shop --limit 2 --offset 1 --since 1h --format json",
    "task show COMPLETE",
    "task show COMPLETE --format json",
    "task show FAILED --all --traceback",
    "task show FAILED --format json",
    "task show WAITING",
    "task show SCHEDULED",
    "task show SCHEDULED --format json",
    "task show COMPLETE --at 2020-01-01",
    "task record COMPLETE",
    "task record COMPLETE --keep input.nothing",
    "task record FAILED --format json",
    "task record WAITING",
    "task replay COMPLETE --step nothing",
    "task history FAILED",
    "task history FAILED --format json",
    "task history FAILED --step check",
    "task history FAILED --step nothing",
    "task steps COMPLETE",
    "task steps FAILED --format json",
    "task step COMPLETE charge",
    "task step COMPLETE charge --format json",
    "task step COMPLETE nothing",
    "task step inputs COMPLETE charge",
    "task step inputs COMPLETE charge --format json",
    "task step inputs COMPLETE nothing",
    "task step inputs WAITING never",
    "task audit FAILED",
    "task logs COMPLETE",
    "task logs COMPLETE --step charge --level warning --attempt 1 --format json",
    "task logs FAILED",
    "task logs 01900000-0000-7000-8000-000000000000",
    "task audit COMPLETE charge --format json",
    "task watch COMPLETE",
    "task watch FAILED",
    "task show 01900000-0000-7000-8000-000000000000",
    "task show 0190",
    "task show zzzzzzzz --format json",
    "task cancel COMPLETE",
    "task cancel COMPLETE --format json",
    "task step reset COMPLETE charge",
    "task submit shop/nothing",
    "task submit shop/orders --set amount=many",
    "task submit shop/orders:9.9.9 --format json",
    "task submit shop/orders --set amount=1 --in 5",
    "task submit shop/orders --set amount=1 --at tomorrow",
    "task submit shop/orders --set amount=1 --at 2099-01-01T10:00:00Z --in 5m",
    "template list",
    "template list --format json",
    "template list --namespace shop --name orders",
    "template list --limit 1",
    "template list --namespace shp",
    "template list --namespace shop --name ordrs",
    "template diff shop/orders:1.0.0 shop/orders",
    "template diff shop/orders:1.0.0 nobody/waiting --format json",
    "template diff shop/orders shop/ordrs",
    "schedule list",
    "schedule list --format json",
    "schedule list --namespace shop --template orders --limit 1",
    "schedule show shop/orders/nightly",
    "schedule show shop/orders/nightly --format json",
    "schedule show shop/orders/never",
    "schedule show nightly",
    "schedule next shop/orders/nightly --after 2027-03-26T00:00:00Z --count 4",
    "schedule next shop/orders/nightly --after 2027-03-26T00:00:00Z --count 4 --format json",
    "schedule next shop/orders/never",
    "schedule backfill shop/orders/nightly --from 2020-03-26 --to 2020-03-30 --dry-run",
    "schedule backfill shop/orders/nightly --from 2020-03-26 --to 2020-03-30 --dry-run --format json",
    "schedule backfill shop/orders/nightly --from 2020-03-30 --to 2020-03-26",
    "schedule backfill shop/orders/nightly --from 2010-03-30 --to 2020-03-26",
    "schedule create shop/orders/other --cron nonsense --timezone Mars",
    "schedule create shop/orders/other --every 5m",
    "schedule create shop/orders/nightly --every 5m --set amount=1",
    "schedule create shop/nothing/other --every 5m",
    "pause list",
    "pause list --format json",
    "pause nothing",
    "resume shop",
    "dlq list",
    "dlq list --reason max_retries_exceeded --namespace shop --template orders --limit 3 --format json",
    "dlq list --fingerprint nothing",
    "dlq show FAILED",
    "dlq show FAILED --format json",
    "dlq show 01900000-0000-7000-8000-000000000000",
    "dlq stats",
    "dlq groups --format json",
    "dlq groups",
    "dlq replays",
    "dlq replays --format json",
    "dlq replay --all --dry-run",
    "actions",
    "actions --actor nobody --since 1h --limit 3 --format json",
    "task refused",
    "task refused --queue worker_shop_queue --limit 1 --format json",
    "doctor",
    "doctor --format json",
]
AT_ANOTHER_MOMENT = [
    "task watch COMPLETE --format json",
    "task explain WAITING",
    "task explain SCHEDULED",
    "task explain FAILED --format json",
    "task explain WAITING --step never --format json",
    "task explain WAITING --step nothing",
    "worker list --all",
    "worker list --all --callables --format json",
    "dlq stats --format json",
    "dlq queue --format json",
    "dlq staleness --format json",
    "analytics versions shop/orders",
    "analytics versions shop/orders --format json",
    "analytics versions shop/nothing",
    "analytics performance",
    "analytics performance --format json",
    "analytics bottlenecks --format json",
    "limit list",
    "limit list --keys 5",
    "limit list --format json",
    "analytics scaling --min-workers 1",
    "analytics scaling --format json",
    "broker status",
    "broker status --format json",
    "top --once",
    "top --once --format json",
]
ON_THE_DATABASE = [
    "db check",
    "db check --format json",
    "db check --repair",
    "db check --repair --format json",
    "db prune --completed-days 1 --dry-run",
    "db prune --completed-days 1 --dry-run --format json",
]
BY_SPEED = {"analytics bottlenecks --format json", "top --once", "top --once --format json"}
"""Not recorded: what was done in the last seconds, and an order by duration."""
CHANGING = {
    "cancel": ["task cancel TASK --reason enough", "task cancel TASK", "task history TASK"],
    "reset": ["task step reset TASK check --format json", "task step reset TASK check", "task steps TASK"],
    "resolve": ["task resolve-step TASK check --reason x --resolved-by ada", "task audit TASK --format json"],
    "complete step": ['task step complete TASK check --result {"amount":2} --format json', "task step TASK check"],
    "rerun": [
        "task rerun TASK --from check --set amount=5 --reason again --format json",
        "task rerun TASK --reason again",
        "task rerun TASK --from nothing",
        "task rerun TASK --from check --set amount=many",
    ],
    "retry": ["task retry TASK --reason again --format json", "task retry TASK"],
    "pause": [
        "pause --task TASK --reason later",
        "pause --task TASK",
        "task explain TASK --format json",
        "resume --task TASK --format json",
        "resume --task TASK",
        "pause --task TASK --format json",
        "resume --task TASK",
    ],
    "retry and close": [
        "dlq retry TASK --reason again --format json",
        "dlq retry TASK",
        "dlq retry 01900000-0000-7000-8000-000000000000",
    ],
    "opened": [
        "dlq open TASK --notes look",
        'dlq update TASK --metadata {"ticket":7} --format json',
        "dlq update TASK --notes found --by ada",
        "dlq update TASK --metadata -",
        "dlq update TASK --status manually_resolved",
        "dlq update TASK --status solved",
        "dlq update TASK",
        "dlq show TASK --format json",
        "dlq show TASK",
    ],
    "request": [
        "task request shop/orders --set amount=7 --priority 3 --format json",
        "task request shop/orders:1.0.0 --idempotency-key KEY",
        "task request orders",
    ],
    "submit": [
        "task submit shop/orders --set amount=7 --idempotency-key KEY --tag x --priority 3 --format json",
        "task submit shop/orders --set amount=7 --idempotency-key KEY --on-duplicate return --format json",
        "task submit nobody/waiting --wait --timeout 0.05 --format json",
    ],
}


def told(served: Served, place: str, command: str, **names: str) -> tuple[int, str, str]:
    named = {purpose.upper(): tasks[0] for purpose, tasks in served.tasks.items()} | names
    words = [named.get(word, word) for word in command.split()]
    result = served.invoke(place, *words, color=True, stdin='{"ticket": 8}')
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def record(texts: dict[str, str], command: str, answer: tuple[int, str, str]) -> None:
    """Append the command and its answer to the text of its group."""
    code, output, errors = answer
    lines = [f"$ tasker {command}" + (f"  # exit {code}" if code else ""), *output.splitlines()]
    lines += [f"stderr: {line}" for line in errors.splitlines()]
    group = command.split()[0]
    texts[group] = texts.get(group, "") + "".join(f"{line.rstrip()}\n" for line in [*lines, ""])


def test_commands_print_what_is_recorded_over_both_transports(served: Served) -> None:
    """In this order: what a command prints depends on what was changed before."""
    texts: dict[str, str] = {}
    for command in (*EXACT, *AT_ANOTHER_MOMENT):
        server, database = (told(served, place, command) for place in ("server", "database"))
        assert without_moments(server) == without_moments(database), command
        assert server == database or command in AT_ANOTHER_MOMENT, command
        if command not in BY_SPEED:
            record(texts, command, without_moments(database))
    for purpose, commands in CHANGING.items():
        tasks = served.tasks.get(purpose, ["", ""])
        for command in commands:
            server, database = (
                without_moments(told(served, place, command, TASK=tasks[number], KEY=place))
                for number, place in enumerate(("server", "database"))
            )
            assert server == database, command
            record(texts, command, database)
    for command in ON_THE_DATABASE:
        record(texts, command, without_moments(told(served, "database", command)))
    assert_recorded("commands", texts)


@pytest.mark.parametrize("place", ["database", "server"])
def test_a_filter_that_names_nothing_says_so(served: Served, place: str) -> None:
    for command in ("task list", "dlq list", "events list", "dlq replay --dry-run"):
        found = served.invoke(place, *command.split(), "--namespace", "shpo")
        assert (found.exit_code, "there is no namespace 'shpo'" in found.stderr) == (2, True), command
        assert "did you mean `shop`?" in found.stderr
    found = served.invoke(place, "task", "list", "--namespace", "shop", "--template", "order")
    assert (found.exit_code, "there is no template 'order'" in found.stderr) == (2, True)
    assert served.invoke(place, "task", "list", "--namespace", "shop", "--status", "blocked_by_failures").exit_code == 0


def test_a_replay_that_only_tells_is_not_among_what_was_done_by_hand(served: Served) -> None:
    for place in ("database", "server"):
        assert served.invoke(place, "dlq", "replay", "--all", "--dry-run").exit_code == 0
    told = served.invoke("database", "actions", "--limit", "1000").stdout
    assert "replay" not in told


def test_pruning_what_does_not_exist_says_so(served: Served) -> None:
    found = served.invoke("database", "db", "prune", "--completed-days", "1", "--namespace", "shpo", "--dry-run")
    assert (found.exit_code, "did you mean `shop`?" in found.stderr) == (2, True)


OF_SCHEDULES = [
    "schedule pause SCHEDULE --reason later",
    "schedule pause SCHEDULE",
    "schedule show SCHEDULE",
    "schedule trigger SCHEDULE",
    "schedule trigger SCHEDULE --reason now --format json",
    "schedule backfill SCHEDULE --from 2020-03-26 --to 2020-03-28",
    "schedule backfill SCHEDULE --from 2020-03-26 --to 2020-03-28 --format json",
    "schedule show SCHEDULE --format json",
    "schedule resume SCHEDULE",
    "schedule resume SCHEDULE",
    "schedule create SCHEDULE --every 1h --set amount=2 --overwrite",
    "schedule delete SCHEDULE --format json",
    "schedule delete SCHEDULE",
]


def test_a_schedule_changes_alike_over_both_transports(served: Served) -> None:
    for command in OF_SCHEDULES:
        said = [
            MOVING.sub("*", UUID.sub("UUID", answer.output.replace(name, "SCHEDULE")))
            for place, name in (("database", "first"), ("server", "second"))
            for answer in [served.invoke(place, *command.replace("SCHEDULE", f"shop/orders/{name}").split())]
        ]
        assert said[0] == said[1], command
