-- The items of due_v1, in which a step whose `not_before` names no time fails instead of starting.
create or replace function tasker.fail_timeless_steps(p_items jsonb) returns jsonb
language plpgsql as $$
declare
  v_failed jsonb;
begin
  if not jsonb_path_exists(p_items, '$[*] ? (@.kind == "unhold")') then
    return p_items;
  end if;
  select jsonb_object_agg(s.workflow_step_uuid,
    jsonb_build_object('error_type', 'not_a_time', 'retryable', false,
    'attempt', s.attempts, 'fingerprint', left(md5('not_a_time ' || s.template_id || ':' || s.ordinal), 16),
    'message', format('not_before: expected a time such as 2026-01-31T18:00:00Z at %s', coalesce(
      'input.' || (select string_agg(n, '.') from jsonb_array_elements_text(ts.not_before->'input') n),
      concat_ws('.', 'steps', ts.not_before->>'step',
        (select string_agg(n, '.') from jsonb_array_elements_text(ts.not_before->'path') n))))))
  into v_failed
  from jsonb_to_recordset(p_items) as i (s uuid, kind text)
  join tasker.workflow_steps s on s.workflow_step_uuid = i.s
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  where tasker.kind_needs_parents(i.kind) and ts.not_before is not null
    and tasker.step_begins_at(s.task_uuid, s.template_id, s.ordinal, tasker.now()) = '-infinity';
  return case when v_failed is null then p_items else (
    select jsonb_agg(case when v_failed ? (i->>'s') then i
          || jsonb_build_object('kind', 'fail', 'e', v_failed->(i->>'s')) else i end)
    from jsonb_array_elements(p_items) i) end;
end
$$;
