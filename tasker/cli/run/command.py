"""`tasker run`: one workflow in one process, from submission to result."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO

import click

from tasker.__main__ import INTERRUPTED
from tasker.cli.commands.process_options import LOG_FORMAT, log_as_configured, log_to_stderr, note_embedded_database
from tasker.cli.covering import SHOW_SENSITIVE
from tasker.cli.options import CONCURRENCY, PRIORITY_HELP, SECONDS, database_options, priority
from tasker.cli.render.outcome import next_text
from tasker.cli.render.values import echo, screen_width
from tasker.cli.run.checks import Prepared, RunRequest, check_order, prepare_order, resume_of
from tasker.cli.run.input import error_object, reserved_stdout, write_json
from tasker.errors import TaskerError, UsageError
from tasker.logging.format import FORMAT_VARIABLE, redact_warnings
from tasker.logging.levels import levels_named
from tasker.settings.queues import HandlerDispatch

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from tasker.cli.live.showing import View
    from tasker.cli.run.session import EndedRun, StartedRun

FAILED, MISTAKE = 1, 2


class RunCommand(click.Command):
    """Command whose usage errors are JSON objects on standard output if `--format json` is given."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        """Parse the command line."""
        as_json = {"--json", "--format=json"} & {*args} or ("--format", "json") in pairwise(args)
        try:
            return super().make_context(info_name, args, *rest, **extra)
        except click.UsageError as error:
            if not as_json:
                raise
            write_json(sys.stdout, error_object(UsageError(error.format_message())))
            raise click.exceptions.Exit(MISTAKE) from None


def _complete_template(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of the templates in PATH."""
    from click.shell_completion import CompletionItem

    from tasker.services.workflows.files import load_path

    # click does not parse a command line whose last option lacks its value
    words = [ctx.params.get("target"), *(word for word in ctx.args if not word.startswith("-"))]
    try:
        plans = load_path(next(word for word in words if word)).plans
    except (TaskerError, StopIteration):
        return []
    return [CompletionItem(plan.name, help=plan.description) for plan in plans if plan.name.startswith(incomplete)]


def _complete_path(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


_WORKER = HandlerDispatch.for_single_process()


@click.command(cls=RunCommand)
@click.argument("target", metavar="[PATH]", required=False, shell_complete=_complete_path)
@click.option(
    "--input",
    "input_",
    metavar="JSON|@FILE|-",
    help="Input of the task; - is standard input.  [default: the folder's input.json, else {}]",
)
@click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True, help="Set one input value; repeatable. See above."
)
@click.option(
    "--template", metavar="NAME", shell_complete=_complete_template, help="Template to run, if PATH has several."
)
@click.option("--env", "environment", metavar="NAME", help="Apply the template's overrides of this environment.")
@click.option(
    "--handlers",
    metavar="MODULE_OR_FOLDER",
    multiple=True,
    shell_complete=_complete_path,
    help="More handlers, beside those in the handlers.py of the template's folder; repeatable.",
)
@LOG_FORMAT
@database_options
@click.option("--idempotency-key", metavar="K", help="Idempotency key; fails if a task with this key exists.")
@click.option("--strict-identity", is_flag=True, help="Apply the template's rule on repeated inputs.")
@click.option("--priority", type=priority, metavar="PRIORITY", help=PRIORITY_HELP)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: print one object; progress goes to standard error.",
)
@SHOW_SENSITIVE
@click.option("--timeout", metavar="SECONDS", type=SECONDS, help="Stop after this time; continue with --resume.")
@click.option(
    "--concurrency",
    metavar="N",
    type=CONCURRENCY,
    help=f"Maximum number of concurrent steps.  [default: {_WORKER.max_concurrent_handlers}]",
)
@click.option("--resume", metavar="TASK_UUID", help="Resume an interrupted task; no PATH needed.")
def run(target: str | None, input_: str | None, as_json: bool, form: str, **options: Any) -> None:
    """Run a workflow to its end, and show its progress and results.

    PATH is a template file, a folder with a workflow.yaml, or namespace/name[:version] of a registered template.
    Without the URL of a server an embedded PostgreSQL is started; its data stay in .tasker/postgres. Every run is a new
    task. Nothing is submitted unless all handlers are found and the input fits the template. A worker.toml in the
    folder is the configuration, unless TASKER_CONFIG_PATH or TASKER_CONFIG_ROOT names one.

    --set takes a value as JSON if it can, else as text; dots in the key lead into objects: --set customer.id=C-7, --set
    retries=2, --set 'tags=["a", "b"]', --set 'zip="01234"'.

    \b
    Examples:
      tasker run workflows/order_fulfillment
      tasker run workflows/linear_math --set value=3
      tasker run hello --input '{"name": "world"}' --format json
      generate | tasker run hello --input - --timeout 60
      tasker run shop/checkout:1.2.0 --handlers my_shop.handlers
      tasker run --resume 0199c1f4-8a52-7c3e-9b1d-5d3a52000000

    \b
    Exit codes:
      0    complete
      1    failed, cancelled, or not finished within --timeout
      2    a mistake in the command, the template, the handlers or the input
      130  interrupted (Ctrl-C); continue with --resume
    """
    order = RunRequest(target, input_, **options)
    _tolerate_any_encoding()
    exit_code = _run_json(order) if as_json or form == "json" else _run_text(order)
    if exit_code:
        raise click.exceptions.Exit(exit_code)


