-- Queries about messages beside the engine's functions. Each query has a name and takes its parameters as %(name)s.

-- name: enqueued
-- How many steps of each of these namespaces are enqueued; none has no row.
select ns.name, sum(c.enqueued)::bigint
from tasker.enqueue_counters c join tasker.task_namespaces ns using (namespace_id)
where ns.name = any (%(namespaces)s::text[]) group by ns.name

-- name: missing
-- Of steps by namespace those that have no message, with their namespace; {missing} is the backend's function.
select w.key, m::text
from jsonb_each(%(waiting)s::jsonb) w
cross join lateral {missing}(w.key, array(select jsonb_array_elements_text(w.value)::uuid)) m

-- name: set_aside
-- Quarantines a message that cannot be used.
insert into tasker.poison_messages (queue_name, msg_id, message, reason)
values (%(queue)s, %(message_id)s, %(message)s::jsonb, %(reason)s)
