-- Fields for the log lines of enqueued steps, in the order of `send`.
-- p_args: {send}: as returned by a function of the engine.
-- Returns: {enqueued: [{correlation, trace, task, step, namespace, name, attempt: the one that the step waits
--   for}]}
create or replace function tasker.enqueued_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
  select jsonb_build_object(
    'enqueued', coalesce(jsonb_agg(jsonb_build_object('correlation', d.correlation_id, 'trace', d.trace,
    'task', s.task_uuid, 'step', s.workflow_step_uuid, 'namespace', h.hint->'namespace', 'name', s.name,
    'attempt', s.attempts + 1) order by h.place), '[]'))
  from jsonb_array_elements(nullif(p_args->'send', 'null')) with ordinality as h (hint, place)
  join tasker.workflow_steps s on s.workflow_step_uuid = (h.hint->>'step')::uuid
  join tasker.task_details d on d.task_uuid = s.task_uuid
$$;
