-- Reading tasks. Each query is named and takes its parameters as %(name)s.

-- name: report
-- One task with its steps in topological order, as one JSON document; no row when there is no such task.
select jsonb_build_object('task_uuid', t.task_uuid, 'namespace', ns.name, 'template', nt.name, 'version', nt.version,
  'status', t.state, 'priority', t.priority, 'created_at', t.created_at, 'completed_at', t.completed_at,
  'updated_at', t.updated_at, 'correlation_id', d.correlation_id, 'parent_correlation_id', d.parent_correlation_id,
  'initiator', d.initiator, 'source_system', d.source_system, 'reason', d.reason, 'tags', to_jsonb(d.tags),
  'cancel_reason', d.cancel_reason, 'context', d.context, 'total', t.total, 'done', t.done, 'failed', t.failed,
  'cancelled', t.cancelled, 'active', t.active, 'retrying', t.retrying, 'held', t.held,
  'steps', (
    select jsonb_agg(jsonb_build_object('step_uuid', s.workflow_step_uuid, 'name', s.name, 'type', ts.step_type,
      'handler', ts.handler, 'state', s.state, 'attempts', s.attempts, 'max_attempts', s.max_attempts,
      'due_at', s.due_at, 'started_at', s.started_at, 'updated_at', s.updated_at, 'worker', s.worker_uuid,
      'depends_on', (select coalesce(jsonb_agg(p.name order by p.workflow_step_uuid), '[]')
        from tasker.workflow_step_edges e join tasker.workflow_steps p on p.workflow_step_uuid = e.from_step_uuid
        where e.task_uuid = s.task_uuid and e.to_step_uuid = s.workflow_step_uuid),
      'result', r.result, 'metadata', r.metadata, 'failures', f.failures, 'duration_ms', l.execution_time_ms,
      'items_processed', k.checkpoint->'items_processed')
      order by ts.ordinal, s.workflow_step_uuid)
    from tasker.workflow_steps s
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    left join tasker.step_results r on r.task_uuid = s.task_uuid and r.ordinal = s.ordinal
      and r.workflow_step_uuid = s.workflow_step_uuid
    left join tasker.step_checkpoints k on k.workflow_step_uuid = s.workflow_step_uuid
    left join lateral (select jsonb_agg(x.error || jsonb_build_object('at', x.created_at) order by x.failure_id) as failures
      from tasker.step_failures x where x.task_uuid = s.task_uuid and x.workflow_step_uuid = s.workflow_step_uuid) f on true
    left join lateral (select g.execution_time_ms from tasker.step_transition_log g where g.task_uuid = s.task_uuid
      and g.workflow_step_uuid = s.workflow_step_uuid and g.success is not null order by g.id desc limit 1) l on true
    where s.task_uuid = t.task_uuid))
from tasker.tasks t
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
join tasker.task_details d on d.task_uuid = t.task_uuid
where t.task_uuid = %(task)s

-- name: progress
-- The steps of a task that changed since a moment, for a live view: [name, type, state, attempts, max_attempts, level
-- is the template's], and the task's state.
select t.state, t.complete, t.total, t.done, t.failed, t.graph_version from tasker.tasks t where t.task_uuid = %(task)s

-- name: list
-- Tasks, the newest first.
select t.task_uuid::text, ns.name as namespace, nt.name as template, nt.version, t.state as status, t.priority, t.total,
  t.done, t.failed, t.created_at, t.completed_at
from tasker.tasks t
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
where (%(namespace)s::text is null or ns.name = %(namespace)s)
  and (%(template)s::text is null or nt.name = %(template)s)
  and (%(status)s::text is null or t.state = %(status)s)
order by t.task_uuid desc limit %(limit)s offset %(offset)s

-- name: history
-- Every transition of a task and of its steps, in order.
select 'task' as kind, null as step, h.from_state, h.to_state, h.created_at, h.sort_key, h.processor_uuid::text as worker,
  null::int as attempt, h.metadata, null::bigint as execution_time_ms
from tasker.task_transitions h where h.task_uuid = %(task)s
union all
select 'step', s.name, h.from_state, h.to_state, h.created_at, h.sort_key, h.worker_uuid::text, h.attempt, h.metadata,
  h.execution_time_ms
from tasker.workflow_steps s join tasker.workflow_step_transitions h on h.workflow_step_uuid = s.workflow_step_uuid
where s.task_uuid = %(task)s and h.task_uuid = %(task)s
order by 5, 1 desc, 2, 6

-- name: failures
-- The failed attempts of a task's steps.
select s.name as step, f.attempt, f.created_at, f.worker_uuid::text as worker, f.error
from tasker.step_failures f join tasker.workflow_steps s on s.workflow_step_uuid = f.workflow_step_uuid
where f.task_uuid = %(task)s order by f.failure_id

-- name: state
select t.state, t.complete from tasker.tasks t where t.task_uuid = %(task)s

-- name: dead_local_workers
-- Workers of this host with a live lease; the caller knows which of their processes are gone.
select w.worker_uuid::text, w.pid from tasker.workers w
where w.host = %(host)s and w.stopped_at is null and w.lease_until > tasker.now()
