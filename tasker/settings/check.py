"""Check of a configuration: all problems at once, also those between settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, time
from difflib import get_close_matches
from itertools import takewhile
from typing import Any

from tasker.dataclasses import dataclass
from tasker.redaction import REDACTED, is_secret
from tasker.settings.catalogue import accepted, by_path, pattern_of, tables
from tasker.settings.http import OrchestrationGrpc, OrchestrationWeb, WorkerGrpc, WorkerWeb
from tasker.settings.inherited import overruled, resolved
from tasker.settings.installed_tables import settings_model
from tasker.settings.model import Settings
from tasker.settings.nested import find, without
from tasker.settings.refused_keys import REFUSED, RESERVED
from tasker.settings.table import InvalidTable, Issue


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """Problem of a setting: its path, the value, the issue and the fix. `place` is `FILE:LINE` or another source."""

    path: str
    value: Any
    issue: str
    fix: str
    place: str | None = None

    def __str__(self) -> str:
        value = show_value(self.path, self.value) + (f"  ({self.place})" if self.place else "")
        return f"Validation Error: {self.path}\nValue: {value}\nIssue: {self.issue}\nFix: {self.fix}"

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain data, with the value as displayed."""
        value = show_value(self.path, self.value)
        return {"path": self.path, "value": value, "issue": self.issue, "fix": self.fix, "place": self.place}


def render(problems: Iterable[SettingProblem]) -> str:
    """Join the problems with empty lines."""
    return "\n\n".join(map(str, problems))


def show_value(path: str, value: Any) -> str:
    """Format a value as TOML, with secrets redacted.

    A value that does not belong to a parameter is shown only as its kind, since an unknown key or a misplaced table may
    contain a secret.
    """
    if pattern_of(path.partition("[")[0]) not in by_path() or _holds_tables(value):
        return kind_of(value)
    if is_secret(path.rpartition(".")[2], value):
        return REDACTED
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else f"{text[:197]}..."


def kind_of(value: Any) -> str:
    """Return the kind of TOML value in words."""
    return next((words for kind, words in _KINDS if isinstance(value, kind)), "a value")


def _holds_tables(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, (list, tuple)) and any(map(_holds_tables, value)))


_KINDS: tuple[tuple[type, str], ...] = (
    (Mapping, "a table"),
    (str, "a text"),
    (bool, "a switch"),
    (int, "a whole number"),
    (float, "a number"),
    (list, "a list"),
    (tuple, "a list"),
    (date, "a date"),
    (time, "a time"),
)


_ORDERED = (
    ("common.database.pool.min_connections", "common.database.pool.max_connections"),
    ("orchestration.decision_points.warn_threshold_steps", "orchestration.decision_points.max_steps_per_decision"),
    ("orchestration.decision_points.warn_threshold_depth", "orchestration.decision_points.max_decision_depth"),
    *(
        (f"{context}.web.database_pools.web_api_pool_size", f"{context}.web.database_pools.web_api_max_connections")
        for context in ("orchestration", "worker")
    ),
    (
        "common.queues.queue_depth_thresholds.critical_threshold",
        "common.queues.queue_depth_thresholds.overflow_threshold",
    ),
)
"""(smaller, larger): the first must not be above the second."""


def broken_rules(settings: Settings) -> Iterator[SettingProblem]:
    """Yield a problem for each violated rule."""
    used = resolved(settings)
    values, backend_paths = used.settings.to_dict(), {common: path for path, common in overruled(settings)}
    for pair in _ORDERED:
        overruling = any(used.taken_from.get(path) == backend_paths.get(path, "") for path in pair)
        smaller, larger = (backend_paths[path] for path in pair) if overruling else pair
        low, high = find(values, smaller), find(values, larger)
        if low > high:
            yield SettingProblem(
                smaller, low, f"Above {larger} ({high})", f"Lower it to {high} or less, or raise the other"
            )
    yield from _no_way_to_work(settings)
    yield from _one_port_twice(settings)
    yield from _no_credentials(settings)
    yield from _limits_without_numbers(settings)


