"""Plugin of pytest: simulated runs in tests, scenario files as tests, coverage of templates' graphs.

Loaded by pytest through its entry point. Tasker itself is imported when a fixture or a scenario file is first used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    import tasker
    from tasker.simulation.outcome import SimulatedRun
    from tasker.simulation.scenarios import Case
    from tasker.testing.engine import EngineClock
    from tasker.testing.fakes import ResourceFakes

SUFFIX = ".scenario.yaml"
OPTION, UPDATE = "--tasker-coverage", "--tasker-update"
Shown = dict[tuple[str, str], set[tuple[str, str]]]
SHOWN = pytest.StashKey[Shown]()
"""What the simulated runs of this session have shown: items of coverage by template file and name."""
SENT, UPDATES_SENT = "tasker_coverage", "tasker_updates"
"""Keys under which a process of pytest-xdist sends its coverage, and what it would write into scenario files."""
Updates = dict[str, dict[str, dict[str, Any]]]
UPDATES = pytest.StashKey[Updates]()
"""New values of `expect` by file, case and key."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("tasker", "Tasker")
    group.addoption(
        OPTION,
        nargs="?",
        const=0.0,
        default=None,
        type=float,
        metavar="PERCENT",
        help="show how much of each template's graph the simulated runs cover; fail below PERCENT",
    )
    group.addoption(
        UPDATE,
        action="store_true",
        help="write what failing cases of scenario files come to into their `expect`",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin to collect coverage and updates."""
    updates: Updates = defaultdict(dict)
    config.stash[UPDATES] = updates
    shown: Shown = defaultdict(set)
    config.stash[SHOWN] = shown


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the cases of scenario files."""
    return ScenarioFile.from_parent(parent, path=file_path) if file_path.name.endswith(SUFFIX) else None


class ScenarioFile(pytest.File):
    """Scenario file, whose cases are tests."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test for each case."""
        from tasker.errors import TaskerError
        from tasker.simulation.scenarios import read_scenarios

        try:
            cases = read_scenarios(self.path)
        except TaskerError as error:
            raise self.CollectError(error.message + (f"\n{error.hint}" if error.hint else "")) from None
        for case in cases:
            yield ScenarioItem.from_parent(self, name=case.name, case=case)


class Differs(Exception):
    """A case came to something else than its file expects."""


class ScenarioItem(pytest.Item):
    """One case of a scenario file."""

    def __init__(self, *, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._case = case

    def runtest(self) -> None:
        """Simulate the case and compare."""
        from tasker.simulation.simulate import real_handlers, simulate, workflow_of

        case = self._case
        handlers = real_handlers(workflow_of(case.template, case.template_name)) if case.real else None
        run = simulate(
            case.template, case.values, case.mocks, template=case.template_name, handlers=handlers, at=case.at
        )
        _add(self.config, case.template, run)
        lines = case.differences(run)
        if lines and self.config.getoption(UPDATE):
            from tasker.testing.scenario_updates import actual_expectations

            self.config.stash[UPDATES][str(self.path)][case.name] = actual_expectations(case, run)
        elif lines:
            raise Differs("\n".join(lines))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return what differs, without a traceback."""
        from tasker.errors import TaskerError

        if isinstance(excinfo.value, Differs):
            return str(excinfo.value)
        if isinstance(excinfo.value, TaskerError):
            return f"{excinfo.value.message}\n{excinfo.value.hint or ''}".rstrip()
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the file and the name of the case."""
        return self.path, None, self.name


@pytest.fixture
def tasker_resources() -> ResourceFakes:
    """Return the fakes that handlers of `tasker_sim` get as resources: `tasker_resources["bank"] = FakeBank()`.

    Each call of a fake is recorded in `tasker_resources.calls`; see also `assert_no_effects`.
    """
    from tasker.testing.fakes import ResourceFakes

    return ResourceFakes()


@pytest.fixture
def tasker_events() -> list[Any]:
    """Return the events that the tasks of `tasker_sim` and `tasker_run` publish in this test, for `assert_published`.

    Those of a task that still runs are not in it.
    """
    return []


@pytest.fixture
def tasker_sim(
    request: pytest.FixtureRequest, tasker_resources: ResourceFakes, tasker_events: list[Any]
) -> Callable[..., SimulatedRun]:
    """Return a function that simulates a template: `tasker_sim("orders", {"amount": 10}, charge={"id": 7})`.

    The path is relative to the test's file, or to the folder where pytest runs. Further keywords are mocks by step;
    `mocks` takes those whose names are no keywords. `real=True` runs the handlers beside the template for the steps
    without a mock; `mocks="schemas"` mocks them with values that fit their schemas, as `mock_all` does. `resources`,
    `at`, `seed`, `slots` and `template` are those of `tasker.testing.simulation.simulate`.
    """
    return partial(_simulated, request.config, request.path.parent, tasker_resources, tasker_events)


@pytest.fixture(scope="session")
def tasker_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tasker.SyncApp]:
    """Return an app on an embedded database, made for this test session (of each process of pytest-xdist).

    Every run is a new task, so tests need not clean up. The environment `test` of templates applies. Override the
    fixture for another database or other options.
    """
    import tasker

    with tasker.SyncApp(data_dir=tmp_path_factory.mktemp("tasker") / "postgres", environment="test") as app:
        yield app


@pytest.fixture(scope="session")
def tasker_clock(tasker_engine: tasker.SyncApp) -> Iterator[EngineClock]:
    """Return the time of `tasker_engine`: `tasker_clock.advance("30d")` lets everything happen that is due by then."""
    from tasker.testing.engine import EngineClock

    clock = EngineClock(tasker_engine)
    yield clock
    clock.close()


@pytest.fixture
def tasker_run(
    request: pytest.FixtureRequest, tasker_engine: tasker.SyncApp, tasker_events: list[Any]
) -> Callable[..., Any]:
    """Return a function that runs a template on the real engine: `tasker_run("orders", {"amount": 10})`.

    It returns the task's report; with `wait=False` a handle (`report`, `status`, `result(STEP)`, `wait()`) of a task
    that runs. The path is relative to the test's file, or to the folder where pytest runs.
    """
    return partial(_submitted, request.path.parent, tasker_engine, tasker_events)


def _submitted(
    folder: Path,
    app: tasker.SyncApp,
    events: list[Any],
    target: str | Path,
    values: Mapping[str, Any] | None = None,
    *,
    wait: bool = True,
    timeout: float = 30.0,
    **options: Any,
) -> Any:
    from tasker.testing.engine import published_by, submit

    done = submit(app, _path(folder, target), values or {}, wait=wait, timeout=timeout, **options)
    if wait:
        events += published_by(app, done.task_uuid)
    return done


def _path(folder: Path, target: str | Path) -> Path:
    return folder / target if (folder / target).exists() else Path(target)


def _simulated(
    config: pytest.Config,
    folder: Path,
    fakes: ResourceFakes,
    events: list[Any],
    target: str | Path,
    values: Mapping[str, Any] | None = None,
    mocks: Mapping[str, Any] | Literal["schemas"] | None = None,
    *,
    real: bool = False,
    template: str | None = None,
    **options: Any,
) -> SimulatedRun:
    from tasker.simulation.simulate import real_handlers, simulate, workflow_and_started

    path = _path(folder, target)
    workflow, started = workflow_and_started(path, template)
    own = {name: options.pop(name) for name in ("mock_all", "resources", "at", "seed", "slots") if name in options}
    own = {"resources": fakes, **own}
    if mocks == "schemas":
        mocks, own["mock_all"] = None, True
    handlers = real_handlers(workflow, started=started) if real else None
    templates = [each.plan for each in started]
    run = simulate(workflow.plan, values, {**(mocks or {}), **options}, handlers=handlers, templates=templates, **own)
    events += run.events
    _add(config, path, run)
    return run


def _add(config: pytest.Config, path: Path, run: SimulatedRun) -> None:
    if config.getoption(OPTION) is not None:
        config.stash[SHOWN][str(path), run.plan.name] |= {(item.step, item.what) for item in run.covered()}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the coverage of a process of pytest-xdist; fail the session if the coverage is too low."""
    config = session.config
    if (output := getattr(config, "workeroutput", None)) is not None:
        output[SENT] = [[*key, sorted(items)] for key, items in config.stash[SHOWN].items()]
        output[UPDATES_SENT] = {file: dict(cases) for file, cases in config.stash[UPDATES].items()}
        return
    _write(config)
    if (least := config.getoption(OPTION)) and any(c.percent < least for c in _coverages(config)):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[Any]) -> None:
    """Show the hint of an error of Tasker below its message."""
    error = None if call.excinfo is None else call.excinfo.value
    hint = getattr(error, "hint", None)
    if isinstance(error, Exception) and isinstance(hint, str) and type(error).__module__.startswith("tasker."):
        error.add_note(f"Hint: {hint}")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the coverage and the updates of a process of pytest-xdist."""
    for file, cases in getattr(node, "workeroutput", {}).get(UPDATES_SENT, {}).items():
        node.config.stash[UPDATES][file] |= cases
    for path, template, items in getattr(node, "workeroutput", {}).get(SENT, ()):
        node.config.stash[SHOWN][path, template] |= {(step, what) for step, what in items}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what was written into scenario files, and the coverage of each template."""
    for file, cases in config.stash[UPDATES].items():
        terminalreporter.line(f"updated {file}: {', '.join(cases)}")
    if config.getoption(OPTION) is None:
        return
    terminalreporter.section("coverage of templates")
    for coverage in _coverages(config):
        plan = coverage.plan
        terminalreporter.line(f"{coverage.percent:5.0f}%  {plan.namespace}/{plan.name}")
        for item in coverage.missing:
            terminalreporter.line(f"        missing: {item} ({coverage.place(item)})")


def _write(config: pytest.Config) -> None:
    from tasker.testing.scenario_updates import write_expectations

    for file, cases in config.stash[UPDATES].items():
        write_expectations(Path(file), cases)


def _coverages(config: pytest.Config) -> list[Any]:
    from tasker.simulation.coverage import Coverage, Item
    from tasker.simulation.simulate import workflow_of

    found = []
    for (path, template), items in sorted(config.stash[SHOWN].items()):
        workflow = workflow_of(path, template)
        coverage = Coverage(workflow.plan, workflow.lines)
        coverage.shown |= {Item(*item) for item in items}
        found.append(coverage)
    return found
