"""What imports what, and what `import tasker` costs."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import tasker

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HEAVY = {"alembic", "httpx", "jsonschema", "pgmq", "psycopg", "pydantic", "rich", "sqlalchemy", "structlog", "yaml"}
ALLOWED_IN_BACKENDS = {
    "tasker.clock",
    "tasker.dataclasses",
    "tasker.errors",
    "tasker.handlers.claims",
    "tasker.logging.trace_context",
    "tasker.messaging.port",
    "tasker.metrics",
    "tasker.plugins.hook_arguments",
    "tasker.plugins.hooks",
    "tasker.settings.addresses",
    "tasker.settings.queues",
    "tasker.settings.table",
    "tasker.template.plan",
    "tasker.testing",
}
ALLOWED_BESIDE = {
    "tasker_secrets": {"tasker.secrets"},
    "tasker_otel": {"tasker.logging.format"},
    "tasker_steps": {
        "tasker.handlers",
        "tasker.known_secrets",
        "tasker.outgoing",
        "tasker.resources",
        "tasker.secrets",
        "tasker.template",
    },
    "tasker_webhooks": {
        "tasker",
        "tasker.app",
        "tasker.cli",
        "tasker.client",
        "tasker.outgoing",
        "tasker.server.plugin_routes",
        "tasker.services",
        "tasker.views",
    },
}
"""A plugin that is a program and brings commands, too, uses what those use; a contract bounds it. One that sends log
lines reads them as the handlers of a program do. Built-in steps are handlers with resources."""
BACKENDS = sorted(path for path in (ROOT / "backends").glob("tasker_*") if (path / "__init__.py").exists())
PLUGINS = sorted(path for path in (ROOT / "plugins").glob("tasker_*") if (path / "__init__.py").exists())
PURE = [
    ROOT / "tasker" / name
    for name in ("template", "settings", "views", "operations", "engine/states", "engine/expansion")
]
IMPURE_CALLS = {
    "open",
    "print",
    "input",
    "now",
    "utcnow",
    "today",
    "uuid1",
    "uuid4",
    "read_text",
    "write_text",
    "getenv",
}


def loaded_by(code: str) -> set[str]:
    command = [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def imports_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def calls_of(path: Path) -> set[str]:
    functions = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return {getattr(function, "id", getattr(function, "attr", "")) for function in functions}


def test_the_layers_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout


def test_importing_tasker_loads_none_of_its_parts() -> None:
    loaded = loaded_by("import tasker")

    assert not loaded & HEAVY
    assert not {name for name in loaded if name.startswith("tasker.")}


def test_the_command_line_loads_nothing_heavy_before_a_command_is_chosen() -> None:
    assert not loaded_by("import tasker.cli.main") & HEAVY


def test_a_program_loads_the_reader_of_templates_when_it_needs_it() -> None:
    """Commands that only read are such programs."""
    readers = {"yaml", "tasker.template.model", "jsonschema", "sqlalchemy", "alembic", "fastapi", "httpx"}
    assert not loaded_by("import tasker; tasker.App") & readers


def test_the_root_has_what_most_programs_need_and_nothing_else() -> None:
    assert tasker.__all__ == [
        "App",
        "PermanentError",
        "RetryableError",
        "StepContext",
        "StepHandler",
        "StepHandlerResult",
        "SyncApp",
        "TaskRequester",
        "TaskerError",
        "__version__",
        "submit_in",
        "submit_in_async",
    ]


def test_every_public_name_is_found_at_its_home() -> None:
    assert sorted(tasker._HOMES) == tasker.__all__
    for name, home in tasker._HOMES.items():
        assert getattr(tasker, name) is getattr(sys.modules[home], name)
        assert name in dir(tasker)


def test_type_checkers_see_the_names_that_programs_get() -> None:
    tree = ast.parse(Path(tasker.__file__).read_text())
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tasker.")
        for alias in node.names
    }
    assert seen == tasker._HOMES


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in tasker._NAMES_ELSEWHERE.items() for name in names.split()]
)
def test_a_name_of_a_module_is_not_at_the_root_and_the_error_says_where_it_is(module: str, name: str) -> None:
    for ask in (f"from tasker import {name}", f"import tasker; tasker.{name}"):
        with pytest.raises(ImportError, match=f"write `from {module} import {name}`"):
            exec(ask)
    exec(f"from {module} import {name}")


def test_every_name_that_a_package_offers_can_be_imported() -> None:
    packages = [".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "tasker").rglob("__init__.py")]
    offered = [(import_module(name), each) for name in packages for each in getattr(import_module(name), "__all__", ())]

    assert len(offered) > 100
    for package, name in offered:
        getattr(package, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(tasker, "Nonsense")
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        tasker.Nonsense  # noqa: B018


@pytest.mark.parametrize("backend", [*BACKENDS, *PLUGINS], ids=lambda path: path.name)
def test_a_backend_or_plugin_sees_only_what_a_stranger_would(backend: Path) -> None:
    allowed = ALLOWED_IN_BACKENDS | ALLOWED_BESIDE.get(backend.name, set())
    for path in backend.rglob("*.py"):
        ours = {name for name in imports_of(path) if name.split(".")[0] == "tasker"}
        foreign = {name for name in ours if not {name, ".".join(name.split(".")[:2])} & allowed}
        assert not foreign, f"{path.relative_to(ROOT)} imports {foreign}"


@pytest.mark.parametrize("package", PURE, ids=lambda path: path.name)
def test_the_pure_core_reads_no_clock_file_or_environment(package: Path) -> None:
    for path in package.rglob("*.py"):
        impure = calls_of(path) & IMPURE_CALLS
        assert not impure, f"{path.relative_to(ROOT)} calls {impure}"


def test_every_backend_and_plugin_is_packaged_and_has_an_entry_point() -> None:
    names, plugins = {path.name for path in BACKENDS}, {path.name for path in PLUGINS}
    packages = {Path(name).name for name in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]}
    entry_points = set(PROJECT["project"]["entry-points"]["tasker.backends"].values())

    assert names
    assert packages == names | plugins | {"tasker"}
    assert entry_points == names
    offered = PROJECT["project"]["entry-points"]["tasker.optional_plugins"]
    places = {name: value.partition(":")[0].split(".") for name, value in offered.items()}
    secrets = {value.partition(".")[0] for value in PROJECT["project"]["entry-points"]["tasker.secrets"].values()}
    assert {package for package, *_ in places.values()} | secrets == plugins
    assert [name for name, place in places.items() if place[-1].removeprefix("tasker_") != name] == []


def test_every_plugin_has_a_readme_tests_an_extra_and_contracts_of_its_imports() -> None:
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    (seen,) = [each for each in contracts if each["name"].startswith("plugins see only")]
    (named,) = [each for each in contracts if each["name"] == "the core names no plugin"]
    extras = PROJECT["project"]["optional-dependencies"]
    assert PROJECT["project"]["entry-points"]["tasker.optional_plugins"].keys() <= extras.keys()
    for path in PLUGINS:
        assert (path / "README.md").is_file()
        assert [*(ROOT / "tests" / "unit" / "plugins").rglob(f"test_{path.name}.py")]
        assert path.name in seen["source_modules"] or path.name in ALLOWED_BESIDE
        assert path.name in named["forbidden_modules"]


def test_the_published_surface_takes_everything_from_its_home() -> None:
    for path in (ROOT / "compat").rglob("*.py"):
        assert "tasker" not in imports_of(path), f"{path.relative_to(ROOT)} imports from the root of tasker"


def test_data_classes_are_the_cheap_ones() -> None:
    """`tasker.dataclasses` makes them in a tenth of the time; what it does not know nobody uses."""
    home = ROOT / "tasker" / "dataclasses.py"
    for path in (path for name in ("tasker", "backends", "plugins") for path in (ROOT / name).rglob("*.py")):
        tree = ast.parse(path.read_text())
        names = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "dataclasses" and path != home
            for alias in node.names
        }
        by_name = {each.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for each in node.keywords}
        assert not names & {"dataclass", "make_dataclass", "InitVar", "KW_ONLY"}, path
        assert "kw_only" not in by_name, path
        assert "dataclasses" not in {
            alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        }