def _limits_without_numbers(settings: Settings) -> Iterator[SettingProblem]:
    for name, limit in settings.limits.items():
        path = f"limits.{name}"
        if not (limit.concurrency or limit.rate):
            yield SettingProblem(
                path, limit.to_dict(), "Neither concurrency nor rate is set", "Set concurrency, rate or both"
            )
        elif limit.burst and not limit.rate:
            yield SettingProblem(f"{path}.burst", limit.burst, "A burst without a rate", "Set rate, or remove burst")


def _no_credentials(settings: Settings) -> Iterator[SettingProblem]:
    tables = {"orchestration.web.auth": settings.orchestration.web.auth, "worker.web.auth": settings.worker.web.auth}
    for name, auth in tables.items():
        if not auth.enabled:
            continue
        published = auth.jwt_verification_method == "jwks"
        if published and not auth.jwks_url:
            yield SettingProblem(f"{name}.jwks_url", "", "jwt_verification_method is jwks, and this is empty", "Set it")
        keys = auth.api_key or (auth.api_keys_enabled and auth.api_keys)
        if not (published or auth.jwt_public_key or auth.jwt_public_key_path or keys):
            issue = "No credentials are configured: neither an API key nor a key to verify tokens"
            fix = "Set jwt_public_key_path, or jwks_url, or api_key, or api_keys_enabled and api_keys; or turn it off"
            yield SettingProblem(f"{name}.enabled", True, issue, fix)


def _no_way_to_work(settings: Settings) -> Iterator[SettingProblem]:
    worker = settings.worker.event_systems.worker
    if worker.deployment_mode == "PollingOnly" and not worker.metadata.fallback_poller.enabled:
        path = "worker.event_systems.worker.metadata.fallback_poller.enabled"
        yield SettingProblem(
            path, False, "With deployment_mode PollingOnly, no component would fetch work", "Set it to true"
        )


def _one_port_twice(settings: Settings) -> Iterator[SettingProblem]:
    taken: dict[str, str] = {}
    servers: dict[str, OrchestrationWeb | WorkerWeb | OrchestrationGrpc | WorkerGrpc] = {
        "orchestration.web": settings.orchestration.web,
        "orchestration.grpc": settings.orchestration.grpc,
        "worker.web": settings.worker.web,
        "worker.grpc": settings.worker.grpc,
    }
    for name, server in servers.items():
        if not server.enabled:
            continue
        path = f"{name}.bind_address"
        other = taken.setdefault(server.bind_address, path)
        if other != path:
            yield SettingProblem(path, server.bind_address, f"The same address as {other}", "Give each its own port")


PlaceOf = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class CheckedSettings:
    """Result of a check; `usable` are the settings without the values that have a problem."""

    usable: Settings
    problems: tuple[SettingProblem, ...]

    @property
    def settings(self) -> Settings | None:
        """The settings, or None if there is a problem."""
        return None if self.problems else self.usable


def check(
    values: Mapping[str, Any], place_of: PlaceOf = lambda path: None, reserved: Mapping[str, str] = RESERVED
) -> CheckedSettings:
    """Check values whose placeholders are replaced. `place_of` returns where a dotted path was set.

    `reserved` maps paths that this version does not read to the part that they are reserved for.
    """
    refused = [_refusal(path, values) for path in _set_of(REFUSED, values)]
    refused += [_reservation(path, values, part) for path in _set_of(reserved, values) for part in [reserved[path]]]
    rest = without(values, frozenset(problem.path for problem in refused))
    issues = [*refused, *_validate(rest)]
    settings = _parsed(without(rest, frozenset(_base(problem.path) for problem in issues)))
    broken = {_base(problem.path) for problem in issues}
    issues += [problem for problem in broken_rules(settings) if not _is_reported(problem.path, broken)]
    problems = tuple(replace(problem, place=place_of(problem.path)) for problem in issues)
    return CheckedSettings(settings, problems)


