"""Findings about the system, each with what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from tasker.dataclasses import dataclass
from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.template.rates import rate_text
from tasker.version import __version__
from tasker.views.fleet import CHECKS, DoctorFinding

WAITED_SECONDS = 30.0
"""Age of an enqueued step from which it should have a message: sweeps repair a lost one within seconds."""
EXAMPLES = 3
SLICE, ENDED_SLICE = 500, 2_000
"""Number of open and of ended tasks read by one statement."""
FIRST = "00000000-0000-0000-0000-000000000000"
SWEEP = "the next sweep of any process"
NOT_REPAIRED = "no component repairs it: please report it"
REPAIRED = frozenset(
    {
        "ready, but neither enqueued nor in the backlog",
        "marked as paused, but no pause applies",
        "in the backlog, but not ready",
        "counter of enqueued steps differs",
    }
)
"""Violated invariants that a sweep repairs, some of them once a minute (`tasker.repair_v1`)."""


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """Inconsistency: description, count, examples, and the component that repairs it ('' if no repair is needed)."""

    what: str
    count: int
    examples: tuple[str, ...]
    repaired_by: str

    @property
    def is_broken(self) -> bool:
        """True if nothing repairs it automatically."""
        return self.repaired_by == NOT_REPAIRED


class TaskChecks:
    """Comparison of tasks with the engine's invariants, in slices: each statement reads only the tasks of one slice."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def slices(self, which: Literal["open", "ended"], limit: int) -> AsyncIterator[list[str]]:
        """Yield the identifiers of all open or ended tasks, up to `limit` at a time, oldest first."""
        after = FIRST
        while tasks := [row[0] for row in await self.rows(which, after=after, limit=limit)]:
            yield tasks
            after = tasks[-1]

    async def without_message(self, tasks: Sequence[str]) -> list[tuple[str, list[str]]]:
        """Return, by namespace, the enqueued steps of these tasks that have no message."""
        rows = await self.rows("enqueued", tasks=tasks, seconds=WAITED_SECONDS)
        return list((await self._engine.hints_missing_in(dict(rows))).items()) if rows else []

    async def unheld(self, tasks: Sequence[str]) -> list[str]:
        """Return the steps of these tasks that are in progress on a worker that is not alive."""
        return [row[0] for row in await self.rows("unheld", tasks=tasks)]

    async def rows(self, name: str, **params: Any) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a query of `checks.sql`."""
        return await self._engine.connection.execute(query("doctor", name), params)


class Broken:
    """Violations by rule, without duplicates: a task may appear in two slices."""

    def __init__(self) -> None:
        self._by_rule: dict[str, dict[tuple[str, str], None]] = {}

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows of `violations_v1`."""
        for rule, subject, detail in rows:
            self._by_rule.setdefault(rule, {})[subject or "", detail or ""] = None

    def items(self) -> list[tuple[str, list[str]]]:
        """Return each rule, in alphabetical order, with its subjects and their details."""
        named = sorted(self._by_rule.items())
        return [(rule, [" ".join(filter(None, subject)) for subject in subjects]) for rule, subjects in named]


class Checks:
    """Read-only consistency checks of all tasks."""

    def __init__(self, engine: Engine) -> None:
        self._tasks = TaskChecks(engine)

    async def run(self) -> list[CheckFinding]:
        """Return all findings, violated invariants first. Raises `DatabaseError`, `MessagingError`."""
        tasks, broken, unheld = self._tasks, Broken(), list[str]()
        without: dict[str, list[str]] = {}
        broken.add(await tasks.rows("fleet_violations"))
        aside = [
            CheckFinding(f"quarantined messages: {what}", count, (f"last at {at}",), "")
            for what, count, at in await tasks.rows("set_aside")
        ]
        async for some in tasks.slices("open", SLICE):
            broken.add(await tasks.rows("violations", tasks=some))
            unheld += await tasks.unheld(some)
            for namespace, steps in await tasks.without_message(some):
                without.setdefault(namespace, []).extend(steps)
        async for some in tasks.slices("ended", ENDED_SLICE):
            broken.add(await tasks.rows("violations", tasks=some))
        return [
            *(
                _finding(rule, subjects, SWEEP if rule in REPAIRED else NOT_REPAIRED)
                for rule, subjects in broken.items()
            ),
            *(_finding(f"enqueued in {name}, without a message", without[name], SWEEP) for name in sorted(without)),
            *([_finding("in progress on a worker that is not alive", unheld, SWEEP)] if unheld else []),
            *aside,
        ]


