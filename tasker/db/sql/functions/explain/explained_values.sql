-- Values for the reason why a step does not run (tasker.explain_v1), from its row, its worker, its template and the
-- backlog; of the steps ahead of it at most 10,000 are counted.
create or replace function tasker.explained_values(p_step uuid, p_reason text) returns jsonb
language sql stable as $$
  select jsonb_strip_nulls(jsonb_build_object('since', s.updated_at, 'state', s.state) || case
    when p_reason in ('scheduled', 'delayed', 'late') then jsonb_build_object('due_at', s.due_at)
    when p_reason in ('retry', 'failed', 'overdue', 'deferred') then
      jsonb_build_object('attempt', s.attempts, 'max_attempts', s.max_attempts, 'due_at', s.due_at)
    when p_reason in ('running', 'overrun', 'lost') then jsonb_build_object('attempt', s.attempts, 'max_attempts', s.max_attempts,
      'worker', tasker.worker_label(s.worker_uuid, w.name), 'worker_uuid', s.worker_uuid, 'host', w.host, 'pid', w.pid,
      'started_at', s.started_at, 'deadline_at', s.deadline_at, 'lease_until', w.lease_until, 'on_worker_lost', ts.on_worker_lost)
    when p_reason = 'held' then jsonb_build_object('ahead', (select count(*) from (
      select from tasker.ready_backlog a where a.namespace_id = s.namespace_id and not a.paused and a.unserved is null
        and a.rank < b.rank limit 10000) a))
    when p_reason in ('unserved', 'unreadable', 'nobody') then jsonb_build_object('refused_since', (
      select u.since from tasker.unserved_steps u where u.workflow_step_uuid = s.workflow_step_uuid and u.claim_token = s.claim_token))
    when p_reason in ('queued', 'no_slots', 'asleep') then jsonb_build_object('hinted_at', s.hinted_at, 'hints', s.hint_count)
    else '{}' end)
  from tasker.workflow_steps s
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  left join tasker.workers w on w.worker_uuid = s.worker_uuid
  left join tasker.ready_backlog b on b.workflow_step_uuid = s.workflow_step_uuid
  where s.workflow_step_uuid = p_step
$$;