def _is_reported(path: str, broken: set[str]) -> bool:
    return any(f"{each}.".startswith(f"{path}.") for each in broken)


def _parsed(values: Mapping[str, Any]) -> Settings:
    return settings_model().parse(values)


def _validate(values: Mapping[str, Any]) -> list[SettingProblem]:
    try:
        _parsed(values)
    except InvalidTable as error:
        return [_problem(issue) for issue in error.issues]
    return []


def _set_of(paths: Iterable[str], values: Mapping[str, Any]) -> Iterator[str]:
    """Yield those of the paths that are set; a table is one entry."""
    return (path for path in paths if find(values, path) is not None)


def _refusal(path: str, values: Mapping[str, Any]) -> SettingProblem:
    issue, _, fix = REFUSED[path].rpartition("; ")
    text = fix[:1].upper() + fix[1:]
    return SettingProblem(path, find(values, path), issue or "This setting does not exist", text)


def _reservation(path: str, values: Mapping[str, Any], part: str) -> SettingProblem:
    issue = f"Belongs to {part}, which this version does not have"
    return SettingProblem(path, find(values, path), issue, "Remove this setting")


def _base(path: str) -> str:
    return path.partition("[")[0]


def _problem(issue: Issue) -> SettingProblem:
    path, value = _dotted(issue.location), issue.value
    if issue.kind == "unknown":
        return SettingProblem(path, value, "This setting does not exist", _suggestion(path, value))
    if issue.kind == "value":
        return SettingProblem(path, value, issue.issue, issue.fix)
    parameter = by_path().get(pattern_of(_base(path)))
    if parameter is None:
        return SettingProblem(path, value, "Expected a value, got a table", f"Write [{path}] and its settings below it")
    if parameter.choices:
        return SettingProblem(path, value, "Invalid value", f"Use one of: {', '.join(parameter.choices)}")
    return SettingProblem(path, value, f"Not a {_expected(parameter.kind)}", f"Expected: {parameter.range}")


def _expected(kind: str) -> str:
    return {"true or false": "switch (true or false)"}.get(kind, kind)


def _dotted(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _deeper(path: str, value: Any) -> str:
    """Return the path of a misspelled table below `path`, following single nested tables."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return path
    ((name, inside),) = value.items()
    below = [table.rpartition(".")[2] for table in tables() if table.rpartition(".")[0] == path]
    close = get_close_matches(name, below, 1, 0.6) if isinstance(inside, Mapping) else []
    return _deeper(f"{path}.{close[0]}", inside) if close else path


def _in_common(one: str, other: str) -> int:
    """Return the number of common ancestor tables."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _suggestion(path: str, value: Any) -> str:
    known = accepted()
    above, _, name = path.rpartition(".")
    inside = pattern_of(above)
    siblings = [setting.rpartition(".")[2] for setting in known if setting.rpartition(".")[0] == inside]
    of_its_kind = {setting.rpartition(".")[2] for setting in (tables() if isinstance(value, Mapping) else by_path())}
    if close := get_close_matches(name, [sibling for sibling in siblings if sibling in of_its_kind], 1, 0.6):
        return f"Did you mean {_deeper(f'{above}.{close[0]}'.lstrip('.'), value)}?"
    elsewhere = [setting for setting in known if setting.endswith(f".{path}")] or [
        setting for setting in known if setting.rpartition(".")[2] == name
    ]
    if elsewhere:
        return f"Did you mean {min(elsewhere, key=lambda candidate: (-_in_common(candidate, path), len(candidate)))}?"
    names = ", ".join(sorted(siblings)[:12])
    return f"Remove it; {above or 'the file'} has: {names}" if siblings else "Remove this setting"
