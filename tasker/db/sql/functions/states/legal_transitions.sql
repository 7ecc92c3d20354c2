-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- The states that may follow each state, by kind of subject; `violations_v1` checks the history by it.
create or replace function tasker.legal_transitions()
returns table (subject text, state text, followers text[])
language sql immutable parallel safe rows 16
as $$
  values
    ('step', 'pending', array['enqueued', 'in_progress', 'error', 'cancelled', 'resolved_manually', 'complete']),
    ('step', 'enqueued', array['in_progress', 'error', 'pending', 'cancelled', 'resolved_manually', 'complete']),
    ('step', 'in_progress', array['enqueued_for_orchestration', 'enqueued_as_error_for_orchestration', 'complete', 'error',
      'enqueued', 'waiting_for_retry', 'cancelled', 'resolved_manually']),
    ('step', 'enqueued_for_orchestration', array['complete', 'error', 'cancelled', 'resolved_manually']),
    ('step', 'enqueued_as_error_for_orchestration', array['waiting_for_retry', 'error', 'cancelled', 'resolved_manually',
      'complete']),
    ('step', 'waiting_for_retry', array['pending', 'cancelled', 'resolved_manually', 'complete']),
    ('step', 'error', array['pending', 'cancelled', 'resolved_manually', 'complete']),
    ('task', 'pending', array['initializing', 'cancelled']),
    ('task', 'initializing', array['enqueuing_steps', 'complete', 'waiting_for_dependencies', 'cancelled']),
    ('task', 'enqueuing_steps', array['steps_in_process', 'error', 'cancelled']),
    ('task', 'steps_in_process', array['evaluating_results', 'waiting_for_retry', 'cancelled']),
    ('task', 'evaluating_results', array['complete', 'enqueuing_steps', 'waiting_for_dependencies', 'blocked_by_failures',
      'cancelled']),
    ('task', 'waiting_for_dependencies', array['evaluating_results', 'cancelled']),
    ('task', 'waiting_for_retry', array['enqueuing_steps', 'cancelled']),
    ('task', 'blocked_by_failures', array['error', 'resolved_manually', 'evaluating_results', 'cancelled']),
    ('task', 'error', array['enqueuing_steps', 'pending'])
$$;
