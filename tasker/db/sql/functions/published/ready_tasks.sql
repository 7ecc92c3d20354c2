-- Tasks with steps that could run now and are not in a queue: they wait for room in the queue (and for no
-- pause), or their retry is due and not promoted yet. Found by their steps, so blocked or waiting tasks hide
-- none. Locks nothing: the engine takes work from queues, this function is for reports. A point of priority
-- is worth an hour of waiting unless `p_age_factor` (points per hour) is given.
create or replace function tasker.get_next_ready_tasks(p_limit int default 5, p_age_factor float8 default 1.0)
returns table (task_uuid uuid, task_name text, priority int, namespace_name text, ready_steps_count bigint,
  computed_priority numeric, current_state text)
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select t.task_uuid, nt.name, t.priority, ns.name, r.steps, p.computed, t.state
  from (
    select x.task_uuid, count(*) as steps from (
      select b.task_uuid from tasker.ready_backlog b
      where not b.paused and b.namespace_id <> all ((select tasker.paused_namespaces())::int[])
      union all
      select m.task_uuid from tasker.timers m where m.due_at <= tasker.now()) x
    group by x.task_uuid) r
  join tasker.tasks t on t.task_uuid = r.task_uuid
  join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
  join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
  cross join lateral (select
    round(t.priority + ($2 * extract(epoch from tasker.now() - t.created_at) / 3600)::numeric,
      4) as computed) p
  where not t.complete
  order by p.computed desc, t.created_at, t.task_uuid limit $1
$$;

-- The first of these tasks.
create or replace function tasker.get_next_ready_task()
returns table (task_uuid uuid, task_name text, priority int, namespace_name text, ready_steps_count bigint,
  computed_priority numeric, current_state text)
language sql stable as $$
  select n.* from tasker.get_next_ready_tasks(1) n
$$;

-- The same for one task; no row if none of its steps could run now.
create or replace function tasker.get_task_ready_info(input_task_uuid uuid, p_age_factor float8 default 1.0)
returns table (task_uuid uuid, task_name text, priority int, namespace_name text, ready_steps_count bigint,
  computed_priority numeric, current_state text)
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select t.task_uuid, nt.name, t.priority, ns.name, r.steps,
    round(t.priority + ($2 * extract(epoch from tasker.now() - t.created_at) / 3600)::numeric, 4), t.state
  from tasker.tasks t
  join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
  join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
  cross join lateral (select count(*) as steps from tasker.workflow_steps s
    left join tasker.ready_backlog b on b.workflow_step_uuid = s.workflow_step_uuid
    where s.task_uuid = t.task_uuid
      and (not (b.paused or b.namespace_id = any ((select tasker.paused_namespaces())::int[]))
      or (s.due_at <= tasker.now() and s.state = 'waiting_for_retry'))) r
  where t.task_uuid = $1 and not t.complete and r.steps > 0
$$;
