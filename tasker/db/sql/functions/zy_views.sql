-- Who waits for whom: the edges of steps that were created while the task ran, and those of the task's template.
create or replace view tasker.workflow_step_edges as
select e.task_uuid, e.from_step_uuid, e.to_step_uuid, e.name from tasker.dynamic_edges e
union all
select t.task_uuid, tasker.step_uuid(t.task_uuid, te.from_ordinal + 1), tasker.step_uuid(t.task_uuid, te.to_ordinal + 1),
  'dependency'
from tasker.tasks t join tasker.template_edges te on te.template_id = t.template_id;

-- History as a row per transition, from the paths. A step's first row, its creation, is the step's own row.
create or replace view tasker.task_transitions as
select md5('task' || l.id || ':' || p.n)::uuid as task_transition_uuid, l.task_uuid, p.states[p.n + 1] as to_state,
  p.states[p.n] as from_state, l.processor_uuid, l.metadata, l.sort_key - (cardinality(p.states) - 1 - p.n) as sort_key,
  l.sort_key = t.sort_key and p.n = cardinality(p.states) - 1 as most_recent, l.created_at, l.created_at as updated_at
from tasker.task_transition_log l
join tasker.tasks t on t.task_uuid = l.task_uuid
cross join lateral (select s.states, g.n from (select string_to_array(l.path, '>') as states) s
  cross join lateral generate_series(1, cardinality(s.states) - 1) as g (n)) p
union all
select md5('task' || t.task_uuid)::uuid, t.task_uuid, 'pending', null, null, null, 1, t.sort_key = 1, t.created_at,
  t.created_at
from tasker.tasks t;

create or replace view tasker.workflow_step_transitions as
select md5('step' || l.id || ':' || p.n)::uuid as workflow_step_transition_uuid, l.workflow_step_uuid, l.task_uuid,
  p.states[p.n + 1] as to_state, p.states[p.n] as from_state, l.metadata,
  l.sort_key - (cardinality(p.states) - 1 - p.n) as sort_key,
  l.sort_key = s.sort_key and p.n = cardinality(p.states) - 1 as most_recent, l.created_at, l.created_at as updated_at,
  l.worker_uuid, l.attempt, l.claim_token, l.execution_time_ms
from tasker.step_transition_log l
join tasker.workflow_steps s on s.workflow_step_uuid = l.workflow_step_uuid
cross join lateral (select x.states, g.n from (select string_to_array(l.path, '>') as states) x
  cross join lateral generate_series(1, cardinality(x.states) - 1) as g (n)) p
union all
select md5('step' || s.workflow_step_uuid)::uuid, s.workflow_step_uuid, s.task_uuid, 'pending', null, null, 1,
  s.sort_key = 1, s.created_at, s.created_at, null, 0, 0, null
from tasker.workflow_steps s;

-- Who stored which result, without the result (B-83): the rows of the history that a worker's result or failure has left.
create or replace view tasker.workflow_step_result_audit as
select md5('audit' || l.id)::uuid as workflow_step_result_audit_uuid, l.workflow_step_uuid, l.id as step_transition_id,
  l.task_uuid, l.created_at as recorded_at, l.worker_uuid, d.correlation_id, l.success, l.execution_time_ms
from tasker.step_transition_log l left join tasker.task_details d on d.task_uuid = l.task_uuid
where l.success is not null;
