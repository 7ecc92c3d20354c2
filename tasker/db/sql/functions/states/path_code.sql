-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- The path of one state in the engine's and the history's form: one letter for each state.
create or replace function tasker.path_code(p_path text) returns text
language sql immutable parallel safe as $$
  select '{"pending": "P", "enqueued": "E", "in_progress": "I", "enqueued_for_orchestration": "O",
    "enqueued_as_error_for_orchestration": "X", "waiting_for_retry": "W", "complete": "C", "error": "F", "cancelled": "K",
    "resolved_manually": "R", "initializing": "N", "enqueuing_steps": "Q", "steps_in_process": "S", "evaluating_results": "V",
    "waiting_for_dependencies": "D", "blocked_by_failures": "B"}'::jsonb->>p_path
$$;
