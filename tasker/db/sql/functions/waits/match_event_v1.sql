-- Gives an event to a wait: the step ends with it, or collects it until it has enough; a handler that waits
-- is called with it. One transaction: a wait takes an exclusive event if and only if its step accepts it.
-- Locks: event, then task, step and as advance_v1. Nobody who has a task waits for an event.
-- p_args: as advance_v1 without items; event, step, token, nth, task.
-- Returns: as advance_v1, and matched: whether the wait took it.
create or replace function tasker.match_event_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_step constant uuid := (p_args->>'step')::uuid;
  v_token constant bigint := (p_args->>'token')::bigint;
  v_event tasker.incoming_events;
  v_wait jsonb;
  v_for_handler boolean;
  v_count int;
  v_problem text;
  v_most_bytes constant int := 16777216;   -- of one result
  v_result jsonb;
  v_answer jsonb := '{}';
begin
  perform tasker.require_read_committed();
  select * into v_event from tasker.incoming_events e
  where e.event_uuid = (p_args->>'event')::uuid for update;
  if v_event.event_uuid is null or v_event.taken_by is not null or v_event.expires_at <= v_now then
    return '{"matched": false}';
  end if;
  perform from tasker.tasks t where t.task_uuid = (p_args->>'task')::uuid for no key update;
  select coalesce(ts.wait, '{}'), w.kind = 'h' into v_wait, v_for_handler from tasker.step_waits w
  join tasker.workflow_steps s on s.workflow_step_uuid = w.workflow_step_uuid and s.claim_token = w.token
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  where w.workflow_step_uuid = v_step and w.token = v_token and w.nth = (p_args->>'nth')::int
    and w.ended_at is null and tasker.is_suspended(s.state, s.worker_uuid);
  if v_wait is null then
    return '{"matched": false}';
  end if;
  v_problem := case when (select sum(e.bytes) from tasker.wait_events x
      join tasker.incoming_events e using (event_uuid) where x.workflow_step_uuid = v_step
      and x.token = v_token and x.problem is null) + v_event.bytes > v_most_bytes
    then 'the payloads that the wait has collected are too large together' end;
  if exists (select from tasker.wait_events x where x.workflow_step_uuid = v_step and x.token = v_token
      and x.event_uuid = v_event.event_uuid and x.problem is null) then
    return '{"matched": false}';
  end if;
  insert into tasker.wait_events (workflow_step_uuid, token, event_uuid, nth, task_uuid, at, problem)
  values (v_step, v_token, v_event.event_uuid, (p_args->>'nth')::int, (p_args->>'task')::uuid, v_now,
    v_problem)
  on conflict do nothing;
  if not found or v_problem is not null then
    return '{"matched": false}';
  end if;
  delete from tasker.wait_events x where x.workflow_step_uuid = v_step and x.token = v_token
    and x.event_uuid = v_event.event_uuid and x.problem is not null;   -- another wait of the step refused it
  update tasker.incoming_events e set taken_by = case when v_event.exclusive then v_step end,
    routed_at = coalesce(e.routed_at, v_now) where e.event_uuid = v_event.event_uuid and v_event.exclusive;

  v_count := coalesce((v_wait->>'count')::int, 1);
  if v_wait->>'take' = 'all' or v_count > (select count(*) from tasker.wait_events x
      where x.workflow_step_uuid = v_step and x.token = v_token and x.problem is null) then
    return '{"matched": true}';
  end if;
  v_result := case when v_count = 1 then tasker.event_result(v_event)
    else jsonb_build_object('events', tasker.taken_events(v_step, v_token)) end;
  v_answer := tasker.advance_v1(p_args - '{event,step,token,nth,task}'::text[]
    || jsonb_build_object('events', true, 'grants', false,
    'items', jsonb_build_array(jsonb_build_object('s', v_step, 't', p_args->'task',
      'kind', case when v_for_handler then 'resume' else 'ok' end, 'k', v_token,
      'r', case when v_for_handler then jsonb_build_object('event', v_result) else v_result end,
      'n', jsonb_build_object('wait', 'event', 'waited_until', v_now)))));
  if coalesce(nullif(v_answer->'verdicts', 'null'), '{}') ? v_step::text then   -- it stays for others
    delete from tasker.wait_events x where x.workflow_step_uuid = v_step and x.token = v_token
      and x.event_uuid = v_event.event_uuid;
    update tasker.incoming_events e set taken_by = null where e.event_uuid = v_event.event_uuid;
    return v_answer || '{"matched": false}';
  end if;
  return v_answer || '{"matched": true}';
end
$$;

-- Records that the payload of an event did not fit a wait: another wait may take it.
-- p_args: {event, step, token, nth, task, problem}
-- Returns: {}
create or replace function tasker.refuse_event_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
begin
  perform tasker.require_read_committed();
  insert into tasker.wait_events (workflow_step_uuid, token, event_uuid, nth, task_uuid, at, problem)
  values ((p_args->>'step')::uuid, (p_args->>'token')::bigint, (p_args->>'event')::uuid,
    (p_args->>'nth')::int, (p_args->>'task')::uuid, tasker.now(), p_args->>'problem')
  on conflict do nothing;
  return '{}';
end
$$;