def _finding(what: str, subjects: list[str], repaired_by: str) -> CheckFinding:
    return CheckFinding(what, len(subjects), tuple(subjects[:EXAMPLES]), repaired_by)


OPEN = 20_000
"""Maximum number of open tasks read, oldest first; `tasker db check` reads all."""
SAMPLE = 100
"""Number of finished tasks read: that many of the newest, and that many at random."""
CLOCK_TOLERANCE_MS = 10_000
"""Tolerated clock difference: a process creates its identifier some time before it is registered."""
CONNECTIONS = 6
"""Maximum number of database connections of a process."""


@dataclass(frozen=True, slots=True)
class LiveProcessRow:
    """Process with a valid lease; `ahead_ms` is the difference of its clock from the database's when it started."""

    name: str
    kind: str
    host: str
    version: str
    backend: str
    namespaces: Sequence[str]
    slots: int
    ahead_ms: int


@dataclass(frozen=True, slots=True)
class DifferingLimit:
    """Limit of a process's configuration that has other numbers than the one in force."""

    process: str
    host: str
    name: str
    most: int | None
    rate: float | None
    most_in_force: int | None
    rate_in_force: float | None


class Doctor:
    """Read-only diagnosis; `window` is this process's enqueue window, `expected` the expected connections of the fleet.

    All methods raise `DatabaseError` and `MessagingError`.
    """

    def __init__(self, engine: Engine, window: int, expected: int) -> None:
        self._engine, self._window, self._expected = engine, window, expected
        self._checks = TaskChecks(engine)

    async def findings(self) -> list[DoctorFinding]:
        """Return all findings in the order of `CHECKS`, from the oldest open tasks and a sample of finished ones."""
        fleet = [LiveProcessRow(*row) for row in await self._rows("processes")]
        findings = [*versions(fleet), *await self._connections(), *await self._unexpected(), *await self._upkeep()]
        findings += [*settings(fleet, self._window, self._engine), *clocks(fleet), *await self._own_clock()]
        findings += limits([DifferingLimit(*row) for row in await self._rows("limits_of_processes")])
        findings += [untagged(*row) for row in await self._rows("untagged")]
        findings += await self._tasks(fleet)
        return sorted(findings, key=lambda finding: CHECKS.index(finding.check))

    async def _connections(self) -> list[DoctorFinding]:
        statement = query("database", "capacity")
        ((allowed, reserved, in_use, live),) = await self._engine.connection.execute(statement)
        room, needed = allowed - reserved, live * CONNECTIONS
        if needed <= room and in_use < 0.9 * room:
            return []
        what = f"{in_use} of {room} connections are used, and {live} processes take up to {needed}"
        fix = "raise max_connections of the server, put a pooler in front, or start fewer processes"
        return [DoctorFinding("connections", what, fix)]

    async def _unexpected(self) -> list[DoctorFinding]:
        ((connections,),) = await self._engine.connection.execute(query("database", "ours"))
        if connections <= self._expected:
            return []
        what = f"{connections} connections to this database are Tasker's, and {self._expected} are expected"
        fix = "list them by application_name in pg_stat_activity; if the number is intended, set "
        fix += "orchestration.web.database_pools.max_total_connections_hint"
        return [DoctorFinding("connections", what, fix, wrong=False)]

    async def _upkeep(self) -> list[DoctorFinding]:
        ((enabled,),) = await self._engine.connection.execute(query("database", "upkeep"))
        if enabled:
            return []
        what = "autovacuum is disabled on this server: outdated statistics make queries slow"
        return [DoctorFinding("settings", what, "set autovacuum = on and track_counts = on, and reload the server")]

    async def _own_clock(self) -> list[DoctorFinding]:
        before = datetime.now(UTC)
        ((now,),) = await self._rows("now")
        ahead = (before + (datetime.now(UTC) - before) / 2 - now).total_seconds() * 1000
        return clock("this machine", round(ahead)) if abs(ahead) > CLOCK_TOLERANCE_MS else []

    async def _tasks(self, fleet: Sequence[LiveProcessRow]) -> list[DoctorFinding]:
        broken, lost, parked, read = Broken(), list[str](), False, 0
        without: dict[str, list[str]] = {}
        broken.add(await self._checks.rows("fleet_violations"))
        findings: list[DoctorFinding] = []
        async for tasks in self._checks.slices("open", SLICE):
            if read >= OPEN:
                findings.append(not_all_read(read))
                break
            read += len(tasks)
            broken.add(await self._checks.rows("violations", tasks=tasks))
            for namespace, steps in await self._checks.without_message(tasks):
                without.setdefault(namespace, []).extend(steps)
            lost += await self._checks.unheld(tasks)
            parked = parked or (await self._rows("parked", tasks=tasks))[0][0]
        if finished := [row[0] for row in await self._rows("finished", number=SAMPLE)]:
            broken.add(await self._checks.rows("violations", tasks=finished))
        findings += [violation(rule, subjects) for rule, subjects in broken.items()]
        findings += [without_message(*missing) for missing in sorted(without.items())]
        findings += [unheld(lost, bool(fleet))] if lost else []
        if parked and not any(process.kind == "orchestrator" for process in fleet):
            what = "results wait for an orchestrator, but none is running"
            findings.append(
                DoctorFinding("queues", what, "start one: tasker orchestrator; or set result_path to inline")
            )
        return findings

    async def _rows(self, name: str, **params: Any) -> Sequence[tuple[Any, ...]]:
        return await self._engine.connection.execute(query("doctor", name), params)


