-- Values for the reason why a step does not run (tasker.explain_v1), from its row, its worker, its template
-- and the backlog; of the steps ahead of it at most 10,000 are counted.
create or replace function tasker.explained_values(p_step uuid, p_reason text) returns jsonb
language sql stable as $$
  select jsonb_strip_nulls(jsonb_build_object('since', s.updated_at, 'state', s.state) || case
    when p_reason in ('scheduled', 'debounced', 'delayed', 'late', 'waits_time', 'wait_over')
      then jsonb_build_object('due_at', s.due_at)
    when p_reason = 'waits_event' then (
      select jsonb_build_object('due_at', s.due_at, 'namespace', (select n.name from tasker.task_namespaces n
          where n.namespace_id = s.namespace_id),
        'event', string_agg(w.event, ' or ' order by w.nth),
        'key', nullif((array_agg(w.key order by w.nth))[1], ''),
        'taken', nullif((select count(*) from tasker.wait_events x where x.problem is null
          and x.workflow_step_uuid = s.workflow_step_uuid and x.token = s.claim_token), 0),
        'refused', nullif((select count(distinct x.event_uuid) from tasker.wait_events x
          where x.problem is not null and x.workflow_step_uuid = s.workflow_step_uuid
            and x.token = s.claim_token), 0),
        'problem', (select x.problem from tasker.wait_events x where x.problem is not null
          and x.workflow_step_uuid = s.workflow_step_uuid and x.token = s.claim_token
          order by x.at desc limit 1))
      from tasker.step_waits w where w.workflow_step_uuid = s.workflow_step_uuid and w.token = s.claim_token)
    when p_reason = 'waits_task' then coalesce((
      select jsonb_build_object('total', f.total, 'left', f.total - f.succeeded - f.failed,
        'running', nullif(f.running, 0), 'failures', nullif(f.failed, 0), 'tolerated', f.tolerated)
      from tasker.fan_outs f
      where f.workflow_step_uuid = s.workflow_step_uuid and f.token = s.claim_token),
      '{}')
    when p_reason = 'waits_person' then (
      select jsonb_build_object('due_at', s.due_at, 'quorum', ts.wait->'quorum',
        'approvals', count(*) filter (where v.decision = 'approved'),
        'rejections', nullif(count(*) filter (where v.decision = 'rejected'), 0),
        'approvers', nullif(concat_ws(', ', (select string_agg(substr(a, 3), ', ' order by left(a, 1) desc, a)
          from unnest(w.approvers[1:5]) a where a <> '*'),
          case when cardinality(w.approvers) > 5 then '...' end), ''))
      from tasker.step_waits w left join tasker.approval_votes v
        on v.workflow_step_uuid = w.workflow_step_uuid and v.token = w.token
      where w.workflow_step_uuid = s.workflow_step_uuid and w.token = s.claim_token group by w.approvers)
    when p_reason in ('retry', 'failed', 'unknown', 'tolerated', 'overdue', 'deferred', 'snoozed') then
      jsonb_build_object('attempt', s.attempts, 'max_attempts', s.max_attempts, 'due_at', s.due_at)
    when p_reason in ('running', 'overrun', 'lost')
      then jsonb_build_object('attempt', s.attempts, 'max_attempts', s.max_attempts,
      'worker', tasker.worker_label(s.worker_uuid, w.name), 'worker_uuid', s.worker_uuid,
      'host', w.host, 'pid', w.pid,
      'started_at', s.started_at, 'deadline_at', s.deadline_at, 'lease_until', w.lease_until,
      'on_worker_lost', ts.on_worker_lost)
    when p_reason in ('held', 'outranked') then jsonb_build_object('ahead', (select count(*) from (
      select from tasker.ready_backlog a
      where a.namespace_id = s.namespace_id and not a.paused and a.unserved is null
        and a.flow is not distinct from b.flow and a.rank < b.rank limit 10000) a),
      'flow', nullif(substr(b.flow, 2), ''))
    when p_reason in ('limited', 'rated') then (
      select jsonb_build_object('limit', r.name, 'value', nullif(w.value, ''), 'most', r.max_running,
        'rate', r.rate, 'running', (select count(*) from (select from tasker.limit_permits p
            where p.rule_id = w.rule_id and p.value = w.value limit 10000) p),
        'ahead', (select count(*)
          from (select from tasker.limit_waiters a where a.rule_id = w.rule_id and a.value = w.value
          and (a.rank, a.workflow_step_uuid) < (w.rank, w.workflow_step_uuid) limit 10000) a),
        'holders', (select jsonb_agg(tasker.step_uuid(p.subject, 0))
          from (select p.subject from tasker.limit_permits p
          where p.rule_id = w.rule_id and p.value = w.value order by p.granted_at, p.subject limit 3) p))
      from tasker.limit_waiters w join tasker.limit_rules r using (rule_id)
      where w.workflow_step_uuid = s.workflow_step_uuid)
    when p_reason in ('unserved', 'unreadable', 'untagged', 'oversized', 'nobody')
    then jsonb_build_object('refused_since', (
      select u.since from tasker.unserved_steps u
      where u.workflow_step_uuid = s.workflow_step_uuid and u.claim_token = s.claim_token))
    when p_reason in ('queued', 'no_slots', 'asleep')
      then jsonb_build_object('hinted_at', s.hinted_at, 'hints', s.hint_count)
    else '{}' end)
  from tasker.workflow_steps s
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  left join tasker.workers w on w.worker_uuid = s.worker_uuid
  left join tasker.ready_backlog b on b.workflow_step_uuid = s.workflow_step_uuid
  where s.workflow_step_uuid = p_step
$$;

-- The live workers that would take a step of a template: {takers, draining: counts; refused_by: [labels of
-- workers that claimed it and lack the handler, at most five], refused: their number, unreadable: the number
-- of these whose release cannot read the template; slots, busy, free: of the takers, as of their last
-- heartbeats; awake: number of takers with free slots that need no notification; workers: [labels, at most
-- five]}. Ordinal null: a step that no worker refused.
create or replace function tasker.live_workers_for(p_namespace text, p_template int, p_ordinal int)
returns jsonb
language sql stable as $$
  select jsonb_build_object('takers', count(*) filter (where takes),
    'draining', count(*) filter (where w.draining_at is not null),
    'refused', count(*) filter (where refused),
    'unreadable', count(*) filter (where refused and p_template = any (w.unreadable)),
    'refused_by', to_jsonb(
      coalesce((array_agg(w.label order by w.started_at, w.label) filter (where refused))[1:5], '{}')),
    'slots', coalesce(sum(w.concurrency) filter (where takes), 0),
    'busy', coalesce(sum(least(w.in_hand, w.concurrency)) filter (where takes), 0),
    'free', coalesce(sum(greatest(w.concurrency - w.in_hand, 0)) filter (where takes), 0),
    'awake', count(*) filter (where takes and not w.asleep and w.in_hand < w.concurrency),
    'workers', to_jsonb(
      coalesce((array_agg(w.label order by w.started_at, w.label) filter (where takes))[1:5], '{}')))
  from (
    select w.*, tasker.worker_label(w.worker_uuid, w.name) as label, r.refused,
      w.draining_at is null and not r.refused as takes
    from tasker.workers w
    cross join lateral (select p_ordinal is not null and w.draining_at is null
      and (p_template || ':' || p_ordinal) = any (w.unserved) as refused) r
    where w.kind = 'worker' and w.stopped_at is null and w.lease_until > tasker.now()
      and p_namespace = any (w.namespaces)) w
$$;
