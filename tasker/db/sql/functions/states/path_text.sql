-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- The path of a row of the history with the names of its states: `pending>enqueued>in_progress`. The reverse of path_code.
create or replace function tasker.path_text(p_code text) returns text
language sql immutable parallel safe as $$
  select rtrim(replace(replace(replace(replace(replace(replace(replace(replace(
    replace(replace(replace(replace(replace(replace(replace(replace(p_code, 'X', 'enqueued_as_error_for_orchestration>'), 'O',
      'enqueued_for_orchestration>'), 'D', 'waiting_for_dependencies>'), 'B', 'blocked_by_failures>'), 'V',
      'evaluating_results>'), 'R', 'resolved_manually>'), 'W', 'waiting_for_retry>'), 'S', 'steps_in_process>'), 'Q',
      'enqueuing_steps>'), 'N', 'initializing>'), 'I', 'in_progress>'), 'K', 'cancelled>'), 'C', 'complete>'), 'E',
      'enqueued>'), 'P', 'pending>'), 'F', 'error>'), '>')
$$;