def _run_text(order: RunRequest) -> int:
    from tasker.cli.render.outcome import outcome_text

    def on_end(ended: EndedRun) -> None:
        if ended.already:
            echo(f"task {ended.report.task_uuid} has ended; there is nothing to resume")
        if ended.stopped is None:
            echo(outcome_text(ended.report, screen_width()) + _next_text(ended, order))

    ended = _perform(order, sys.stdout, on_end)
    if ended.stopped:
        echo(_stopped_text(ended, order))
    return _exit_code(ended)


def _run_json(order: RunRequest) -> int:
    from tasker.cli.main import MISTAKES

    with reserved_stdout() as out:
        try:
            ended = _perform(order, sys.stderr, lambda ended: write_json(out, _report_object(ended)))
        except TaskerError as error:
            write_json(out, error_object(error))
            return MISTAKE if isinstance(error, MISTAKES) else FAILED
        text = _stopped_text(ended, order) if ended.stopped else _next_text(ended, order)
        if text:
            echo(text, to=sys.stderr)
        return _exit_code(ended)


def _perform(order: RunRequest, progress: TextIO, on_end: Callable[[EndedRun], None]) -> EndedRun:
    check_order(order)
    for logger_name in (
        "tasker.failures",
        "tasker.orchestration",
        "tasker.database",
    ):  # the view shows what they report
        logging.getLogger(logger_name).addHandler(logging.NullHandler())
    logs = levels_named() is not None or bool(os.environ.get(FORMAT_VARIABLE))
    if logs:
        log_to_stderr(default=logging.WARNING)
    prepared = prepare_order(order)  # loads the plugins, which may capture the log from here on
    if logs:
        log_as_configured(prepared.configuration)
    else:
        redact_warnings()
        note_embedded_database()

    from tasker.cli.run.session import RunHooks, run_session
    from tasker.logging.step_log import LEVELS, capture_logs
    from tasker.process.own_tasks import run_guarded

    capture_logs(LEVELS[prepared.configuration.worker.execution.keep_logs])
    hooks = RunHooks(
        on_begin=lambda begun: _announce(begun, prepared, progress),
        on_end=on_end,
    )
    return run_guarded(run_session(order, prepared, hooks))


def _announce(begun: StartedRun, prepared: Prepared, stream: TextIO) -> View:
    from tasker.cli.live.showing import view_on

    plan = begun.plan
    echo(f"{click.style(plan.name, bold=True)} {plan.version} ({plan.namespace})  task {begun.task_uuid}", to=stream)
    echo("resumed" if begun.resumed else f"input: {prepared.input.source}", to=stream)
    if any(begun.beside):
        echo(_beside_text(*begun.beside, namespace=plan.namespace), to=stream)
    return view_on(stream, plan)


def _beside_text(here: int, elsewhere: int, *, namespace: str) -> str:
    parts = {f"{here} in {namespace}, run alongside": here, f"{elsewhere} in other namespaces, not run": elsewhere}
    return f"other unfinished tasks: {'; '.join(text for text, count in parts.items() if count)} (tasker task list)"


def _next_text(ended: EndedRun, order: RunRequest) -> str:
    go_on = resume_of(order, ended.report.task_uuid)
    text = next_text(ended.report, order.database.arguments(), go_on)
    return f"\n{text}" if text else ""


def _stopped_text(ended: EndedRun, order: RunRequest) -> str:
    why = f"Stopped after {order.timeout:g} s (--timeout)" if ended.stopped == "timeout" else "Interrupted"
    uuid, database = ended.report.task_uuid, order.database.arguments()
    return (
        f"{why}; the task is not finished, no progress is lost. To resume:\n  {resume_of(order, uuid)}\n"
        f"or to cancel it:\n  tasker task cancel {uuid}{database}"
    )


def _report_object(ended: EndedRun) -> dict[str, Any]:
    report = ended.report.to_dict()
    if ended.stopped:
        message = "the task is not finished; continue with `tasker run --resume`"
        report["error"] = {"type": ended.stopped, "message": message, "code": None, "retryable": True}
    return report


def _exit_code(ended: EndedRun) -> int:
    if ended.stopped == "interrupted":
        return INTERRUPTED
    return 0 if ended.report.succeeded else FAILED


def _tolerate_any_encoding() -> None:
    """Print a question mark for a character that the terminal cannot show, so that it does not break the run."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
