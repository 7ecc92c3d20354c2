-- Sizes of the inputs of steps that are too large for the database to return, the largest inputs of each, and the
-- fields with which the failure of each is reported.
-- Returns: {step: {bytes, results: count, largest: [[name, bytes]... up to 5], correlation, trace}}.
create or replace function tasker.too_large(p_steps uuid[]) returns jsonb
language sql stable as $$
  select jsonb_object_agg(s.workflow_step_uuid, jsonb_build_object('bytes', d.context_bytes + coalesce(r.bytes, 0),
    'results', r.number, 'largest', coalesce(r.largest, '[]'), 'correlation', d.correlation_id, 'trace', d.trace))
  from tasker.workflow_steps s join tasker.task_details d on d.task_uuid = s.task_uuid
  cross join lateral (
    select sum(q.bytes) as bytes, count(*) as number,
      jsonb_agg(jsonb_build_array(q.name, q.bytes) order by q.bytes desc, q.name) filter (where q.nth <= 5) as largest
    from (select x.name, x.bytes, row_number() over (order by x.bytes desc, x.name) as nth
      from tasker.results_of_ancestors(array[s.workflow_step_uuid]) w
      join tasker.step_results x on x.task_uuid = w.task_uuid and x.ordinal = w.ordinal) q) r
  where s.workflow_step_uuid = any (p_steps)
$$;
