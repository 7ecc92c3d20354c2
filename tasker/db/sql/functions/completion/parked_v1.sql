-- Parked steps with the fields needed to process their results: how they were parked, and the results of
-- steps that may create further steps.
-- p_args: {steps: [uuid...], events (true: say for each step whether events are stored with it; older
--   releases do not pass this key), max_bytes: limit for the results, exceeded only by a single one}.
-- Returns: {items: [{step, task, token, worker, template, ordinal, name, attempt, kind, delay_ms, result
--   (null: of a step that creates none), namespace, correlation, trace}] in the order of steps, unknown:
--   [steps that do not exist], rest: [steps whose results did not fit into the answer, for a further call]}.
create or replace function tasker.parked_v1(p_args jsonb) returns jsonb
language plpgsql stable
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_steps constant uuid[] := array(select jsonb_array_elements_text(p_args->'steps')::uuid);
  v_items jsonb;
  v_unknown jsonb;
  v_rest jsonb;
begin
  select jsonb_agg(q.item order by q.step) filter (where q.fits), jsonb_agg(q.step) filter (where not q.fits)
  into v_items, v_rest
  from (select s.workflow_step_uuid as step, jsonb_build_object('step', s.workflow_step_uuid,
    'task', s.task_uuid, 'token', s.claim_token, 'worker', s.worker_uuid, 'template', s.template_id,
    'ordinal', s.ordinal, 'name', s.name, 'attempt', s.attempts, 'kind', l.metadata->>'kind',
    'delay_ms', l.metadata->'delay_ms', 'result', r.result,
    'namespace', (select n.name from tasker.task_namespaces n where n.namespace_id = s.namespace_id),
    'correlation', d.correlation_id, 'trace', d.trace)
    || case
      when p_args ? 'events' then jsonb_build_object('publishes', exists (select from tasker.parked_events p
      where p.workflow_step_uuid = s.workflow_step_uuid and p.claim_token = s.claim_token))
    else '{}' end as item,
    coalesce(sum(r.bytes) over (order by s.workflow_step_uuid) <= greatest(
      tasker.required(p_args, 'max_bytes')::bigint, r.bytes), true) as fits
  from tasker.workflow_steps s
  cross join lateral (select l.metadata from tasker.step_moves l
    where l.workflow_step_uuid = s.workflow_step_uuid and l.sort_key = s.sort_key) l
  join tasker.task_details d on d.task_uuid = s.task_uuid
  left join lateral (select r.result, r.bytes from tasker.template_steps ts
      join tasker.step_results r on r.task_uuid = s.task_uuid
      and r.ordinal = s.ordinal and r.workflow_step_uuid = s.workflow_step_uuid
    where ts.template_id = s.template_id and ts.ordinal = s.ordinal
      and tasker.creates_steps(ts.step_type)) r on true
  where s.workflow_step_uuid = any (v_steps) and tasker.step_is_parked(s.state)) q;

  if coalesce(jsonb_array_length(v_items), 0) + coalesce(jsonb_array_length(v_rest), 0) < cardinality(v_steps)
    then
    select jsonb_agg(g.step) into v_unknown from unnest(v_steps) as g (step)
    where not exists (select from tasker.workflow_steps x where x.workflow_step_uuid = g.step);
  end if;
  return jsonb_build_object('items', coalesce(v_items, '[]'), 'unknown', v_unknown, 'rest', v_rest);
end
$$;
