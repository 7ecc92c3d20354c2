-- What `tasker db check` reads. It changes nothing, and reads everything: run it seldom.

-- name: violations
-- Broken invariants; of a few a sweep repairs what breaks them.
select v.rule, v.subject::text, v.detail from tasker.violations_v1('{}') v order by v.rule, v.subject

-- name: enqueued
-- By namespace the steps that have been waiting in its queue for longer than any sweep waits, the oldest first.
select ns.name, array_agg(s.workflow_step_uuid::text order by s.updated_at)
from tasker.workflow_steps s join tasker.task_namespaces ns using (namespace_id)
where s.state = 'enqueued' and s.updated_at < tasker.now() - make_interval(secs => %(seconds)s)
group by ns.name order by ns.name

-- name: unheld
-- Steps that run for a worker which is not alive.
select s.workflow_step_uuid::text from tasker.workflow_steps s
where s.state = 'in_progress' and not exists (
  select from tasker.workers w
  where w.worker_uuid = s.worker_uuid and w.stopped_at is null and w.lease_until > tasker.now())
order by s.workflow_step_uuid

-- name: set_aside
-- Messages that pointed to nothing, by the reason.
select m.queue_name || ': ' || m.reason, count(*), max(m.moved_at)::text
from tasker.poison_messages m group by m.queue_name, m.reason order by 3 desc
