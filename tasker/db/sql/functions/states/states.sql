-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- Steps whose dependents may run.
create or replace function tasker.step_is_done(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('complete', 'resolved_manually')
$$;

-- Steps that the engine does not move again; operators may reopen `error`.
create or replace function tasker.step_is_ended(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('cancelled', 'complete', 'error', 'resolved_manually')
$$;

-- Steps that have run and whose outcome waits for an orchestrator.
create or replace function tasker.step_is_parked(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('enqueued_as_error_for_orchestration', 'enqueued_for_orchestration')
$$;

-- Steps that a task counts as active: queued, running or waiting for processing.
create or replace function tasker.step_is_active(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('enqueued', 'enqueued_as_error_for_orchestration', 'enqueued_for_orchestration',
    'in_progress')
$$;

-- Steps that are active, or will be active again after a retry delay.
create or replace function tasker.step_is_under_way(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('enqueued', 'enqueued_as_error_for_orchestration', 'enqueued_for_orchestration',
    'in_progress', 'waiting_for_retry')
$$;

-- Steps that wait to run, in the queue or before it.
create or replace function tasker.step_is_to_run(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('enqueued', 'pending')
$$;

-- Steps that may wait for a time, with a row in `timers`.
create or replace function tasker.step_is_timed(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('pending', 'waiting_for_retry')
$$;

-- Steps whose last attempt was processed, without a change since.
create or replace function tasker.step_is_settled(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('complete', 'error', 'waiting_for_retry')
$$;

-- Settled steps whose attempt failed.
create or replace function tasker.step_is_failed(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('error', 'waiting_for_retry')
$$;

-- Tasks that have ended; operators may reopen `error`.
create or replace function tasker.task_is_final(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('cancelled', 'complete', 'error', 'resolved_manually')
$$;

-- Tasks that were completed, or resolved by an operator.
create or replace function tasker.task_is_done(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('complete', 'resolved_manually')
$$;

-- Tasks that ended in another state than `complete`.
create or replace function tasker.task_is_troubled(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('cancelled', 'error', 'resolved_manually')
$$;

-- Tasks that failed steps block, so that they need an operator.
create or replace function tasker.task_is_blocked(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('blocked_by_failures', 'error')
$$;

-- Transient states: no write leaves a task in one.
create or replace function tasker.task_is_passing(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('enqueuing_steps', 'evaluating_results', 'initializing', 'pending')
$$;

-- Tasks that wait for a retry, or are one transition away from that.
create or replace function tasker.task_is_retrying(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('steps_in_process', 'waiting_for_retry')
$$;

-- The states that may follow each state, by kind of subject; `violations_v1` checks the history by it.
create or replace function tasker.legal_transitions()
returns table (subject text, state text, followers text[])
language sql immutable parallel safe rows 16
as $$
  values
    ('step', 'pending', array['enqueued', 'in_progress', 'error', 'cancelled', 'resolved_manually',
      'complete']),
    ('step', 'enqueued', array['in_progress', 'error', 'pending', 'cancelled', 'resolved_manually',
      'complete']),
    ('step', 'in_progress', array['enqueued_for_orchestration', 'enqueued_as_error_for_orchestration',
      'complete', 'error', 'enqueued', 'waiting_for_retry', 'cancelled', 'resolved_manually']),
    ('step', 'enqueued_for_orchestration', array['complete', 'error', 'cancelled', 'resolved_manually']),
    ('step', 'enqueued_as_error_for_orchestration', array['waiting_for_retry', 'error', 'cancelled',
      'resolved_manually', 'complete']),
    ('step', 'waiting_for_retry', array['pending', 'cancelled', 'resolved_manually', 'complete']),
    ('step', 'error', array['pending', 'cancelled', 'resolved_manually', 'complete']),
    ('task', 'pending', array['initializing', 'cancelled']),
    ('task', 'initializing', array['enqueuing_steps', 'complete', 'waiting_for_dependencies', 'cancelled']),
    ('task', 'enqueuing_steps', array['steps_in_process', 'error', 'cancelled']),
    ('task', 'steps_in_process', array['evaluating_results', 'waiting_for_retry', 'cancelled']),
    ('task', 'evaluating_results', array['complete', 'enqueuing_steps', 'waiting_for_dependencies',
      'blocked_by_failures', 'cancelled']),
    ('task', 'waiting_for_dependencies', array['evaluating_results', 'cancelled']),
    ('task', 'waiting_for_retry', array['enqueuing_steps', 'cancelled']),
    ('task', 'blocked_by_failures', array['error', 'resolved_manually', 'evaluating_results', 'cancelled']),
    ('task', 'error', array['enqueuing_steps', 'pending'])
$$;
