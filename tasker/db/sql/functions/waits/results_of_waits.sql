-- The items of due_v1 for steps whose wait has ended by its time: a result, or a failure if the path of the
-- wait leads to no time, key or person (`not_a_time`, `event_key_missing`, `approver_missing`), or if nothing
-- came (`wait_timed_out`). A handler that continues after its timeout is called. The token decides later
-- whether the wait is still current.
create or replace function tasker.results_of_waits(p_items jsonb) returns jsonb
language plpgsql as $$
declare
  v_ends jsonb;
begin
  if not jsonb_path_exists(p_items, '$[*] ? (@.kind == "ok")') then
    return p_items;
  end if;
  select jsonb_object_agg(s.workflow_step_uuid, case
    when w.kind = 'h' and w.detail->>'on_timeout' = 'continue'
      then jsonb_build_object('kind', 'resume', 'r', '{"timed_out": true}'::jsonb,
        'n', jsonb_build_object('wait', 'timeout', 'waited_until', w.until))
    when p.problem is not null then jsonb_build_object('kind', 'fail', 'n', jsonb_build_object('wait',
      case p.problem when 'wait_timed_out' then 'timeout' else 'failed' end),
      'e', jsonb_build_object('error_type', p.problem, 'retryable', false, 'attempt', s.attempts,
      'fingerprint', left(md5(p.problem || ' ' || s.template_id || ':' || s.ordinal), 16),
      'message', tasker.problem_of_wait(p.problem, ts.wait, w)))
    else jsonb_build_object('r', case w.kind when 'w' then jsonb_build_object('waited_until', w.until)
        else jsonb_build_object('events', tasker.taken_events(w.workflow_step_uuid, w.token)) end,
      'n', jsonb_build_object('wait', case w.kind when 'w' then 'time' else 'event' end,
        'waited_until', w.until)) end)
  into v_ends
  from jsonb_to_recordset(p_items) as i (s uuid, kind text, k bigint)
  join tasker.workflow_steps s on s.workflow_step_uuid = i.s
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  join tasker.step_waits w on w.workflow_step_uuid = i.s and w.token = i.k and w.nth = 1
  cross join lateral (select case
    when tasker.wait_ends_at(s.task_uuid, ts.wait, w.since) is not distinct from '-infinity'
      then case w.kind when 'w' then 'not_a_time' when 'a' then 'approver_missing'
        else 'event_key_missing' end
    when w.kind <> 'w' and ts.wait->>'take' is distinct from 'all' then 'wait_timed_out' end as problem) p
  where tasker.kind_stores_result(i.kind);
  return (select jsonb_agg(i || coalesce(v_ends->(i->>'s'), '{}')) from jsonb_array_elements(p_items) i);
end
$$;

-- The message of a failed wait.
create or replace function tasker.problem_of_wait(p_problem text, p_wait jsonb, p_row tasker.step_waits)
returns text
language sql stable as $$
  select case
    when p_problem = 'wait_timed_out' and p_row.kind = 'a' then (
      select format('not decided until %s: %s of %s approved%s', to_char(p_row.until at time zone 'UTC',
          'YYYY-MM-DD HH24:MI:SS"Z"'), count(*) filter (where v.decision = 'approved'), p_wait->>'quorum',
        case when count(*) filter (where v.decision = 'rejected') > 0
          then format(', %s rejected', count(*) filter (where v.decision = 'rejected')) else '' end)
      from tasker.approval_votes v
      where v.workflow_step_uuid = p_row.workflow_step_uuid and v.token = p_row.token)
    when p_problem = 'approver_missing' then (
      select format('from: expected the name of a person at %s', tasker.place_text(s))
      from jsonb_array_elements(p_wait->'subjects') s where jsonb_typeof(s) = 'object'
        and not exists (select from tasker.names_at(p_row.task_uuid, s)) limit 1)
    when p_problem = 'wait_timed_out' then (
      select format('no event %s came until %s', string_agg(w.event || case when w.key = '' then ''
          else ' with the key ' || w.key end, ' or ' order by w.nth),
          to_char(p_row.until at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'))
      from tasker.step_waits w
      where w.workflow_step_uuid = p_row.workflow_step_uuid and w.token = p_row.token)
      || coalesce((select format('; the payloads of %s did not fit, the last because %s',
          count(distinct x.event_uuid),
          (array_agg(x.problem order by x.at desc))[1])
        from tasker.wait_events x where x.workflow_step_uuid = p_row.workflow_step_uuid
          and x.token = p_row.token and x.problem is not null having count(*) > 0), '')
    when p_problem = 'event_key_missing' then (
      select format('key: expected a value at %s', tasker.place_text(e->'key'))
      from jsonb_array_elements(p_wait->'events') e where jsonb_typeof(e->'key') = 'object'
        and tasker.limit_value(tasker.value_at(p_row.task_uuid, e->'key')) is null limit 1)
    else case when p_wait->'until' ? 'next'
      then format('until: the database does not know the time zone %s', p_wait->'until'->>'timezone')
      else format('until: expected a time such as 2026-01-31T18:00:00Z at %s',
        tasker.place_text(p_wait->'until')) end end
$$;

-- The events that a wait has taken, the earliest first, in the form of the result.
create or replace function tasker.taken_events(p_step uuid, p_token bigint) returns jsonb
language sql stable as $$
  select coalesce(jsonb_agg(tasker.event_result(e) order by x.at, x.event_uuid), '[]')
  from tasker.wait_events x join tasker.incoming_events e using (event_uuid)
  where x.workflow_step_uuid = p_step and x.token = p_token and x.problem is null
$$;

-- An event in the form of a step's result.
create or replace function tasker.event_result(p_event tasker.incoming_events) returns jsonb
language sql stable as $$
  select jsonb_build_object('event', p_event.name, 'key', p_event.key, 'payload', p_event.payload,
    'event_uuid', p_event.event_uuid, 'sent_at', p_event.sent_at)
$$;
