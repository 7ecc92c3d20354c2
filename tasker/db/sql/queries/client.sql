-- Tasks and steps as clients see them. Each query has a name and takes its parameters as %(name)s.

-- name: namespace
-- The namespace and the tenant of a task.
select ns.name, t.tenant
from tasker.tasks t join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
where t.task_uuid = %(task)s::uuid

-- name: columns
-- The columns of a task as read (`tasker.views.tasks`), of the tables that the queries `tasks` and `report`
-- join. Ready steps (`held`) are without those that wait for their time.
t.task_uuid, t.named_task_uuid, ns.name as namespace, nt.name as template, nt.version, t.state as status,
  t.created_at, t.updated_at, t.completed_at, d.context, d.initiator, d.source_system, d.reason, t.priority,
  t.tenant, t.outcome, d.tags,
  d.correlation_id, d.parent_correlation_id, d.cancel_reason, t.run_at, d.deadline_at,
  (select m.due_at from tasker.timers m
    where not t.complete and m.subject = t.task_uuid and m.kind = 'x') as expires_at,
  case when t.waits then (select min(m.due_at) from tasker.timers m
    where m.subject between t.task_uuid and tasker.step_uuid(t.task_uuid, 16777215)
      and m.kind in ('r', 'b', 'w')) end as waits_until,
  case when t.suspended > 0 then tasker.waiting_for(t.task_uuid) else '{}' end as waiting_for,
  (select l.parent_step from tasker.task_links l where l.child_uuid = t.task_uuid) as parent_step_uuid,
  t.total, t.done, t.failed, t.cancelled, t.active, t.retrying,
  t.held - case when t.held > 0 then (select count(*) from tasker.timers m
    where m.subject between t.task_uuid and tasker.step_uuid(t.task_uuid, 16777215) and m.kind = 'b')
    else 0 end as held

-- name: tasks
-- The tasks with these identifiers as documents, the newest first; `{columns}` are those of a task as read.
select to_jsonb(v) from (
  select {columns}
  from tasker.tasks t
  join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
  join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
  join tasker.task_details d on d.task_uuid = t.task_uuid
  where t.task_uuid = any (%(tasks)s::uuid[])) v
order by v.task_uuid desc

-- name: task
-- One task and its steps, by the queries `tasks` and `steps`; null if there is no such task.
select (
{task}
), to_jsonb(array(
{steps}
))

-- name: steps
-- A page of the steps of a task as documents, in topological order, with or without their results; or one of
-- them. The numbers of parents come from one object (see the query `report` of tasks).
with page as materialized (
  select s.* from tasker.workflow_steps s
  where s.task_uuid = %(task)s::uuid and (%(step)s::uuid is null or s.workflow_step_uuid = %(step)s)
  order by s.ordinal, s.workflow_step_uuid limit %(limit)s offset %(offset)s
), parents as materialized (
  select coalesce(jsonb_object_agg(e.step, e.parents), '{}') as of_step from (
    select e.to_step_uuid as step, count(*) as parents from tasker.workflow_step_edges e
    where e.task_uuid = %(task)s::uuid group by e.to_step_uuid) e
)
select to_jsonb(v) from (
  select s.workflow_step_uuid as step_uuid, s.task_uuid, ts.named_step_uuid, s.name, s.state,
    case when tasker.step_is_failed(s.state)
      then (select (array_agg(x.error->>'message' order by x.failure_id desc))[1]
      from tasker.step_failures x
      where x.task_uuid = s.task_uuid and x.workflow_step_uuid = s.workflow_step_uuid)
      end as last_error,
    s.created_at, s.updated_at, r.created_at as completed_at,
    case when %(results)s then r.result end as results, s.unmet, s.attempts, s.max_attempts,
    s.retryable, s.started_at as last_attempted_at, s.due_at as next_retry_at,
    s.due_at is null or s.due_at <= tasker.now() as due, ts.ordinal,
    coalesce((select parents.of_step from parents)->s.workflow_step_uuid::text, '0') as total_parents,
    (select max(f.created_at) from tasker.step_failures f
      where f.task_uuid = s.task_uuid and f.workflow_step_uuid = s.workflow_step_uuid) as last_failure_at
  from page s
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  left join tasker.step_results r on r.task_uuid = s.task_uuid and r.ordinal = s.ordinal
    and r.workflow_step_uuid = s.workflow_step_uuid) v
order by v.ordinal, v.step_uuid

-- name: audit
-- The audit of the stored results of a step, or (null) of every step of a task, as documents, the newest
-- first.
select to_jsonb(v) from (
  select a.workflow_step_result_audit_uuid as audit_uuid, a.workflow_step_uuid as step_uuid,
    a.workflow_step_transition_uuid as transition_uuid, a.task_uuid, a.recorded_at, a.worker_uuid,
    a.correlation_id, a.success, a.execution_time_ms, case when a.success then r.result end as result,
    s.name as step_name, h.from_state, h.to_state
  from tasker.workflow_step_result_audit a
  join tasker.workflow_step_transitions h on h.workflow_step_uuid = a.workflow_step_uuid
    and h.workflow_step_transition_uuid = a.workflow_step_transition_uuid
    -- implied by the step, but the planner does not know that: it would read all history
    and h.task_uuid = a.task_uuid
  join tasker.workflow_steps s on s.workflow_step_uuid = a.workflow_step_uuid
  left join tasker.step_results r on r.task_uuid = s.task_uuid and r.ordinal = s.ordinal
    and r.workflow_step_uuid = s.workflow_step_uuid
  where a.task_uuid = %(task)s::uuid and (%(step)s::uuid is null or a.workflow_step_uuid = %(step)s::uuid)) v
order by v.recorded_at desc, v.audit_uuid desc

-- name: enqueued
-- The number of steps of a task that are in a queue.
select count(*) from tasker.workflow_steps s where s.task_uuid = %(task)s::uuid and s.state = 'enqueued'

-- name: health
-- The database's clock, as a test that it answers.
select tasker.now()

-- name: template_of_step
-- The compiled template of a step, and its position there.
select s.template_id, s.ordinal from tasker.workflow_steps s where s.workflow_step_uuid = %(step)s::uuid
