-- Approvals: lists and one of them (services/approvals.py).

-- name: page
-- Open approvals in the order of their requests, behind that of the step %(after)s. `{mine}` restricts them.
select jsonb_build_object('task_uuid', w.task_uuid, 'step', s.name, 'step_uuid', w.workflow_step_uuid,
  'namespace', ns.name, 'template', nt.name, 'template_id', s.template_id, 'ordinal', s.ordinal,
  'requested_at', w.since, 'until', w.until, 'escalated_at', w.detail->'escalated_at',
  'quorum', ts.wait->'quorum',
  'approved', v.approved, 'rejected', v.rejected,
  'subjects', coalesce(tasker.approver_names(w.approvers, 's'), '[]'),
  'permissions', coalesce(tasker.approver_names(w.approvers, 'p'), '[]'))
from tasker.step_waits w
join tasker.workflow_steps s on s.workflow_step_uuid = w.workflow_step_uuid
join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
join tasker.tasks t on t.task_uuid = w.task_uuid
join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
join tasker.task_namespaces ns on ns.namespace_id = w.namespace_id
cross join lateral (select count(*) filter (where x.decision = 'approved') as approved,
    count(*) filter (where x.decision = 'rejected') as rejected
  from tasker.approval_votes x where x.workflow_step_uuid = w.workflow_step_uuid and x.token = w.token) v
where w.ended_at is null and w.approvers is not null
  and (%(namespace)s::text is null or ns.name = %(namespace)s)
  and (%(template)s::text is null or nt.name = %(template)s)
  and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s))
  and (%(tenants)s::text[] is null or t.tenant = any (%(tenants)s))
  and (%(after)s::uuid is null or (w.since, w.workflow_step_uuid) > (select x.since, x.workflow_step_uuid
    from tasker.step_waits x where x.workflow_step_uuid = %(after)s and x.kind = 'a'
    order by x.token desc limit 1))
  {mine}
order by w.since, w.workflow_step_uuid limit %(limit)s

-- name: mine
-- Those that somebody may decide, and has not.
and tasker.may_decide(w.approvers, %(by)s, %(permissions)s::jsonb, ns.name)
and not exists (select from tasker.approval_votes x where x.workflow_step_uuid = w.workflow_step_uuid
  and x.token = w.token and x.subject = %(by)s)

-- name: named
-- The same for one whose permissions are all named: found by index.
and w.approvers && %(words)s::text[]

-- name: one
-- The newest approval of a step, or the one with the token.
select to_jsonb(w) || jsonb_build_object('step', s.name, 'template_id', s.template_id, 'ordinal', s.ordinal,
  'attempts', s.attempts, 'namespace', ns.name, 'template', nt.name, 'quorum', ts.wait->'quorum',
  'reject', ts.wait->'reject', 'escalated_at', w.detail->'escalated_at',
  'votes', tasker.votes_of(w.workflow_step_uuid, w.token),
  'subjects', coalesce(tasker.approver_names(w.approvers, 's'), '[]'),
  'permissions', coalesce(tasker.approver_names(w.approvers, 'p'), '[]'),
  'may', tasker.may_decide(w.approvers, %(by)s, %(permissions)s::jsonb, ns.name))
from tasker.workflow_steps s
join tasker.step_waits w on w.workflow_step_uuid = s.workflow_step_uuid and w.kind = 'a'
join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
join tasker.tasks t on t.task_uuid = s.task_uuid
join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
join tasker.task_namespaces ns on ns.namespace_id = s.namespace_id
where s.task_uuid = %(task)s::uuid and s.name = %(step)s
  and (%(token)s::bigint is null or w.token = %(token)s)
order by w.token desc limit 1
