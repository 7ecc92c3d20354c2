-- The inputs of the handlers of these steps, up to `max_bytes` (at least those of one step); the caller
-- requests the rest in further calls.
-- p_args: {steps: [uuid...], own: [uuid...]: steps whose own inputs did not fit into the answer that claimed
--   them, describe: true if an earlier answer could not be read: only sizes are returned, max_bytes}
-- Returns: as tasker.shared_inputs, own: as tasker.own_inputs, rest: [steps and own that are left]
create or replace function tasker.inputs_v1(p_args jsonb) returns jsonb
language plpgsql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_steps constant uuid[] := array(select jsonb_array_elements_text(p_args->'steps')::uuid);
  v_max constant bigint not null := (p_args->>'max_bytes')::bigint;
  v_beyond uuid[];
  v_answer jsonb;
begin
  if p_args ? 'describe' then
    return jsonb_build_object('too_large', tasker.too_large(v_steps));
  end if;
  if cardinality(v_steps) > 1 then
    v_beyond := tasker.cut_by_bytes(v_steps, v_max);
  end if;
  v_answer := tasker.shared_inputs(v_steps[:cardinality(v_steps) - coalesce(cardinality(v_beyond), 0)]);
  if v_beyond is not null then
    v_answer := v_answer || jsonb_build_object('rest', to_jsonb(v_beyond));
  end if;
  if p_args ? 'own' then
    v_answer := v_answer || jsonb_build_object('own',
      tasker.own_inputs(array(select jsonb_array_elements_text(p_args->'own')::uuid), v_max));
  end if;
  return v_answer;
end
$$;

-- The inputs that the handlers of these steps read from their tasks: the contexts, and the results of every
-- ancestor, once each. Ancestors are found in the template by ordinal (tasker.results_of_ancestors); steps
-- without a row or a result are absent. Inputs that the database cannot return at once (256 MiB) are replaced
-- by their sizes: that is a single step that reads so much.
-- Returns: {tasks: {id: {context, correlation, trace, left_ms: as tasker.time_left}}, results: {task id:
--   {step name: [ordinal, result]}}}, with `failures`, as tasker.failures_of, for tasks that may go on after
--   a failure, and `outcome`, as tasker.outcome_at_rest, for those at rest;
--   or {tasks, results: {}, too_large: as tasker.too_large}.
create or replace function tasker.shared_inputs(p_steps uuid[]) returns jsonb
language plpgsql stable as $$
declare
  v_answer jsonb;
begin
  with tasks as (
    -- offset: a look-up for each, even if it was planned while there were few steps
    select distinct s.task_uuid, t.gates & 16 <> 0 or t.phase is not null as fails, t.phase
    from unnest(p_steps) as p (step)
    cross join lateral (select x.task_uuid from tasker.workflow_steps x
      where x.workflow_step_uuid = p.step offset 0) s
    cross join lateral (select y.gates, y.phase from tasker.tasks y
      where y.task_uuid = s.task_uuid offset 0) t
  )
  select jsonb_build_object(
    'tasks', coalesce((select jsonb_object_agg(d.task_uuid, jsonb_build_object('context', d.context,
        'correlation', d.correlation_id, 'trace', d.trace)
        || case when d.deadline_at is null or x.phase is not null then '{}'
          else tasker.time_left(d.task_uuid, d.deadline_at) end
        || case when x.fails then jsonb_build_object('failures', tasker.failures_of(x.task_uuid))
          else '{}' end
        || case when x.phase is not null
          then jsonb_build_object('outcome', tasker.outcome_at_rest(x.task_uuid)) else '{}' end)
      from tasks x join tasker.task_details d on d.task_uuid = x.task_uuid), '{}'),
    'results', coalesce((select jsonb_object_agg(r.task_uuid, r.results) from (
        select w.task_uuid, jsonb_object_agg(sr.name, jsonb_build_array(sr.ordinal, sr.result)) as results
        from tasker.results_of_ancestors(p_steps) w
        join tasker.step_results sr on sr.task_uuid = w.task_uuid and sr.ordinal = w.ordinal
        group by w.task_uuid) r), '{}')) into v_answer;
  return v_answer;
