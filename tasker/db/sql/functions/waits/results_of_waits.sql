-- The items of due_v1, in which a step whose wait has ended by its time gets its result, or its failure if
-- there is no time at the place that its wait names (`not_a_time`). The token decides later whether the wait
-- is still that of the step.
create or replace function tasker.results_of_waits(p_items jsonb) returns jsonb
language plpgsql as $$
declare
  v_ends jsonb;
begin
  if not jsonb_path_exists(p_items, '$[*] ? (@.kind == "ok")') then
    return p_items;
  end if;
  select jsonb_object_agg(s.workflow_step_uuid, case when p.fails
    then jsonb_build_object('kind', 'fail', 'n', '{"wait": "failed"}'::jsonb,
      'e', jsonb_build_object('error_type', 'not_a_time', 'retryable', false, 'attempt', s.attempts,
      'fingerprint', left(md5('not_a_time ' || s.template_id || ':' || s.ordinal), 16),
      'message', case when ts.wait->'until' ? 'next'
        then format('until: the database does not know the time zone %s', ts.wait->'until'->>'timezone')
        else format('until: expected a time such as 2026-01-31T18:00:00Z at %s',
        tasker.place_text(ts.wait->'until')) end))
    else jsonb_build_object('r', jsonb_build_object('waited_until', w.until),
      'n', jsonb_build_object('wait', 'time', 'waited_until', w.until)) end)
  into v_ends
  from jsonb_to_recordset(p_items) as i (s uuid, kind text, k bigint)
  join tasker.workflow_steps s on s.workflow_step_uuid = i.s
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  join tasker.step_waits w on w.workflow_step_uuid = i.s and w.token = i.k
  cross join lateral (
    select tasker.wait_ends_at(s.task_uuid, ts.wait, w.since) is not distinct from '-infinity' as fails) p
  where tasker.kind_stores_result(i.kind);
  return (select jsonb_agg(i || coalesce(v_ends->(i->>'s'), '{}')) from jsonb_array_elements(p_items) i);
end
$$;
