-- Outputs of the children of a step, in the order of its list: of its last fan-out.
-- p_args: {task, step: name, after: index (from the first), limit, max_bytes (at least one is returned)}
-- Returns: {total, children: [{index, task_uuid, state: waits, runs, succeeded or failed, output, error}],
--   more}; {} if the step has started none
create or replace function tasker.children_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
  with fan_out as materialized (
    select f.* from tasker.workflow_steps s
    join tasker.fan_outs f on f.workflow_step_uuid = s.workflow_step_uuid
    where s.task_uuid = (p_args->>'task')::uuid and s.name = p_args->>'step'
    order by f.token desc limit 1
  ), page as materialized (
    select i.*, sum(coalesce(pg_column_size(i.output), 0)) over (order by i.index) as sent,
      row_number() over (order by i.index) as n
    from fan_out f join tasker.fan_out_items i on i.workflow_step_uuid = f.workflow_step_uuid
      and i.token = f.token and i.index > coalesce((p_args->>'after')::int, -1)
      and i.index <= coalesce((p_args->>'after')::int, -1) + tasker.required(p_args, 'limit')::int
  ), fitting as materialized (
    select p.* from page p where p.n = 1 or p.sent <= tasker.required(p_args, 'max_bytes')::bigint
  )
  select coalesce((select jsonb_build_object('total', f.total,
    'more', f.total > coalesce((select max(p.index) + 1 from fitting p), f.total),
    'children', coalesce((select jsonb_agg(jsonb_build_object('index', p.index, 'task_uuid', p.task_uuid,
        'state', case p.state when 'w' then 'waits' when 'r' then 'runs' when 'o' then 'succeeded'
          else 'failed' end, 'output', p.output, 'error', p.error) order by p.index) from fitting p), '[]'))
    from fan_out f), '{}')
$$;
