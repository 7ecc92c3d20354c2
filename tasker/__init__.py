"""Tasker: durable workflows, declared in YAML and run on PostgreSQL.

This package exports the names that most handlers and programs need. Each is imported from its own module at its first
use, so that `import tasker` stays cheap (rule 25). All other names are imported from their modules: `tasker.types`,
`tasker.step_handler`, `tasker.errors`, `tasker.registry`, `tasker.client` ...
"""

TYPE_CHECKING = False
"""Local stand-in for `typing.TYPE_CHECKING`.

Importing `typing` would take longer than everything else that runs before `tasker.__main__` handles Ctrl-C.
"""

if TYPE_CHECKING:
    from tasker.app import App as App
    from tasker.app import SyncApp as SyncApp
    from tasker.app import TaskRequester as TaskRequester
    from tasker.app import submit_in as submit_in
    from tasker.app import submit_in_async as submit_in_async
    from tasker.errors import PermanentError as PermanentError
    from tasker.errors import RetryableError as RetryableError
    from tasker.errors import TaskerError as TaskerError
    from tasker.step_handler import StepHandler as StepHandler
    from tasker.types import StepContext as StepContext
    from tasker.types import StepHandlerResult as StepHandlerResult
    from tasker.version import __version__ as __version__

__all__ = [
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

_HOMES = {
    "App": "tasker.app",
    "PermanentError": "tasker.errors",
    "RetryableError": "tasker.errors",
    "StepContext": "tasker.types",
    "StepHandler": "tasker.step_handler",
    "StepHandlerResult": "tasker.types",
    "SyncApp": "tasker.app",
    "TaskRequester": "tasker.app",
    "TaskerError": "tasker.errors",
    "__version__": "tasker.version",
    "submit_in": "tasker.app",
    "submit_in_async": "tasker.app",
}

_NAMES_ELSEWHERE = {
    "tasker.batch_processing": "Batchable",
    "tasker.client": "HttpClient SyncHttpClient",
    "tasker.errors": "StepExecutionError",
    "tasker.registry": "HandlerRegistry",
    "tasker.logging": "log_debug log_error log_info log_warn",
    "tasker.step_handler": "APIMixin ApiHandler BaseStepHandler DecisionHandler DecisionMixin",
    "tasker.types": "DecisionPointOutcome LogContext",
}
"""Names that programs may expect in this package, by the module that defines them; used for the error message."""

if not TYPE_CHECKING:  # with these definitions a type checker would accept every name

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOMES})

    def __getattr__(name: str) -> object:
        """Import a name from its module on first use (PEP 562).

        Raises `ImportError`, not `AttributeError`, for a name that another module defines: `from tasker import ...`
        would replace the message of an `AttributeError`.
        """
        if name not in _HOMES:
            raise _missing(name)
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value


def _missing(name: str) -> Exception:
    for module, names in _NAMES_ELSEWHERE.items():
        if name in names.split():
            return ImportError(f"'tasker' has no {name}: write `from {module} import {name}`", name="tasker")
    return AttributeError(f"module 'tasker' has no attribute {name!r}")
