-- Begins the waits of steps that were suspended by this write, with their timers.
-- Locks: a timer changes only under the lock of its task, as a wait.
create or replace function tasker.begin_waits(p_placed tasker.placed_step[], p_now timestamptz) returns void
language sql as $$
  with timed as (
    insert into tasker.timers as m (subject, kind, due_at, task_uuid, token)
    select p.step_uuid, 'w', p.begins_at, p.task_uuid, tasker.place_token(p.place, p.token)
    from unnest(p_placed) p where p.place = 'suspend' and p.begins_at is not null
    on conflict (subject, kind) do update set due_at = excluded.due_at, token = excluded.token
  )
  insert into tasker.step_waits (workflow_step_uuid, token, nth, task_uuid, kind, since, until)
  select p.step_uuid, tasker.place_token(p.place, p.token), 1, p.task_uuid, 'w', p_now, p.begins_at
  from unnest(p_placed) p where p.place = 'suspend'
$$;

-- Ends the waits of suspended steps that this write moves, and deletes their timers, whatever moved them. The
-- outcome is that of the change's note (`wait`).
-- Locks: waits, as their steps.
create or replace function tasker.end_waits(p_judged tasker.judged_change[], p_now timestamptz) returns void
language sql as $$
  with over as (
    delete from tasker.timers m where m.kind = 'w' and m.subject = any (array(
      select j.step_uuid from unnest(p_judged) j where tasker.is_suspended(j.from_state, j.worker_uuid)))
  )
  update tasker.step_waits w set ended_at = p_now, outcome = coalesce(j.note->>'wait',
    case when j.error is null then 'operator' else 'failed' end)
  from unnest(p_judged) j
  where tasker.is_suspended(j.from_state, j.worker_uuid) and w.workflow_step_uuid = j.step_uuid
    and w.ended_at is null
$$;
