-- Begins the waits of steps that were suspended by this write, with their timers, and requests the decisions
-- of persons. Returns whether a timekeeper has to look at some of them at once: for earlier events, for the
-- timers of approvals, and to start child tasks.
-- Locks: a timer changes only under the lock of its task, as a wait.
create or replace function tasker.begin_waits(p_placed tasker.placed_step[], p_now timestamptz)
returns boolean
language plpgsql as $$
declare
  v_looks boolean;
  v_requested jsonb;
begin
  with timed as (
    insert into tasker.timers as m (subject, kind, due_at, task_uuid, token)
    select p.step_uuid, 'w', p.begins_at, p.task_uuid, tasker.place_token(p.place, p.token)
    from unnest(p_placed) p where p.place = 'suspend' and p.begins_at is not null
    on conflict (subject, kind) do update set due_at = excluded.due_at, token = excluded.token
  ), begun as (
    insert into tasker.step_waits (workflow_step_uuid, token, nth, task_uuid, kind, since, until,
      namespace_id, event, key, probed, approvers)
    select p.step_uuid, tasker.place_token(p.place, p.token), coalesce(e.nth, 1), p.task_uuid,
      case ts.wait->>'on' when 'time' then 'w' when 'event' then 'e' when 'task' then 'c'
        else 'a' end::"char", p_now, p.begins_at,
      case when ts.wait->>'on' in ('event', 'person') then p.namespace_id end, e.event->>'event',
      case when jsonb_typeof(e.event->'key') = 'object'   -- null: none is there, so that no event fits
          then tasker.limit_value(tasker.value_at(p.task_uuid, e.event->'key'))
        when e.event is not null then '' end,
      e.event is null and ts.wait->>'on' <> 'task',
      case ts.wait->>'on' when 'person'
        then tasker.approvers_of(p.task_uuid, ts.wait->'subjects', ts.wait->'permissions') end
    from unnest(p_placed) p
    join tasker.template_steps ts on ts.template_id = p.template_id and ts.ordinal = p.ordinal
    left join lateral jsonb_array_elements(nullif(ts.wait->'events', 'null')) with ordinality e (event, nth)
      on true
    where p.place = 'suspend'
    returning workflow_step_uuid, token, kind, not probed or kind = 'a' as looks
  )
  select bool_or(b.looks), jsonb_agg(jsonb_build_object('s', b.workflow_step_uuid, 'k', b.token,
    'word', 'requested', 'number', 0)) filter (where b.kind = 'a')
  into v_looks, v_requested from begun b;
  if v_requested is not null then
    perform tasker.write_approval_events(v_requested, p_now);
    insert into tasker.timers as m (subject, kind, due_at, task_uuid, token)
    select w.workflow_step_uuid, n.kind::"char", p_now + tasker.ms(n.seconds * 1000), w.task_uuid, w.token
    from jsonb_to_recordset(v_requested) as i (s uuid, k bigint)
    join tasker.step_waits w on w.workflow_step_uuid = i.s and w.token = i.k
    join tasker.workflow_steps s on s.workflow_step_uuid = i.s
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    cross join lateral (values ('m', (ts.wait->>'remind_seconds')::numeric),
        ('e', (ts.wait->>'escalate_seconds')::numeric)) as n (kind, seconds)
    where n.seconds is not null
    on conflict (subject, kind) do update set due_at = excluded.due_at, token = excluded.token;
  end if;
  return v_looks;
end
$$;

-- Ends the waits of suspended steps that this write changes in any way, and deletes their timers. The outcome
-- is in the note of the change (`wait`). Children that run are cancelled.
-- Locks: waits, as their steps; fan-outs.
create or replace function tasker.end_waits(p_judged tasker.judged_change[], p_now timestamptz) returns void
language plpgsql as $$
declare
  v_parents uuid[];
begin
  with over as (
    delete from tasker.timers m where m.kind in ('w', 'm', 'e') and m.subject = any (array(
      select j.step_uuid from unnest(p_judged) j where tasker.is_suspended(j.from_state, j.worker_uuid)))
  ), ended as (
    update tasker.step_waits w set ended_at = p_now, outcome = coalesce(j.note->>'wait',
      case when j.error is null then 'operator' else 'failed' end)
    from unnest(p_judged) j
    where tasker.is_suspended(j.from_state, j.worker_uuid) and w.workflow_step_uuid = j.step_uuid
      and w.ended_at is null
    returning w.workflow_step_uuid, w.kind
  )
  select array_agg(e.workflow_step_uuid) filter (where e.kind = 'c') into v_parents from ended e;
  if v_parents is not null then
    perform tasker.close_fan_outs(v_parents, p_now);
  end if;
end
$$;
