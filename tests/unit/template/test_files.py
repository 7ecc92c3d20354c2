"""Templates found in folders, read from files, and checked against handlers."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tasker.domain_events import PublisherRegistry
from tasker.errors import TemplateError, UsageError
from tasker.services.workflows.files import check_handlers, find_templates, load_path, load_plans
from tests.unit.template.support import codes, place, step

HANDLERS = """
from tasker.handlers.decorators import step_handler

@step_handler("known")
def known():
    return {}
"""


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_a_folder_is_searched_for_workflow_files_and_else_for_all_yaml_files(tmp_path: Path) -> None:
    expected = [
        write(tmp_path, "one/workflow.yaml", ""),
        write(tmp_path, "two/a.yaml", ""),
        write(tmp_path, "two/b.yml", ""),
    ]
    write(tmp_path, "one/other.yaml", "")
    write(tmp_path, ".hidden/workflow.yaml", "")
    write(tmp_path, "two/.hidden.yaml", "")
    write(tmp_path, "two/notes.txt", "")
    assert find_templates(tmp_path) == expected


def test_a_file_is_itself_whatever_its_name(tmp_path: Path) -> None:
    file = write(tmp_path, "template.txt", step(""))
    assert [plan.name for plan in load_path(file).plans] == ["flow"]


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_path_without_templates_is_a_mistake(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=name):
        load_path(tmp_path / name)


def test_several_files_are_read_as_one_result(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", step(""))
    write(tmp_path, "b.yaml", step("timeout: 5"))
    result = load_path(tmp_path)
    assert [plan.name for plan in result.plans] == ["flow"]
    assert [(Path(d.file).name, d.code) for d in result.diagnostics] == [("b.yaml", "T027")]
    assert set(result.sources) == {str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")}


def test_the_environment_is_applied(tmp_path: Path) -> None:
    text = step("").replace("steps:", "environments: {x: {steps: [{name: a, timeout_seconds: 9}]}}\nsteps:", 1)
    file = write(tmp_path, "workflow.yaml", text)
    assert load_path(file, "x").plans[0].steps[0].timeout_seconds == 9


def test_a_byte_that_is_not_utf8_is_reported_at_its_place(tmp_path: Path) -> None:
    file = tmp_path / "latin.yaml"
    file.write_bytes("name: ü\ndescription: häuser".encode().replace(b"h\xc3\xa4", b"h\xe4"))
    (diagnostic,) = load_path(file).diagnostics
    assert (diagnostic.code, place(diagnostic)) == ("T012", (2, 15, 1))
    assert "0xE4" in diagnostic.message


def test_a_byte_order_mark_is_no_problem(tmp_path: Path) -> None:
    file = tmp_path / "bom.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + step("").encode())
    assert load_path(file).ok


def test_plans_of_a_file_with_errors_are_refused_with_the_report(tmp_path: Path) -> None:
    file = write(tmp_path, "workflow.yaml", step("timeout: 5"))
    with pytest.raises(TemplateError, match=r"workflow.yaml:7:5: error\[T027\]") as caught:
        load_plans(file)
    assert [d.code for d in caught.value.diagnostics] == ["T027"]


def test_plans_of_a_file_with_warnings_are_usable(tmp_path: Path) -> None:
    file = write(tmp_path, "workflow.yaml", step("retry: {max_attempts: 0}"))
    assert [plan.name for plan in load_plans(file)] == ["flow"]


def test_a_callable_that_nobody_knows_is_reported_at_its_place(tmp_path: Path) -> None:
    handlers = write(tmp_path, "elsewhere/handlers.py", HANDLERS)
    text = step("").replace("handler: h", "handler: {callable: knwon}") + "  - {name: b, handler: known}\n"
    result = load_path(write(tmp_path, "workflow.yaml", text))
    (diagnostic,) = check_handlers(result, tmp_path, [handlers.parent])
    assert (diagnostic.code, place(diagnostic)) == ("T035", (6, 25, 5))
    assert "did you mean 'known'?" in str(diagnostic.hint)


def test_a_publisher_that_nobody_has_registered_is_warned_of_at_its_place(tmp_path: Path) -> None:
    publisher = """
        from tasker.domain_events import BasePublisher

        class Paid(BasePublisher):
            publisher_name = "payments.paid"
    """
    write(tmp_path, "handlers.py", HANDLERS + textwrap.dedent(publisher))
    text = step("publishes_events: [{name: a, publisher: payments.paid}, {name: b, publisher: payments.pad}]")
    path = write(tmp_path, "workflow.yaml", text.replace("handler: h", "handler: known"))
    try:
        (diagnostic,) = check_handlers(load_path(path), tmp_path, [])
    finally:
        PublisherRegistry.reset()
    assert (diagnostic.code, place(diagnostic)[0]) == ("T075", 7)
    assert "did you mean `payments.paid`?" in str(diagnostic.hint)


def test_a_method_that_the_handler_lacks_is_reported(tmp_path: Path) -> None:
    write(tmp_path, "handlers.py", HANDLERS)
    text = step("").replace("handler: h", "handler: {callable: known, method: refund}")
    (diagnostic,) = check_handlers(load_path(write(tmp_path, "workflow.yaml", text)), tmp_path, [])
    assert diagnostic.code == "T035"
    assert "refund" in diagnostic.message


def test_handlers_beside_the_template_are_found(tmp_path: Path) -> None:
    write(tmp_path, "handlers.py", HANDLERS)
    result = load_path(write(tmp_path, "workflow.yaml", step("").replace("handler: h", "handler: known")))
    assert codes(result) == []
    assert check_handlers(result, tmp_path, []) == []
