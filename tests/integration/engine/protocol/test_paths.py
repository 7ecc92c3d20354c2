"""How the history stores paths: a letter for each state, and back."""

from __future__ import annotations

from tasker.engine.states.step import STEP, StepState
from tasker.engine.states.task import TASK, TaskState
from tests.support.engine_fixture import Lab

PAIRS = [
    *(f"{state}>{following}" for state in StepState for following in StepState if STEP.allows((state, following))),
    *(f"{state}>{following}" for state in TaskState for following in TaskState if TASK.allows((state, following))),
]


def test_each_state_has_a_letter_and_every_transition_is_read_as_it_was_written(lab: Lab) -> None:
    states = sorted({*StepState, *TaskState})
    codes = lab.observer.value("select array_agg(tasker.path_code(s)) from unnest(%s::text[]) s", states)
    read = lab.observer.rows(
        """select tasker.path_text(p.code), tasker.path_end(p.code), tasker.path_length(p.code)
           from unnest(%s::text[]) with ordinality x (path, n)
           cross join lateral (select string_agg(tasker.path_code(y.state), '' order by y.k) as code
             from unnest(string_to_array(x.path, '>')) with ordinality y (state, k)) p
           order by x.n""",
        PAIRS,
    )

    assert len(set(codes)) == len(states)
    assert {len(code) for code in codes} == {1}
    assert read == [(pair, pair.partition(">")[2], 1) for pair in PAIRS]


def test_a_row_of_the_history_is_stored_in_a_hundred_bytes_and_shown_with_its_words(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    lab.one.run_all()

    sizes = lab.observer.rows(
        "select pg_column_size(m.*) as size from tasker.step_moves m join tasker.workflow_steps s "
        "using (workflow_step_uuid) where s.task_uuid = %s",
        task,
    )
    assert max(row.size for row in sizes) <= 104
    assert lab.step_paths(task, "s0") == [
        "pending>enqueued",
        "enqueued>in_progress",
        "in_progress>enqueued_for_orchestration>complete",
    ]
