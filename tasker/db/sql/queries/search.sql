-- Matches of a search text (services/task_search.py). Each query has a name and takes its parameters as %(name)s.

-- name: of_uuid
-- The objects with this identifier: a task, also found by one of its steps; a dead letter; tasks of one correlation.
select q.kind, q.found from (
  select 1 as place, 'task' as kind, t.task_uuid::text as found, ns.name as namespace
  from tasker.tasks t join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
  where t.task_uuid in (%(uuid)s::uuid, (left(%(uuid)s::text, 30) || '000000')::uuid)
  union all
  select 2, 'entry', e.dlq_entry_uuid::text, e.namespace from tasker.tasks_dlq e
  where e.dlq_entry_uuid = %(uuid)s::uuid
  union all
  (select 3, 'correlation', d.correlation_id::text, ns.name
  from tasker.task_details d join tasker.tasks t on t.task_uuid = d.task_uuid
  join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
  where d.correlation_id = %(uuid)s::uuid limit 100)) q
where %(namespaces)s::text[] is null or q.namespace = any (%(namespaces)s)
order by q.place limit 1

-- name: templates_like
-- Templates with the text in their name, exact matches first.
select q.namespace, q.name, q.same from (
  select distinct ns.name as namespace, nt.name as name,
    lower(%(text)s::text) in (lower(nt.name), lower(ns.name || '/' || nt.name), lower(ns.name || '/' || nt.name || ':' || nt.version)) as same
  from tasker.named_tasks nt join tasker.task_namespaces ns on ns.namespace_id = nt.namespace_id
  where position(lower(%(text)s::text) in lower(ns.name || '/' || nt.name || ':' || nt.version)) > 0
    and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s))) q
order by q.same desc, lower(q.namespace) = lower(%(text)s::text) desc, q.namespace, q.name limit %(limit)s

-- name: tagged
-- One row if a task has this tag.
select 1 from tasker.task_details d join tasker.tasks t on t.task_uuid = d.task_uuid
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
where d.tags @> array[%(tag)s::text] and cardinality(d.tags) > 0
  and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s)) limit 1