exception when program_limit_exceeded then
  return jsonb_build_object('tasks', '{}'::jsonb, 'results', '{}'::jsonb,
    'too_large', tasker.too_large(p_steps));
end
$$;

-- The steps without which a task goes on, or came to rest, and why: {step name: {error_type, message,
-- error_code, attempt}}.
create or replace function tasker.failures_of(p_task uuid) returns jsonb
language sql stable as $$
  select coalesce(jsonb_object_agg(s.name, case when s.settled = 's' then
      '{"error_type": "skipped", "message": "a step above it failed"}'
    else jsonb_build_object('error_type', f.error->'error_type', 'message', left(f.error->>'message', 4000),
      'error_code', f.error->'error_code', 'attempt', f.attempt) end), '{}')
  from tasker.tasks t join tasker.workflow_steps s on s.task_uuid = t.task_uuid
  left join lateral (select x.error, x.attempt from tasker.step_failures x
    where x.task_uuid = s.task_uuid and x.workflow_step_uuid = s.workflow_step_uuid
      and s.settled is distinct from 's'
    order by x.failure_id desc limit 1) f on true
  where t.task_uuid = p_task and (s.settled is not null or t.phase is not null and s.state = 'error')
    and (t.phase is null or not tasker.is_late(s.template_id, s.ordinal))
$$;

-- How a task came to rest, without its compensations and steps of `finally`: {state, outcome, reason (of a
-- cancel)}.
create or replace function tasker.outcome_at_rest(p_task uuid) returns jsonb
language sql stable as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'state', case when t.phase in ('k', 'x') then 'cancelled' when q.failed then 'error' else 'complete' end,
    'outcome', coalesce(t.outcome,
      case when t.phase = 'f' and not q.failed and q.missing then 'partial' end),
    'reason', case when t.phase in ('k', 'x') then d.cancel_reason end))
  from tasker.tasks t join tasker.task_details d on d.task_uuid = t.task_uuid
  cross join lateral (
    select coalesce(bool_or(not tasker.step_satisfies(s.state, s.settled)), false) as failed,
      coalesce(bool_or(s.settled <> 'o'), false) as missing
    from tasker.workflow_steps s
    where s.task_uuid = t.task_uuid and not tasker.is_late(s.template_id, s.ordinal)) q
  where t.task_uuid = p_task
$$;

-- The inputs and the checkpoint of each of these steps, up to `p_max` bytes together, in the order of the
-- steps; those of the first step always. A step beyond the limit has {later: true}: the worker reads it with
-- tasker.inputs_v1.
-- Returns: {step: {inputs, checkpoint} | {later: true}}; null if no step has either, which is the usual case.
create or replace function tasker.own_inputs(p_steps uuid[], p_max bigint) returns jsonb
language plpgsql stable as $$
begin
  return (
    select jsonb_object_agg(q.step, case when q.sent <= greatest(p_max, q.bytes)
      then jsonb_build_object('inputs', q.inputs, 'checkpoint', q.checkpoint) else '{"later": true}' end)
    from (
      select o.*, sum(o.bytes) over (order by o.step) as sent from (
        select coalesce(i.workflow_step_uuid, k.workflow_step_uuid) as step, i.inputs, k.checkpoint,
          coalesce(i.bytes, 0)::bigint + coalesce(k.bytes, 0) as bytes
        from (select * from tasker.step_inputs where workflow_step_uuid = any (p_steps)) i
        full join (select * from tasker.step_checkpoints where workflow_step_uuid = any (p_steps)) k
          using (workflow_step_uuid)
      ) o) q);
end
$$;
