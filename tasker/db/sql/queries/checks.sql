-- Queries of `tasker db check` and `tasker doctor`. They change nothing, and read slices of tasks, so that no statement
-- grows with the database. Each query has a name and takes its parameters as %(name)s.

-- name: open
-- A slice of the tasks that have not ended, in the order of their identifiers.
select t.task_uuid::text from tasker.tasks t where not t.complete and t.task_uuid > %(after)s::uuid
order by t.task_uuid limit %(limit)s

-- name: ended
-- A slice of the tasks that have ended.
select t.task_uuid::text from tasker.tasks t where t.complete and t.task_uuid > %(after)s::uuid
order by t.task_uuid limit %(limit)s

-- name: violations
-- Violated invariants of these tasks; a sweep repairs the causes of a few of them.
select v.rule, v.subject::text, v.detail from tasker.violations_v1(jsonb_build_object('tasks', to_jsonb(%(tasks)s::text[]))) v
order by v.rule, v.subject

-- name: fleet_violations
-- Violated invariants that belong to no task.
select v.rule, v.subject::text, v.detail from tasker.fleet_violations() v order by v.rule, v.subject

-- name: enqueued
-- By namespace, the steps of these tasks that have been in its queue for longer than any sweep waits, the oldest first.
select ns.name, array_agg(s.workflow_step_uuid::text order by s.updated_at)
from tasker.workflow_steps s join tasker.task_namespaces ns using (namespace_id)
where s.task_uuid = any (%(tasks)s::uuid[]) and s.state = 'enqueued'
  and s.updated_at < tasker.now() - make_interval(secs => %(seconds)s)
group by ns.name order by ns.name

-- name: unheld
-- Steps of these tasks that run for a worker that is not alive.
select s.workflow_step_uuid::text from tasker.workflow_steps s
where s.task_uuid = any (%(tasks)s::uuid[]) and s.state = 'in_progress' and not exists (
  select from tasker.workers w
  where w.worker_uuid = s.worker_uuid and w.stopped_at is null and w.lease_until > tasker.now())
order by s.workflow_step_uuid

-- name: set_aside
-- Messages that referred to nothing, by reason.
select m.queue_name || ': ' || m.reason, count(*), max(m.moved_at)::text
from tasker.poison_messages m group by m.queue_name, m.reason order by 3 desc
