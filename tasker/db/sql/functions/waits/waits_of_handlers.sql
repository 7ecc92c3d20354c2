-- Stores what handlers read at their next call (`again` in the checkpoints of their steps), from the results
-- of these changes: {state, event: null, timed_out: false} of a handler that waits, {state} of one that asks
-- to be called again, {event} or {timed_out} of the end of a wait. What a change does not name stays, so a
-- retry and a reset read the same.
-- Locks: checkpoints, as their steps.
create or replace function tasker.store_handler_state(p_judged tasker.judged_change[], p_now timestamptz)
returns void
language sql as $$
  insert into tasker.step_checkpoints as c (workflow_step_uuid, checkpoint, bytes, updated_at)
  select j.step_uuid, jsonb_build_object('again', j.result), pg_column_size(j.result), p_now
  from unnest(p_judged) j where tasker.kind_keeps_state(j.kind) and j.result is not null
  on conflict (workflow_step_uuid) do update set updated_at = p_now,
    bytes = pg_column_size(c.checkpoint) + excluded.bytes,
    checkpoint = c.checkpoint || jsonb_build_object('again',
      coalesce(c.checkpoint->'again', '{}') || (excluded.checkpoint->'again'))
$$;

-- Begins the waits of handlers that were suspended by this write, with their timers. The metadata of the
-- change says for what: {event, key, schema, on_timeout}; its delay, how long. Their tasks have from now on
-- the gate of tasks with steps that wait.
-- Locks: tasks, waits and timers. The caller has locked the tasks.
create or replace function tasker.begin_waits_of_handlers(p_judged tasker.judged_change[], p_now timestamptz)
returns void
language sql as $$
  update tasker.tasks t set gates = t.gates | 8
  where t.gates & 8 = 0 and t.task_uuid = any (array(
    select j.task_uuid from unnest(p_judged) j where tasker.kind_suspends(j.kind)));
  insert into tasker.timers as m (subject, kind, due_at, task_uuid, token)
  select j.step_uuid, 'w', p_now + tasker.ms(j.delay_ms), j.task_uuid, j.token
  from unnest(p_judged) j where tasker.kind_suspends(j.kind) and j.delay_ms is not null
  on conflict (subject, kind) do update set due_at = excluded.due_at, token = excluded.token;
  insert into tasker.step_waits (workflow_step_uuid, token, nth, task_uuid, kind, since, until, namespace_id,
    event, key, probed, detail)
  select j.step_uuid, j.token, 1, j.task_uuid, 'h', p_now, p_now + tasker.ms(j.delay_ms), j.namespace_id,
    j.metadata->>'event', coalesce(j.metadata->>'key', ''), false, j.metadata - '{event,key}'::text[]
  from unnest(p_judged) j where tasker.kind_suspends(j.kind)
$$;
