"""Submission in the caller's own transaction; wake-ups are sent after its commit.

SQLAlchemy only reports that a commit is about to happen, not that it has happened, so the database is asked.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain, repeat
from typing import Any

from tasker.db.caller_transaction import CallerTransaction, as_portable, call_in, guarded, portable
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.engine.answers import SubmitAnswer
from tasker.engine.fleet_rules import DEFAULT_RULES, shared_arguments
from tasker.engine.plans import FIND, not_registered, registration, require_registered, stored_plan
from tasker.errors import DuplicateTask, TaskerError, UsageError
from tasker.json_values import to_json
from tasker.messaging.backends import load_backend
from tasker.messaging.port import Backend, TransactionalBackend
from tasker.messaging.service import MessagingService
from tasker.resilience.outage import level_of
from tasker.services.submission.check import unposted
from tasker.services.submission.parents import too_deep
from tasker.services.submission.reused_keys import key_reused
from tasker.services.submission.submit import DraftFactory, Submission, SubmissionResult, submitted
from tasker.template.plan import Plan

LOCK_TIMEOUT_SECONDS = 5.0

Hints = Sequence[Mapping[str, Any]]
Send = Callable[[str, Hints], None]
"""Function called with the transaction's id and the messages just before the commit; sends them once it is
committed."""

_FIND = FIND.format(found=as_portable("t.plan"), namespace="{}", name="{}", version="{}")

EXISTING = """select cast(jsonb_build_array(t.task_uuid, t.state, t.total) as text)
  from tasker.task_details d join tasker.tasks t using (task_uuid) where d.identity_hash = {}"""

OTHER_INPUT = """select cast(context as text) from tasker.task_details
  where identity_hash = {} and context <> cast({} as jsonb)"""


class CallerSubmission:
    """Submission of tasks in transactions of the caller.

    `send` sends the messages of backends that cannot send in the transaction. `register` stores a missing template in
    the caller's transaction. Without it, a missing template is an error, and `on_missing` is called: either the
    database is not the app's one, or it no longer has the template.
    """

    def __init__(
        self,
        drafts: DraftFactory,
        backend: Backend,
        *,
        send: Send | None = None,
        register: bool = False,
        on_missing: Callable[[], object] = lambda: None,
    ) -> None:
        self._drafts, self._send, self._register, self._on_missing = drafts, send, register, on_missing
        self._joined = backend.transactional_sql() if isinstance(backend, TransactionalBackend) else None

    def submit(
        self,
        transaction: CallerTransaction,
        plan: Plan,
        request: Submission,
        *,
        lock_timeout: float = LOCK_TIMEOUT_SECONDS,
    ) -> SubmissionResult:
        """Create one task. The transaction stays usable after any error.

        Raises `InputInvalid`, `NotStorable`, `DuplicateTask`, `UsageError` for an unusable transaction, and
        `DatabaseError` if a lock is not available within `lock_timeout` seconds.
        """
        draft = self._drafts.draft(plan, request)
        with guarded(transaction, lock_timeout):
            if "callback" in draft.item and not transaction.value(query("submission", "posts_callbacks")):
                raise unposted()
            args = {
                **shared_arguments(DEFAULT_RULES),
                **self._drafts.args(self._template_id(transaction, plan), [draft], announce=True),
            }
            response = call_in(transaction, self._expression(), to_json(args))
            answer = SubmitAnswer.parse(response)
            if answer.too_deep:
                raise too_deep(self._drafts.max_depth)
            self._arrange_sending(transaction, [hint for hint in response.get("send") or () if "step" in hint])
            existing = None if answer.created else transaction.value(EXISTING, draft.identity)
            other = transaction.value(OTHER_INPUT, draft.identity, draft.input) if existing and draft.keyed else None
        result = submitted(draft, answer, json.loads(existing) if existing else None)
        if isinstance(result, DuplicateTask):
            raise result if other is None else key_reused(result, other, draft)
        return result

    def _expression(self) -> str:
        call = f"{self._joined.call}('submit_v1', " if self._joined else "tasker.submit_v1("
        return f"{call}cast({{}} as jsonb))"

    def _arrange_sending(self, transaction: CallerTransaction, hints: Hints) -> None:
        if send := self._send:
            number = transaction.value("select cast(pg_catalog.pg_current_xact_id() as text)")
            if hints:
                transaction.after_commit(lambda: send(number, hints))

    def _template_id(self, transaction: CallerTransaction, plan: Plan) -> int:
        """Find the template by content in the caller's database: in another database the id may belong to another
        template."""
        if self._register:
            return self._registered(transaction, plan)
        template_id = transaction.value("select template_id from tasker.templates where hash = {}", plan.hash)
        if template_id is None:
            self._on_missing()
            raise UsageError(
                f"the database of this transaction has no template {plan.namespace}/{plan.name} {plan.version}",
                hint="give a transaction on the app's own database (App.database_url); if it is that one and was"
                " restored or made anew, submit again: the template is registered anew",
            )
        return int(template_id)

    @staticmethod
    def _registered(transaction: CallerTransaction, plan: Plan) -> int:
        """Register the template with its stored defaults: without a process of its own, a fleet's defaults are unknown
        here."""
        template_id = transaction.value("select template_id from tasker.named_tasks where content = {}", plan.id.hash)
        if template_id is not None:
            return int(template_id)
        args = to_json(registration(plan, force=True, adopt=True))
        answer = call_in(transaction, "tasker.register_template_v1(cast({} as jsonb))", args)
        require_registered(plan, answer)
        return int(answer["template"])


@cache
def sending_backend(name: str) -> Backend:
    """Return the backend, unconnected, for its SQL only. Raises `UsageError` if it cannot send in a transaction."""
    backend = load_backend(name, {})
    if not backend.capabilities.transactional:
        raise UsageError(
            f"the {name} backend cannot send in a transaction, and no app is here to send after the commit",
            hint=f'use App.submit_in or SyncApp.submit_in of an app with backend="{name}" (work=False runs no steps)',
        )
    return backend


def registered_plan(transaction: CallerTransaction, namespace: str, name: str, version: str | None) -> Plan:
    """Return the registered template; without a version, the most recently registered one.

    Raises `UsageError` if there is none, and `PlanUnreadable`.
    """
    with guarded(transaction, LOCK_TIMEOUT_SECONDS):
        text = transaction.value(_FIND, namespace, name, version or "")
    if text is None:
        raise not_registered(namespace, name, version)
    return stored_plan(portable(text))


FIRST_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
LATER_SECONDS, LATER_TIMES = 0.5, 60

_log = logging.getLogger("tasker.submission")


class AfterCommit:
    """Sender of wake-up messages after the caller's commit, for backends that cannot send in the transaction.

    Messages lost in a crash are sent by a sweep (rule 23).
    """

    def __init__(self, connection: Statements, messaging: MessagingService, on_sent: Callable[[], None]) -> None:
        self._connection, self._messaging, self._on_sent = connection, messaging, on_sent
        self._loop = asyncio.get_running_loop()
        self._sending: set[asyncio.Task[None]] = set()
        self._closed = False

    def send(self, transaction: str, hints: Hints) -> None:
        """Send the messages once the transaction with that id is committed. After `close` this is left to the sweep.

        Thread-safe. A closed event loop raises no error, because the caller still has to commit.
        """
        try:
            self._loop.call_soon_threadsafe(self._begin, transaction, hints)
        except RuntimeError:  # the event loop is closed
            _tell_stopped(hints)

    async def close(self) -> None:
        """Stop waiting for commits and send no further messages."""
        self._closed = True
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    def _begin(self, transaction: str, hints: Hints) -> None:
        if self._closed:
            _tell_stopped(hints)
            return
        task = self._loop.create_task(self._send(transaction, hints))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, transaction: str, hints: Hints) -> None:
        try:
            created = await self._created(transaction, [hint["task"] for hint in hints])
            if created:
                await self._messaging.send_hints([hint for hint in hints if hint["task"] in created])
                self._on_sent()
        except TaskerError as error:  # the task exists; the sweep sends its messages
            _log.log(level_of(error), "wakeups_not_sent reason=%s", error)

    async def _created(self, transaction: str, tasks: list[str]) -> set[str]:
        """Wait for the end of the transaction, and return those of the tasks that exist then."""
        for pause in chain(FIRST_SECONDS, repeat(LATER_SECONDS, LATER_TIMES)):
            rows = await self._connection.execute(
                query("submission", "outcome"), {"transaction": transaction, "tasks": tasks}
            )
            open_still, created = rows[0]
            if not open_still:
                return set(created)
            await asyncio.sleep(pause)
        return set()


def _tell_stopped(hints: Hints) -> None:
    _log.info("wakeups_not_sent count=%s reason=the app has stopped, a sweep sends them", len(hints))
