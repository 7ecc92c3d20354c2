-- Violated invariants that belong to no task, as rows of violations_v1.
create or replace function tasker.fleet_violations() returns table (rule text, subject uuid, detail text)
language sql stable
as $$
  select 'in the backlog, but not ready', b.workflow_step_uuid, 'no such step'
  from tasker.ready_backlog b
  where not exists (select from tasker.workflow_steps s where s.workflow_step_uuid = b.workflow_step_uuid)
  union all
  select 'timer of a step that waits for no time', m.subject, 'no such step'
  from tasker.timers m where not exists (select from tasker.workflow_steps s where s.workflow_step_uuid = m.subject)
    and not (m.kind = 'x' and exists (select from tasker.tasks t where t.task_uuid = m.subject))
  union all
  select 'counter of enqueued steps differs', null, format('namespace %s: counter %s, rows %s', ns.name,
    coalesce(c.enqueued, 0), coalesce(s.enqueued, 0))
  from tasker.task_namespaces ns
  left join (select k.namespace_id, sum(k.enqueued) as enqueued from tasker.enqueue_counters k
    group by k.namespace_id) c on c.namespace_id = ns.namespace_id
  left join (select w.namespace_id, count(*) as enqueued
    from tasker.tasks t join tasker.workflow_steps w on w.task_uuid = t.task_uuid
    where not t.complete and w.state = 'enqueued' group by w.namespace_id) s on s.namespace_id = ns.namespace_id
  where coalesce(c.enqueued, 0) <> coalesce(s.enqueued, 0)
$$;
