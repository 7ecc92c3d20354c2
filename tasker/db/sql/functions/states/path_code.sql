-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- A path as the history stores it, a letter for each state.
create or replace function tasker.path_code(p_path text) returns text
language sql immutable parallel safe as $$
  select replace(replace(replace(replace(replace(replace(replace(replace(
    replace(replace(replace(replace(replace(replace(replace(replace(replace(p_path, 'enqueued_as_error_for_orchestration',
      'X'), 'enqueued_for_orchestration', 'O'), 'waiting_for_dependencies', 'D'), 'blocked_by_failures', 'B'),
      'evaluating_results', 'V'), 'resolved_manually', 'R'), 'waiting_for_retry', 'W'), 'steps_in_process', 'S'),
      'enqueuing_steps', 'Q'), 'initializing', 'N'), 'in_progress', 'I'), 'cancelled', 'K'), 'complete', 'C'), 'enqueued',
      'E'), 'pending', 'P'), 'error', 'F'), '>', '')
$$;
