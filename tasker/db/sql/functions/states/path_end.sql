-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- The last state of a path.
create or replace function tasker.path_end(p_path text) returns text
language sql immutable parallel safe as $$
  select '{"P": "pending", "E": "enqueued", "I": "in_progress", "O": "enqueued_for_orchestration", "X":
    "enqueued_as_error_for_orchestration", "W": "waiting_for_retry", "C": "complete", "F": "error", "K": "cancelled", "R":
    "resolved_manually", "N": "initializing", "Q": "enqueuing_steps", "S": "steps_in_process", "V": "evaluating_results", "D":
    "waiting_for_dependencies", "B": "blocked_by_failures"}'::jsonb->>right(p_path, 1)
$$;
