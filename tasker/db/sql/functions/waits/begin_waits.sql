-- Begins the waits of steps that were suspended by this write, with their timers. Returns whether after
-- the commit some of them have to be matched with earlier events, or their children have to be started.
-- Locks: a timer changes only under the lock of its task, as a wait.
create or replace function tasker.begin_waits(p_placed tasker.placed_step[], p_now timestamptz)
returns boolean
language sql as $$
  with timed as (
    insert into tasker.timers as m (subject, kind, due_at, task_uuid, token)
    select p.step_uuid, 'w', p.begins_at, p.task_uuid, tasker.place_token(p.place, p.token)
    from unnest(p_placed) p where p.place = 'suspend' and p.begins_at is not null
    on conflict (subject, kind) do update set due_at = excluded.due_at, token = excluded.token
  ), begun as (
    insert into tasker.step_waits (workflow_step_uuid, token, nth, task_uuid, kind, since, until,
      namespace_id, event, key, probed)
    select p.step_uuid, tasker.place_token(p.place, p.token), coalesce(e.nth, 1), p.task_uuid,
      case when ts.gates & 1024 <> 0 then 'c' when e.event is null then 'w' else 'e' end::"char", p_now,
      p.begins_at,
      case when e.event is not null then p.namespace_id end, e.event->>'event',
      case when jsonb_typeof(e.event->'key') = 'object'   -- null: none is there, so that no event fits
          then tasker.limit_value(tasker.value_at(p.task_uuid, e.event->'key'))
        when e.event is not null then '' end,
      e.event is null and ts.gates & 1024 = 0
    from unnest(p_placed) p
    join tasker.template_steps ts on ts.template_id = p.template_id and ts.ordinal = p.ordinal
    left join lateral jsonb_array_elements(nullif(ts.wait->'events', 'null')) with ordinality e (event, nth)
      on true
    where p.place = 'suspend'
    returning not probed as looks
  )
  select bool_or(b.looks) from begun b
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
    delete from tasker.timers m where m.kind = 'w' and m.subject = any (array(
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
