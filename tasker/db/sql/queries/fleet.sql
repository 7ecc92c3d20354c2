-- Numbers of the fleet for who counts over time.

-- name: counted
-- (name of the metric, label, its value, number): open tasks by state, of which at most 100,000 are counted, repairs, and since
-- when steps are in the queues.
select 'tasker_tasks_active', 'state', t.state, count(*)
from (select x.state from tasker.tasks x where not x.complete limit 100000) t group by t.state
union all
select 'tasker_repairs_total', 'kind', r.kind, r.repaired from tasker.repairs r
union all
-- of the 200 tasks that have been open longest: whatever there is, no more is read
select 'tasker_queue_age_seconds', 'namespace', ns.name, extract(epoch from tasker.now() - min(s.updated_at))::float8
from (select x.task_uuid from tasker.tasks x where not x.complete order by x.task_uuid limit 200) t
join tasker.workflow_steps s on s.task_uuid = t.task_uuid and s.state = 'enqueued'
join tasker.task_namespaces ns using (namespace_id)
group by ns.name

-- name: backlog
-- Ready steps that wait outside of their queue, by namespace and by the priority of their tasks: those held because the queue
-- is full, and those that a pause holds. At most 20,000 are counted.
select ns.name, t.priority, count(*) filter (where not b.paused), count(*) filter (where b.paused)
from (select x.task_uuid, x.paused from tasker.ready_backlog x limit 20000) b
join tasker.tasks t on t.task_uuid = b.task_uuid join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
group by ns.name, t.priority order by ns.name, t.priority desc

-- name: in_hand
-- The steps that a process runs, those that began first before the others; of the newest 20,000 open tasks.
select s.task_uuid::text, s.name, ns.name || '/' || nt.name, s.attempts, s.started_at, s.deadline_at
from (select x.task_uuid, x.named_task_uuid from tasker.tasks x where not x.complete order by x.task_uuid desc limit 20000) t
join tasker.workflow_steps s on s.task_uuid = t.task_uuid and s.state = 'in_progress' and s.worker_uuid = %(worker)s::uuid
join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
join tasker.task_namespaces ns on ns.namespace_id = nt.namespace_id
order by s.started_at, s.workflow_step_uuid limit 200
