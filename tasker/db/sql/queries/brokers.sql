-- Queues and messages beside the functions of the engine: what a messaging provider should contain by the
-- rows of steps, the processes that take messages, and steps whose messages are missing.

-- name: namespaces
-- Every namespace with the number of its enqueued steps, by name.
select ns.name, coalesce(sum(c.enqueued), 0)::bigint
from tasker.task_namespaces ns left join tasker.enqueue_counters c using (namespace_id)
group by ns.name order by ns.name

-- name: parked
-- How many results wait for an orchestrator. What is parked is of a task that is under way: these have an
-- index.
select count(*) from tasker.tasks t join tasker.workflow_steps s using (task_uuid)
where not t.complete and not t.waits and t.active > 0 and tasker.step_is_parked(s.state)

-- name: processes
-- The processes with a valid lease: kind, provider, host, process number, namespaces.
select w.kind, coalesce(w.backend, ''), w.host, w.pid, w.namespaces from tasker.workers w
where w.stopped_at is null and w.lease_until > tasker.now() order by w.started_at

-- name: paused
-- The pauses of orchestration queues: queue, start, actor, reason.
select p.queue, p.paused_at, p.actor, p.reason from tasker.pauses p where p.queue is not null

-- name: former
-- The provider other than %(backend)s that a process used last; no row if there is none.
select w.backend from tasker.workers w where w.backend <> %(backend)s order by w.started_at desc limit 1

-- name: waiting
-- A slice of the open tasks after %(after)s: its last task, and the steps that should have a message, in the
-- order of the identifiers. Enqueued steps by namespace; parked ones as messages.
with open as materialized (
  select t.task_uuid from tasker.tasks t
  where not t.complete and t.task_uuid > %(after)s::uuid order by t.task_uuid limit %(limit)s
), steps as materialized (
  select s.workflow_step_uuid as step, s.task_uuid as task, s.claim_token as token, s.state,
    ns.name as namespace
  from open join tasker.workflow_steps s using (task_uuid) join tasker.task_namespaces ns using (namespace_id)
  where s.state = 'enqueued' or tasker.step_is_parked(s.state)
)
select jsonb_build_object(
  'last', (select o.task_uuid from open o order by o.task_uuid desc limit 1),
  'enqueued', (select coalesce(jsonb_object_agg(n.namespace, n.steps), '{}') from (
    select s.namespace, jsonb_agg(s.step order by s.step) as steps from steps s where s.state = 'enqueued'
    group by 1) n),
  'parked', (select coalesce(jsonb_agg(jsonb_build_object('step', s.step, 'task', s.task, 'token', s.token)
    order by s.step), '[]') from steps s where s.state <> 'enqueued'))

-- name: enqueued
-- How many steps of each of these namespaces are enqueued; none has no row.
select ns.name, sum(c.enqueued)::bigint
from tasker.enqueue_counters c join tasker.task_namespaces ns using (namespace_id)
where ns.name = any (%(namespaces)s::text[]) group by ns.name

-- name: missing
-- Of steps by namespace those that have no message, with their namespace; {missing} is the backend's
-- function.
select w.key, m::text
from jsonb_each(%(waiting)s::jsonb) w
cross join lateral {missing}(w.key, array(select jsonb_array_elements_text(w.value)::uuid)) m

-- name: set_aside
-- Quarantines a message that cannot be used.
insert into tasker.poison_messages (queue_name, msg_id, message, reason)
values (%(queue)s, %(message_id)s, %(message)s::jsonb, %(reason)s)
