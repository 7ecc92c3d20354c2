-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.
-- Steps that depend on it may run.
create or replace function tasker.step_is_done(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('complete', 'resolved_manually')
$$;

-- The engine will not move it again; `error` stays open to operators.
create or replace function tasker.step_is_ended(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('cancelled', 'complete', 'error', 'resolved_manually')
$$;

-- It has run, and an orchestrator is to settle what came of it.
create or replace function tasker.step_is_parked(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('enqueued_as_error_for_orchestration', 'enqueued_for_orchestration')
$$;

-- From the queue until its result is settled: what a task counts as active.
create or replace function tasker.step_is_active(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('enqueued', 'enqueued_as_error_for_orchestration', 'enqueued_for_orchestration', 'in_progress')
$$;

-- Active, or it has been and will be again.
create or replace function tasker.step_is_under_way(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('enqueued', 'enqueued_as_error_for_orchestration', 'enqueued_for_orchestration', 'in_progress',
    'waiting_for_retry')
$$;

-- It waits for its turn, in the queue or before it.
create or replace function tasker.step_is_to_run(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('enqueued', 'pending')
$$;

-- What came of an attempt is settled, and nothing has happened since.
create or replace function tasker.step_is_settled(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('complete', 'error', 'waiting_for_retry')
$$;

-- Settled, and the attempt had failed.
create or replace function tasker.step_is_failed(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('error', 'waiting_for_retry')
$$;

-- It has ended; `error` is open to operators.
create or replace function tasker.task_is_final(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('cancelled', 'complete', 'error', 'resolved_manually')
$$;

-- It has ended well, by itself or by a person.
create or replace function tasker.task_is_done(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('complete', 'resolved_manually')
$$;

-- It has ended otherwise than complete.
create or replace function tasker.task_is_troubled(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('cancelled', 'error', 'resolved_manually')
$$;

-- Failed steps keep it from going on: it is for a person.
create or replace function tasker.task_is_blocked(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('blocked_by_failures', 'error')
$$;

-- No write leaves a task there.
create or replace function tasker.task_is_passing(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('enqueuing_steps', 'evaluating_results', 'initializing', 'pending')
$$;

-- It waits for a retry, or one transition leads there.
create or replace function tasker.task_is_retrying(p_state text) returns boolean
language sql immutable parallel safe as $$
  select p_state in ('steps_in_process', 'waiting_for_retry')
$$;
