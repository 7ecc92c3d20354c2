-- Schedules and their fires. Each query has a name and takes its parameters as %(name)s.

-- name: may_fire
-- Whether the role may create tasks and record fires.
select has_table_privilege('tasker.tasks', 'insert')
  and has_table_privilege('tasker.schedule_fires', 'insert')

-- name: state
-- What a process needs to decide about a schedule, by its identifier; `queued`: the fire times that wait,
-- those of its own before missed ones before backfills.
select jsonb_build_object('schedule', h.schedule_uuid, 'namespace', ns.name, 'template', h.template,
  'name', h.name, 'version', h.version, 'spec', h.spec, 'revision', h.revision, 'anchor_at', h.anchor_at,
  'stopped', h.paused is not null or h.removed, 'running', array(select t.task_uuid from tasker.tasks t
    where t.task_uuid = any (h.running) and not t.complete),
  'catching_up', exists (select from tasker.tasks t
    where t.task_uuid = any (h.catching_up) and not t.complete),
  'last_fire_at', h.last_fire_at, 'last_fired_at', h.last_fired_at, 'now', tasker.now(),
  'queued', (select coalesce(jsonb_agg(jsonb_build_object('fire_at', q.fire_at, 'kind', q.kind, 'previous',
      (select p.fire_at from tasker.schedule_fires p
        where p.schedule_uuid = h.schedule_uuid and p.fire_at < q.fire_at
        and p.outcome = 'fired' order by p.fire_at desc limit 1)) order by q.place, q.fire_at), '[]')
    from (select f.fire_at, f.kind, array_position(array['schedule', 'missed', 'backfill'], f.kind) as place
      from tasker.schedule_fires f
      where f.schedule_uuid = h.schedule_uuid and f.outcome = 'queued'
        and (f.kind = 'backfill' or h.paused is null and not h.removed)
      order by place, f.fire_at limit %(queued)s::int) q))
from tasker.schedules h join tasker.task_namespaces ns using (namespace_id)
where h.schedule_uuid = %(schedule)s::uuid

-- name: listed
-- A page of schedules by namespace, template and name, after the place %(after)s (three texts; empty: from
-- the beginning). The last fire is the newest in the history that is not queued.
select jsonb_build_object('schedule_uuid', h.schedule_uuid, 'namespace', ns.name, 'template', h.template,
  'name', h.name, 'version', h.version, 'declared', h.declared, 'removed', h.removed, 'spec', h.spec,
  'paused', h.paused, 'next_at', h.next_at, 'anchor_at', h.anchor_at, 'last_fire_at', h.last_fire_at,
  'created_at', h.created_at, 'updated_at', h.updated_at,
  'queued', (select count(*) from (select from tasker.schedule_fires f
    where f.schedule_uuid = h.schedule_uuid and f.outcome = 'queued' limit 1000) q),
  'running', (select count(*) from tasker.tasks t
    where t.task_uuid = any (h.running || h.catching_up) and not t.complete),
  'last', (select jsonb_build_object('fire_at', f.fire_at, 'kind', f.kind, 'outcome', f.outcome,
      'task_uuid', f.task_uuid, 'detail', f.detail, 'decided_at', f.decided_at)
    from tasker.schedule_fires f where f.schedule_uuid = h.schedule_uuid and f.outcome <> 'queued'
    order by f.fire_at desc limit 1),
  'due_at', (select m.due_at from tasker.timers m where m.subject = h.schedule_uuid and m.kind = 's'),
  'alive', exists (select from tasker.workers w where w.stopped_at is null and w.lease_until > tasker.now()),
  'now', tasker.now())
from tasker.schedules h join tasker.task_namespaces ns using (namespace_id)
where (%(namespace)s::text is null or ns.name = %(namespace)s)
  and (%(template)s::text is null or h.template = %(template)s)
  and (%(name)s::text is null or h.name = %(name)s)
  and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s::text[]))
  and (ns.name, h.template, h.name) > (%(after_namespace)s::text, %(after_template)s::text,
    %(after_name)s::text)
order by ns.name, h.template, h.name limit %(limit)s::int

-- name: fires
-- The newest fires of a schedule before a time (null: all), with the state of each task.
select jsonb_build_object('fire_at', f.fire_at, 'kind', f.kind, 'outcome', f.outcome,
  'task_uuid', f.task_uuid, 'task_state', t.state, 'detail', f.detail, 'decided_at', f.decided_at)
from tasker.schedule_fires f left join tasker.tasks t on t.task_uuid = f.task_uuid
where f.schedule_uuid = %(schedule)s::uuid
  and (%(before)s::timestamptz is null or f.fire_at < %(before)s::timestamptz)
order by f.fire_at desc limit %(limit)s::int

-- name: between
-- The outcomes of fire times.
select f.fire_at, f.outcome from tasker.schedule_fires f
where f.schedule_uuid = %(schedule)s::uuid and f.fire_at = any (%(times)s::timestamptz[])
