-- What the engine asks beside its functions about messages. Each query is named and takes its parameters as %(name)s.

-- name: enqueued
-- How many steps of a namespace are enqueued.
select coalesce(sum(c.enqueued), 0)::bigint
from tasker.enqueue_counters c join tasker.task_namespaces ns using (namespace_id) where ns.name = %(namespace)s

-- name: set_aside
-- Keeps a message that cannot be used.
insert into tasker.poison_messages (queue_name, msg_id, message, reason)
values (%(queue)s, %(message_id)s, %(message)s::jsonb, %(reason)s)
