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
