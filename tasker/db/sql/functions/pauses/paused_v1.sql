-- The current pauses, the oldest first, with the number of ready steps that each holds back (null for a
-- queue; at most 100,000 are read for each namespace); and the log of pauses, the newest first.
-- p_args: {limit: of the log}.
-- Returns: {pauses: [...], log: [...]}.
create or replace function tasker.paused_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'pauses', (select coalesce(jsonb_agg(jsonb_build_object('namespace', ns.name, 'template', p.template,
        'step', p.step,
        'task', p.task_uuid, 'queue', p.queue, 'actor', p.actor, 'reason', p.reason, 'paused_at', p.paused_at,
        'held', h.held)
        order by p.paused_at, p.pause_id), '[]')
      from tasker.pauses p left join tasker.task_namespaces ns using (namespace_id)
      left join lateral (
        -- the whole backlog of the namespace
        select case when p.template is null and p.task_uuid is null then (
            select count(*)
            from (select from tasker.ready_backlog b where b.namespace_id = p.namespace_id limit 100000) b)
          else (select count(*) from (select x.workflow_step_uuid from tasker.ready_backlog x
              where x.namespace_id = p.namespace_id and x.paused limit 100000) b
            join tasker.workflow_steps s on s.workflow_step_uuid = b.workflow_step_uuid
            where exists (
              select from tasker.pauses_of(s.namespace_id, s.template_id, s.ordinal, s.task_uuid) f
              where f.pause_id = p.pause_id)) end as held) h on p.queue is null
      where not exists (select from tasker.tasks t where t.task_uuid = p.task_uuid
        and tasker.task_is_final(t.state))),
    'log', (select coalesce(jsonb_agg(to_jsonb(l) - 'id' order by l.id desc), '[]')
      from (select * from tasker.pause_log l
        order by l.id desc limit tasker.required(p_args, 'limit')::int) l))
$$;
