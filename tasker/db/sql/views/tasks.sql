-- The edges between steps: of steps created while the task ran, and of the task's template.
create or replace view tasker.workflow_step_edges as
select e.task_uuid, e.from_step_uuid, e.to_step_uuid, e.name from tasker.dynamic_edges e
union all
select t.task_uuid, tasker.step_uuid(t.task_uuid, te.from_ordinal + 1),
  tasker.step_uuid(t.task_uuid, te.to_ordinal + 1),
  'dependency'
from tasker.tasks t join tasker.template_edges te on te.template_id = t.template_id;

-- The history as it is written, one row for each write, with the names of the states.
create or replace view tasker.task_transition_log as
select m.task_uuid, tasker.path_text(m.path) as path, m.sort_key, m.processor_uuid, m.metadata, m.created_at
from tasker.task_moves m;

create or replace view tasker.step_transition_log as
select s.task_uuid, m.workflow_step_uuid, tasker.path_text(m.path) as path, m.sort_key, m.attempt,
  m.claim_token,
  m.worker_uuid, tasker.path_succeeded(m.path) as success, m.execution_time_ms, m.metadata, m.created_at
from tasker.step_moves m join tasker.workflow_steps s on s.workflow_step_uuid = m.workflow_step_uuid;

-- The history with one row for each transition, from the paths. A step's first row, its creation, is the
-- step's own row.
create or replace view tasker.task_transitions as
select md5('task' || m.task_uuid || ':' || k.sort_key)::uuid as task_transition_uuid, m.task_uuid,
  p.states[k.n + 1] as to_state, p.states[k.n] as from_state, m.processor_uuid, m.metadata, k.sort_key,
  k.sort_key = t.sort_key as most_recent, m.created_at, m.created_at as updated_at
from tasker.task_moves m
join tasker.tasks t on t.task_uuid = m.task_uuid
cross join lateral (select string_to_array(tasker.path_text(m.path), '>') as states) p
cross join lateral (select g.n, m.sort_key - (cardinality(p.states) - 1 - g.n) as sort_key
  from generate_series(1, cardinality(p.states) - 1) as g (n)) k
union all
select md5('task' || t.task_uuid)::uuid, t.task_uuid, 'pending', null, null, null, 1,
  t.sort_key = 1, t.created_at, t.created_at
from tasker.tasks t;

create or replace view tasker.workflow_step_transitions as
select md5('step' || m.workflow_step_uuid || ':' || k.sort_key)::uuid as workflow_step_transition_uuid,
  m.workflow_step_uuid, s.task_uuid, p.states[k.n + 1] as to_state, p.states[k.n] as from_state,
  m.metadata, k.sort_key, k.sort_key = s.sort_key as most_recent, m.created_at, m.created_at as updated_at,
  m.worker_uuid, m.attempt, m.claim_token, m.execution_time_ms
from tasker.step_moves m
join tasker.workflow_steps s on s.workflow_step_uuid = m.workflow_step_uuid
cross join lateral (select string_to_array(tasker.path_text(m.path), '>') as states) p
cross join lateral (select g.n, m.sort_key - (cardinality(p.states) - 1 - g.n) as sort_key
  from generate_series(1, cardinality(p.states) - 1) as g (n)) k
union all
select md5('step' || s.workflow_step_uuid)::uuid, s.workflow_step_uuid, s.task_uuid, 'pending', null, null, 1,
  s.sort_key = 1, s.created_at, s.created_at, null, 0, 0, null
from tasker.workflow_steps s;

-- The audit of stored results, without the results: the rows of the history left by a worker's result or
-- failure. The transition is the one into the state in which results are parked.
create or replace view tasker.workflow_step_result_audit as
select md5('audit' || m.workflow_step_uuid || ':' || m.sort_key)::uuid as workflow_step_result_audit_uuid,
  m.workflow_step_uuid,
  md5('step' || m.workflow_step_uuid || ':'
    || m.sort_key - length(m.path) + position('I' in m.path) + 1)::uuid as workflow_step_transition_uuid,
  s.task_uuid, m.created_at as recorded_at, m.worker_uuid, d.correlation_id,
  tasker.path_succeeded(m.path) as success, m.execution_time_ms
from tasker.step_moves m
join tasker.workflow_steps s on s.workflow_step_uuid = m.workflow_step_uuid
left join tasker.task_details d on d.task_uuid = s.task_uuid
where tasker.path_succeeded(m.path) is not null;
