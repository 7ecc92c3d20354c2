-- What is to be done about child tasks: steps whose children are not planned yet, and fan-outs of which
-- children ended, can be started, or have all ended. This only reads, so that after a crash the next caller
-- gets the same answer.
-- p_args: {limit: of each}
-- Returns: {unplanned: [{step, token, task, template, ordinal}], fan_outs: [{step, token}], stray: [{step,
--   token}]: of ends that no open fan-out counts, more: true if there may be more}
create or replace function tasker.child_work_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
  with recursive bounds as materialized (
    select tasker.required(p_args, 'limit')::int as most
  ), unplanned as materialized (
    select w.workflow_step_uuid, w.token, w.task_uuid, s.template_id, s.ordinal
    from (select x.* from tasker.step_waits x where x.kind = 'c' and not x.probed and x.ended_at is null
      order by x.since limit (select b.most from bounds b)) w
    join tasker.workflow_steps s on s.workflow_step_uuid = w.workflow_step_uuid
  ), ended (step, token, n) as (   -- from one fan-out to the next, however many ends each has
    (select e.parent_step, e.token, 1 from tasker.child_ends e order by e.parent_step, e.token limit 1)
    union all
    select x.parent_step, x.token, w.n + 1 from ended w
    cross join lateral (select e.parent_step, e.token from tasker.child_ends e
      where (e.parent_step, e.token) > (w.step, w.token) order by e.parent_step, e.token limit 1) x
    where w.n < (select b.most from bounds b)
  ), counted as materialized (
    select e.step, e.token, exists (select from tasker.fan_outs f where f.workflow_step_uuid = e.step
      and f.token = e.token and f.state <> 'c') as open from ended e
  ), due as materialized (
    select f.workflow_step_uuid as step, f.token from tasker.fan_outs f
    where f.due and f.look_at <= tasker.now()
    order by f.look_at limit (select b.most from bounds b)
  ), fan_outs as (
    select c.step, c.token from counted c where c.open union select d.step, d.token from due d
  )
  select jsonb_build_object(
    'unplanned', coalesce((select jsonb_agg(jsonb_build_object('step', u.workflow_step_uuid,
      'token', u.token, 'task', u.task_uuid, 'template', u.template_id, 'ordinal', u.ordinal))
      from unplanned u), '[]'),
    'fan_outs', coalesce((select jsonb_agg(jsonb_build_object('step', f.step, 'token', f.token))
      from fan_outs f), '[]'),
    'stray', coalesce((select jsonb_agg(jsonb_build_object('step', c.step, 'token', c.token))
      from counted c where not c.open), '[]'),
    'more', (select b.most from bounds b) in ((select count(*) from unplanned),
      (select count(*) from counted), (select count(*) from due)))
$$;
