-- Reading the tasks that steps started. Each query has a name and takes its parameters as %(name)s.

-- name: children
-- A page of the tasks that the steps of a task started, in the order of `tasker.views.children.ChildTask`.
select l.child_uuid, ns.name as namespace, nt.name as template, nt.version, t.state, t.outcome,
  s.name as step, l.parent_step, l.index, t.created_at, t.completed_at
from tasker.task_links l
join tasker.workflow_steps s on s.workflow_step_uuid = l.parent_step
join tasker.tasks t on t.task_uuid = l.child_uuid
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
where l.parent_task = %(task)s::uuid and l.child_uuid > coalesce(%(after)s::uuid,
    '00000000-0000-0000-0000-000000000000')   -- not the task: a clock may be behind that of its creator
  and (%(step)s::text is null or s.name = %(step)s)
  and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s))
  and (%(tenants)s::text[] is null or t.tenant = any (%(tenants)s))
order by l.child_uuid limit %(limit)s

-- name: child_counts
-- The numbers of the tasks that each step of a task started, by state.
select s.name, t.state, count(*)
from (select k.child_uuid, k.parent_step from tasker.task_links k where k.parent_task = %(task)s::uuid
  order by k.child_uuid limit %(limit)s) l
join tasker.workflow_steps s on s.workflow_step_uuid = l.parent_step
join tasker.tasks t on t.task_uuid = l.child_uuid
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
where (%(step)s::text is null or s.name = %(step)s)
  and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s))
  and (%(tenants)s::text[] is null or t.tenant = any (%(tenants)s))
group by s.name, t.state order by s.name, t.state

-- name: parent
-- The depth of a task, whether the caller may see the task of the step that started it, and that step, in the
-- order of `tasker.views.children.TaskParent`. No row if no step started it.
select l.depth, (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s))
    and (%(tenants)s::text[] is null or t.tenant = any (%(tenants)s)) is true,
  l.parent_task, ns.name as namespace, nt.name as template, t.state, s.name as step, l.parent_step
from tasker.task_links l
join tasker.workflow_steps s on s.workflow_step_uuid = l.parent_step
join tasker.tasks t on t.task_uuid = l.parent_task
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
where l.child_uuid = %(task)s::uuid

-- name: has_step
-- Whether a task that the caller may see has the step with this identifier.
select exists (select from tasker.workflow_steps s
  join tasker.tasks t on t.task_uuid = s.task_uuid
  join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
  where s.workflow_step_uuid = %(step)s::uuid
    and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s))
    and (%(tenants)s::text[] is null or t.tenant = any (%(tenants)s)))
