-- Does what is due for open approvals: a reminder is an event, and sets the timer of the next one; an
-- escalation lets further persons decide. Timers of approvals that are over are deleted.
-- Locks: timers and waits, under the locks of their tasks, which the caller has.
-- p_due: [{s step, k token, kind}] of timers with the kinds `m` and `e`
create or replace function tasker.remind_approvals(p_due jsonb, p_now timestamptz) returns void
language plpgsql as $$
declare
  v_open jsonb;
begin
  select jsonb_agg(jsonb_build_object('s', i.s, 'k', i.k, 'kind', i.kind, 'wait', ts.wait,
    'reminder', coalesce((w.detail->>'reminders')::int, 0) + 1) order by i.s, i.kind)
  into v_open
  from jsonb_to_recordset(p_due) as i (s uuid, k bigint, kind text)
  join tasker.step_waits w on w.workflow_step_uuid = i.s and w.token = i.k and w.nth = 1
    and w.ended_at is null
  join tasker.workflow_steps s on s.workflow_step_uuid = i.s and s.claim_token = i.k
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal;

  update tasker.step_waits w set
    detail = coalesce(w.detail, '{}') || case when o.reminds then jsonb_build_object('reminders', o.reminder)
      else '{}' end || case when o.escalates then jsonb_build_object('escalated_at', p_now) else '{}' end,
    approvers = case when o.escalates and w.approvers <> array['*'] then array(
      select distinct a from unnest(w.approvers || tasker.approvers_of(w.task_uuid,
          o.wait->'escalate_subjects', o.wait->'escalate_permissions')) a order by a) else w.approvers end
  from (select i.s, i.k, bool_or(i.kind = 'm') as reminds, bool_or(i.kind = 'e') as escalates,
      max(i.reminder) as reminder, (array_agg(i.wait))[1] as wait
    from jsonb_to_recordset(v_open) as i (s uuid, k bigint, kind text, wait jsonb, reminder int)
    group by i.s, i.k) o
  where w.workflow_step_uuid = o.s and w.token = o.k and w.nth = 1;

  delete from tasker.timers m using jsonb_to_recordset(p_due) as i (s uuid, k bigint, kind "char")
  where m.subject = i.s and m.kind = i.kind and m.token = i.k;
  insert into tasker.timers (subject, kind, due_at, task_uuid, token)
  select i.s, 'm', p_now + tasker.ms((i.wait->>'remind_seconds')::numeric * 1000), w.task_uuid, i.k
  from jsonb_to_recordset(v_open) as i (s uuid, k bigint, kind text, wait jsonb, reminder int)
  join tasker.step_waits w on w.workflow_step_uuid = i.s and w.token = i.k and w.nth = 1
  where i.kind = 'm' and i.reminder < (i.wait->>'reminders')::int;

  if v_open is not null then
    perform tasker.write_approval_events((select jsonb_agg(i - 'wait' || case i->>'kind'
          when 'm' then jsonb_build_object('word', 'reminder', 'number', i->'reminder')
          else '{"word": "escalated", "number": 1000, "reminder": null}' end)
      from jsonb_array_elements(v_open) i), p_now);
  end if;
end
$$;
