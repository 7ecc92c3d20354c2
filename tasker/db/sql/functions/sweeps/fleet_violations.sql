-- Violated invariants that belong to no task, as rows of violations_v1.
create or replace function tasker.fleet_violations() returns table (rule text, subject uuid, detail text)
language sql stable
as $$
  select 'in the backlog, but not ready', b.workflow_step_uuid, 'no such step'
  from tasker.ready_backlog b
  where not exists (select from tasker.workflow_steps s where s.workflow_step_uuid = b.workflow_step_uuid)
  union all
  select 'timer of a step that waits for no time', m.subject, 'no such step'
  from tasker.timers m
  where not exists (select from tasker.workflow_steps s where s.workflow_step_uuid = m.subject)
    and not (m.kind in ('x', 'c') and exists (select from tasker.tasks t where t.task_uuid = m.subject))
    and not (m.kind = 'd' and exists (select from tasker.tasks t where t.task_uuid = m.subject
        and not t.complete)) and m.kind <> 's'
  union all
  select 'timer of no schedule', m.subject, null
  from tasker.timers m
  where m.kind = 's' and not exists (select from tasker.schedules h where h.schedule_uuid = m.subject)
  union all
  select 'schedule with something to do and without a timer', h.schedule_uuid, h.template || '/' || h.name
  from tasker.schedules h
  where not exists (select from tasker.timers m where m.kind = 's' and m.subject = h.schedule_uuid)
    and (h.next_at is not null
      or exists (select from tasker.schedule_fires f where f.schedule_uuid = h.schedule_uuid
      and f.outcome = 'queued' and (f.kind = 'backfill' or h.paused is null and not h.removed)))
  union all
  select 'schedule that is paused or removed and has a next fire time', h.schedule_uuid,
    h.template || '/' || h.name
  from tasker.schedules h where h.next_at is not null and (h.paused is not null or h.removed)
  union all
  select 'permit of a step that does not run', p.subject, 'no such step'
  from tasker.limit_permits p
  where not exists (select from tasker.workflow_steps s where s.workflow_step_uuid = p.subject)
    and not exists (select from tasker.tasks t where t.task_uuid = p.subject and not t.complete)
  union all
  select 'waits for a permit, but is not ready', w.workflow_step_uuid, 'no such step'
  from tasker.limit_waiters w
  where not exists (select from tasker.workflow_steps s where s.workflow_step_uuid = w.workflow_step_uuid)
  union all   -- a lowered limit takes no permit away
  select 'more permits than the limit', null,
    format('%s, key %s: %s of %s', r.name, p.value, count(*), r.max_running)
  from tasker.limit_permits p join tasker.limit_rules r using (rule_id)
  group by r.name, r.max_running, r.changed_at, p.value
  having count(*) > r.max_running and max(p.granted_at) > r.changed_at
  union all
  select 'a permit is free, and a step waits for it', null, format('%s, key %s', r.name, k.value)
  from tasker.waiting_keys(0, null, 100000) k join tasker.limit_rules r using (rule_id)
  where tasker.free_permits(k.rule_id, k.value) > 0
    and not exists (select from tasker.limit_notes n where n.rule_id = k.rule_id and n.value = k.value)
  union all
  select 'link of a task that does not exist', l.child_uuid, null
  from tasker.task_links l
  where not exists (select from tasker.tasks t where t.task_uuid = l.child_uuid)
  union all
  select 'counter of enqueued steps differs', null, format('namespace %s: counter %s, rows %s', ns.name,
    coalesce(c.enqueued, 0), coalesce(s.enqueued, 0))
  from tasker.task_namespaces ns
  left join (select k.namespace_id, sum(k.enqueued) as enqueued from tasker.enqueue_counters k
    group by k.namespace_id) c on c.namespace_id = ns.namespace_id
  left join (select w.namespace_id, count(*) as enqueued
    from tasker.tasks t join tasker.workflow_steps w on w.task_uuid = t.task_uuid
    where not t.complete and w.state = 'enqueued' group by w.namespace_id) s
    on s.namespace_id = ns.namespace_id
  where coalesce(c.enqueued, 0) <> coalesce(s.enqueued, 0)
$$;

-- True if each state of a path may follow the one before it.
create or replace function tasker.path_is_legal(p_subject text, p_path text) returns boolean
language sql immutable parallel safe
as $$
  select not exists (
    select from string_to_array(p_path, '>') as p (states)
    cross join lateral generate_series(2, cardinality(p.states)) as g (n)
    where not exists (select from tasker.legal_transitions() l
      where l.subject = p_subject and l.state = p.states[g.n - 1] and p.states[g.n] = any (l.followers)))
$$;
