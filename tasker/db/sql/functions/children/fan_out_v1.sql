-- An open fan-out with its next work: items whose children can be started, and ends that are not counted.
-- A task that is paused starts none: its fan-out is looked at again later.
-- p_args: {step, token, items, ends: most of each}
-- Returns: {template, ordinal (of the step), task, child_template, name, namespace, parent_template (names),
--   total, correlation, trace, priority, tenant, left_ms and deadline of the task, finished (true: the step
--   can end once the ends are counted), paused, items: [[index, input]], ends: [{id, index, child, ok,
--   error}], more: true if there may be more ends}; {} if it is not open
create or replace function tasker.fan_out_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
  with fan_out as materialized (
    select f.*, s.template_id as parent_template, s.ordinal, s.namespace_id, s.name
    from tasker.fan_outs f join tasker.workflow_steps s on s.workflow_step_uuid = f.workflow_step_uuid
    where f.workflow_step_uuid = (p_args->>'step')::uuid and f.token = (p_args->>'token')::bigint
      and f.state <> 'c'
  ), ends as materialized (
    select e.* from tasker.child_ends e join fan_out f on f.workflow_step_uuid = e.parent_step
      and f.token = e.token
    order by e.end_id limit tasker.required(p_args, 'ends')::int
  ), paused as materialized (
    select exists (select from tasker.pauses)
      and exists (select from tasker.pauses_of(f.namespace_id, f.parent_template, f.ordinal, f.task_uuid))
      as paused from fan_out f
  ), items as materialized (
    select i.index, i.input from fan_out f
    join tasker.fan_out_items i on i.workflow_step_uuid = f.workflow_step_uuid and i.token = f.token
      and i.index >= f.started
      and i.index < f.started + least(f.max_parallel - f.running, tasker.required(p_args, 'items')::int)
    where f.state = 'o' and not (select p.paused from paused p)
  )
  select coalesce((select jsonb_build_object('template', f.parent_template, 'ordinal', f.ordinal,
      'name', f.name, 'task', f.task_uuid, 'child_template', f.template_id, 'total', f.total,
      'namespace', (select n.name from tasker.task_namespaces n where n.namespace_id = f.namespace_id),
      'parent_template', (select nt.name from tasker.named_tasks nt
        where nt.named_task_uuid = t.named_task_uuid),
      'correlation', d.correlation_id, 'trace', d.trace, 'priority', t.priority, 'tenant', t.tenant,
      'finished', f.due and f.running = 0 and (f.state = 's' or f.started = f.total),
      'paused', (select p.paused from paused p),
      'items', coalesce((select jsonb_agg(jsonb_build_array(i.index, i.input) order by i.index)
        from items i), '[]'),
      'ends', coalesce((select jsonb_agg(jsonb_build_object('id', e.end_id, 'index', e.index,
          'child', e.child_uuid, 'ok', e.ok,
          'error', case when not e.ok then tasker.end_of_child(e.child_uuid) end) order by e.end_id)
        from ends e), '[]'),
      'more', (select count(*) from ends) = (p_args->>'ends')::int)
    || case when d.deadline_at is null or t.gates & 256 = 0 then '{}'
      else jsonb_build_object('deadline', d.deadline_at) || tasker.time_left(t.task_uuid, d.deadline_at) end
    from fan_out f join tasker.tasks t on t.task_uuid = f.task_uuid
    join tasker.task_details d on d.task_uuid = f.task_uuid), '{}')
$$;

-- Why a child did not succeed: {state, step, error_type, message} of its last failure.
create or replace function tasker.end_of_child(p_task uuid) returns jsonb
language sql stable as $$
  select jsonb_strip_nulls(jsonb_build_object('state', t.state, 'cancel_reason', d.cancel_reason)
    || coalesce((select jsonb_build_object('step', s.name, 'error_type', f.error->>'error_type',
        'message', left(f.error->>'message', 500))
      from tasker.step_failures f
      join tasker.workflow_steps s on s.workflow_step_uuid = f.workflow_step_uuid
      where f.task_uuid = p_task and t.state <> 'cancelled' order by f.failure_id desc limit 1), '{}'))
  from tasker.tasks t join tasker.task_details d on d.task_uuid = t.task_uuid where t.task_uuid = p_task
$$;

-- What the outputs of children are computed from: results of these steps of theirs, for the first tasks whose
-- results have at most `max_bytes` together, and at least for one.
-- p_args: {tasks: [uuid...], ordinals: [int...]: of the steps, context: true for the inputs as well,
--   max_bytes}
-- Returns: {task: {results: {name: result}, context}}
create or replace function tasker.child_results_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
  with chosen as materialized (
    select c.task, c.n, sum(r.bytes + case when (p_args->>'context')::boolean then d.context_bytes else 0 end)
      over (order by c.n) as sent
    from (select t.task::uuid as task, t.n
      from jsonb_array_elements_text(p_args->'tasks') with ordinality t (task, n)) c
    join tasker.task_details d on d.task_uuid = c.task
    cross join lateral (select coalesce(sum(x.bytes), 0) as bytes from tasker.step_results x
      where x.task_uuid = c.task
        and x.ordinal = any (array(select jsonb_array_elements_text(p_args->'ordinals')::int))) r
  )
  select coalesce(jsonb_object_agg(c.task, jsonb_build_object('results', coalesce((
      select jsonb_object_agg(x.name, x.result) from tasker.step_results x where x.task_uuid = c.task
        and x.ordinal = any (array(select jsonb_array_elements_text(p_args->'ordinals')::int))), '{}'),
    'context', case when (p_args->>'context')::boolean then (select d.context from tasker.task_details d
      where d.task_uuid = c.task) end)), '{}')
  from chosen c where c.n = 1 or c.sent <= tasker.required(p_args, 'max_bytes')::bigint
$$;
