-- Events that were sent to steps that wait.

-- name: waits_of_event
-- How many waits have taken and refused an event that its sender found taken by none: another process may
-- match it.
select count(*) filter (where x.problem is null), count(*) filter (where x.problem is not null)
from tasker.wait_events x where x.event_uuid = %(event)s::uuid

-- name: incoming
-- The newest events of the permitted namespaces, and how many waits have taken or refused each.
select e.event_uuid::text, ns.name, e.name, e.key, e.bytes, e.exclusive, e.dedupe_id, e.sent_by, e.sent_at,
  e.expires_at, tasker.step_uuid(e.taken_by, 0)::text as taken_by,
  (select count(*) from tasker.wait_events x where x.event_uuid = e.event_uuid and x.problem is null),
  (select count(*) from tasker.wait_events x where x.event_uuid = e.event_uuid and x.problem is not null)
from tasker.incoming_events e join tasker.task_namespaces ns using (namespace_id)
where (%(namespace)s::text is null or ns.name = %(namespace)s)
  and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s))
  and (%(name)s::text is null or e.name = %(name)s) and (%(key)s::text is null or e.key = %(key)s)
order by e.event_uuid desc limit %(limit)s