def versions(fleet: Sequence[LiveProcessRow]) -> list[DoctorFinding]:
    """Return a finding if processes have another release than this one."""
    others = Counter(process.version for process in fleet if process.version != __version__)
    examples = [
        f"{process.name} on {process.host}: {process.version or 'unknown'}"
        for process in fleet
        if process.version in others
    ]
    if not others:
        return []
    what = f"{others.total()} of {len(fleet)} processes run another release than this one, {__version__}"
    fix = "finish the rolling upgrade: restart them with the same release"
    return [DoctorFinding("versions", what, fix, examples=examples[:EXAMPLES])]


def settings(fleet: Sequence[LiveProcessRow], window: int, engine: Engine) -> list[DoctorFinding]:
    """Return findings of settings that contradict those of other processes."""
    findings: list[DoctorFinding] = []
    provider = engine.messaging.provider_name()
    if strangers := [row for row in fleet if row.backend and row.backend != provider]:
        what = f"{len(strangers)} of {len(fleet)} processes use another messaging provider than {provider}"
        fix = "they do not see its messages: configure the same backend everywhere; to migrate: tasker broker migrate"
        named = [f"{row.name} on {row.host}: {row.backend}" for row in strangers]
        findings.append(DoctorFinding("settings", what, fix, examples=named[:EXAMPLES]))
    slots = Counter[str]()
    for process in fleet:
        slots.update(dict.fromkeys(process.namespaces, process.slots) if process.kind == "worker" else {})
    for namespace, number in slots.items():
        if number > window:
            what = f"workers of {namespace} have {number} slots, but its queue holds only {window} steps"
            fix = "raise common.execution.enqueue_window above the sum of max_concurrent_handlers"
            findings.append(DoctorFinding("settings", what, fix))
    return findings


