-- Numbers of the fleet for who counts over time.

-- name: counted
-- (name of the metric, label, its value, number): open tasks by state, of which at most 100,000 are counted, and repairs.
select 'tasker_tasks_active', 'state', t.state, count(*)
from (select x.state from tasker.tasks x where not x.complete limit 100000) t group by t.state
union all
select 'tasker_repairs_total', 'kind', r.kind, r.repaired from tasker.repairs r
