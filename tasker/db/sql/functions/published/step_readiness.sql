-- The reasons for which each step of these tasks waits, for users of SQL; the engine does not call it.
-- `total_parents` and `completed_parents` are counted from the rows of the parents. A step in the queue or
-- beyond it is not ready; a step that waits for room in the queue is, also while it is paused.
-- `next_retry_at` is the time until which a step waits: for its next automatic retry, or for its `delay` or
-- `not_before`; null for all other steps. Related rows are looked up by key, so no statistics lead to a plan
-- that compares all rows with all others.
create or replace function tasker.get_step_readiness_status_batch(task_uuids uuid[])
returns table (workflow_step_uuid uuid, task_uuid uuid, named_step_uuid uuid, name text, current_state text,
  dependencies_satisfied boolean, retry_eligible boolean, ready_for_execution boolean,
  last_failure_at timestamptz, next_retry_at timestamptz, total_parents int, completed_parents int,
  attempts int, retry_limit int, backoff_request_seconds int, last_attempted_at timestamptz)
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set jit to off
as $$
  with edge as materialized (
    select e.from_step_uuid as parent, e.to_step_uuid as child from tasker.workflow_step_edges e
    where e.task_uuid = any ($1)
  ), parent as materialized (
    select coalesce(jsonb_object_agg(e.child, e.counts), '{}') as of_step from (
      select e.child, jsonb_build_object('total', count(*),
          'done', count(*) filter (where tasker.step_is_done(p.state))) as counts
      from edge e
      cross join lateral (select x.state from tasker.workflow_steps x
        where x.workflow_step_uuid = e.parent limit 1) p
      group by e.child) e
  ), failure as materialized (
    select coalesce(jsonb_object_agg(f.step, f.at), '{}') as of_step from (
      select f.workflow_step_uuid as step, max(f.created_at) as at from tasker.step_failures f
      where f.task_uuid = any ($1) group by f.workflow_step_uuid) f
  ), step as (
    select s.*, ts.named_step_uuid,
      (select parent.of_step from parent)->s.workflow_step_uuid::text as parents,
      ((select failure.of_step from failure)->>s.workflow_step_uuid::text)::timestamptz as failed_at,
      s.attempts = 0 or (s.retryable and s.attempts < s.max_attempts) as eligible
    from tasker.workflow_steps s
    cross join lateral (select x.named_step_uuid from tasker.template_steps x
      where x.template_id = s.template_id and x.ordinal = s.ordinal limit 1) ts
    where s.task_uuid = any ($1)
  )
  select s.workflow_step_uuid, s.task_uuid, s.named_step_uuid, s.name, s.state, n.total = n.done, s.eligible,
    tasker.evaluate_step_state_readiness(s.state, tasker.step_is_done(s.state),
      tasker.step_is_active(s.state), n.total = n.done, s.eligible, s.retryable, s.due_at),
    s.failed_at, s.due_at, n.total, n.done, s.attempts, s.max_attempts,
    extract(epoch from s.due_at - s.updated_at)::int,
    case when s.due_at is not null then s.updated_at else s.started_at end
  from step s
  cross join lateral (select coalesce((s.parents->>'total')::int, 0) as total,
    coalesce((s.parents->>'done')::int, 0) as done) n
$$;

-- The same for one task, or for some of its steps; parents are counted in the whole task.
create or replace function tasker.get_step_readiness_status(input_task_uuid uuid,
  step_uuids uuid[] default null)
returns table (workflow_step_uuid uuid, task_uuid uuid, named_step_uuid uuid, name text, current_state text,
  dependencies_satisfied boolean, retry_eligible boolean, ready_for_execution boolean,
  last_failure_at timestamptz, next_retry_at timestamptz, total_parents int, completed_parents int,
  attempts int, retry_limit int, backoff_request_seconds int, last_attempted_at timestamptz)
language sql stable as $$
  select r.* from tasker.get_step_readiness_status_batch(array[$1]) r
  where $2 is null or r.workflow_step_uuid = any ($2)
$$;

-- The steps that could run now.
create or replace function tasker.get_ready_steps(input_task_uuid uuid)
returns table (workflow_step_uuid uuid, task_uuid uuid, named_step_uuid uuid, name text, current_state text,
  dependencies_satisfied boolean, retry_eligible boolean, ready_for_execution boolean,
  last_failure_at timestamptz, next_retry_at timestamptz, total_parents int, completed_parents int,
  attempts int, retry_limit int, backoff_request_seconds int, last_attempted_at timestamptz)
language sql stable as $$
  select r.* from tasker.get_step_readiness_status_batch(array[$1]) r where r.ready_for_execution
$$;

-- True if all parents of a step are done; null if there is no such step.
create or replace function tasker.check_step_dependencies(input_step_uuid uuid)
returns boolean language sql stable as $$
  select r.dependencies_satisfied from tasker.workflow_steps s
  cross join lateral tasker.get_step_readiness_status(s.task_uuid, array[$1]) r
  where s.workflow_step_uuid = $1
$$;

-- The time when a failed step may run again: after the requested delay since the last attempt, or else after
-- a delay since the failure that grows by powers of the multiplier, at most `p_max_backoff_seconds`. Null if
-- neither time is known. The number is bounded before it becomes an interval, so no number of attempts
-- overflows.
create or replace function tasker.calculate_step_next_retry_time(backoff_request_seconds int,
  last_attempted_at timestamptz,
  failure_time timestamptz, attempts int, p_max_backoff_seconds int default 60,
  p_backoff_multiplier numeric default 2.0)
returns timestamptz language sql stable parallel safe as $$
  select case when $1 is not null and $2 is not null then $2 + make_interval(secs => $1)
    else $3 + make_interval(secs => tasker.calculate_backoff_delay($4, 1, $5, $6)) end
$$;

-- The delay in seconds after this number of attempts: `base_delay` times a power of the multiplier, at most
-- `p_max_backoff_seconds`.
create or replace function tasker.calculate_backoff_delay(attempts int, base_delay int,
  p_max_backoff_seconds int default 60,
  p_backoff_multiplier numeric default 2.0) returns int language sql immutable parallel safe as $$
  select least($2 * least(power($4, least(greatest(coalesce($1, 0), 0), 1000)), $3), $3)::int
$$;

-- True if a step could run now by its own values: the first attempt needs no permission to be retried.
create or replace function tasker.evaluate_step_state_readiness(current_state text, processed boolean,
  in_process boolean,
  dependencies_satisfied boolean, retry_eligible boolean, retryable boolean, next_retry_time timestamptz)
returns boolean language sql stable parallel safe as $$
  select ($1 = 'pending' or $1 = 'waiting_for_retry') and not $2 and not $3 and $4 and $5
    and ($7 is null or $7 <= tasker.now())
$$;