def limits(differing: Sequence[DifferingLimit]) -> list[DoctorFinding]:
    """Return a finding for each limit to which processes give other numbers than those in force."""
    by_name: dict[str, list[DifferingLimit]] = {}
    for limit in differing:
        by_name.setdefault(limit.name, []).append(limit)
    findings = []
    for name, processes in by_name.items():
        first = processes[0]
        what = f"the limit {name} is {_numbers(first.most_in_force, first.rate_in_force)}, "
        what += f"but the configuration of {len(processes)} processes has other numbers"
        fix = "the newest file decides: restart them with it, or send them SIGHUP"
        examples = [f"{row.process} on {row.host}: {_numbers(row.most, row.rate)}" for row in processes[:EXAMPLES]]
        findings.append(DoctorFinding("settings", what, fix, wrong=False, examples=examples))
    return findings


def _numbers(most: int | None, rate: float | None) -> str:
    numbers = ["" if most is None else str(most), "" if rate is None else rate_text(rate)]
    return ", ".join(filter(None, numbers))


def clocks(fleet: Sequence[LiveProcessRow]) -> list[DoctorFinding]:
    """Return findings of processes whose clocks were wrong when they started."""
    wrong = [process for process in fleet if abs(process.ahead_ms) > CLOCK_TOLERANCE_MS]
    return [
        finding
        for process in wrong
        for finding in clock(f"{process.kind} {process.name} on {process.host}", process.ahead_ms)
    ]


def clock(whose: str, ahead_ms: int) -> list[DoctorFinding]:
    """Return the finding of a wrong clock."""
    where = "ahead of" if ahead_ms > 0 else "behind"
    what = f"the clock of {whose} is {abs(ahead_ms) / 1000:.0f} s {where} the database's"
    return [
        DoctorFinding("clocks", what, "synchronize it with NTP: the order of new tasks and identifiers depends on it")
    ]


def violation(rule: str, examples: Sequence[str]) -> DoctorFinding:
    is_repaired = rule in REPAIRED
    fix = "the next sweep repairs it" if is_repaired else "no sweep repairs it: please report it; see `tasker db check`"
    return DoctorFinding("rows", f"{rule}: {len(examples)}", fix, not is_repaired, examples[:EXAMPLES])


def untagged(namespace: str, tags: Sequence[str], steps: int) -> DoctorFinding:
    """Return the finding of steps that require tags which no worker of their namespace has."""
    what = f"no worker of {namespace} has the tag {', '.join(tags)}: {steps} steps wait"
    return DoctorFinding("queues", what, f"start one that has it: tasker worker --tags {','.join(tags)}")


def not_all_read(number: int) -> DoctorFinding:
    what = f"the {number:,} oldest open tasks were read; there are more"
    return DoctorFinding("rows", what, "check all of them: tasker db check", wrong=False)


def without_message(namespace: str, steps: Sequence[str]) -> DoctorFinding:
    """Return the finding of enqueued steps without a message in the queue."""
    what = f"enqueued in {namespace}, without a message: {len(steps)}"
    fix = "sweeps send them again; if the number does not drop, no process is running: start tasker worker"
    return DoctorFinding("queues", what, fix, wrong=False, examples=steps[:EXAMPLES])


def unheld(steps: Sequence[str], swept: bool) -> DoctorFinding:
    """Return the finding of steps claimed by workers that are no longer alive."""
    fix = (
        "the next sweep releases them"
        if swept
        else "no process runs sweeps: start tasker worker or tasker orchestrator"
    )
    what = f"in progress on a worker that is not alive: {len(steps)}"
    return DoctorFinding("queues", what, fix, wrong=not swept, examples=steps[:EXAMPLES])
