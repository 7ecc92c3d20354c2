-- The items of due_v1, in which a step fails instead of starting whose `not_before` names no time, or that has no value
-- of the key of a limit.
create or replace function tasker.fail_unstartable_steps(p_items jsonb) returns jsonb
language plpgsql as $$
declare
  v_failed jsonb;
begin
  if not jsonb_path_exists(p_items, '$[*] ? (@.kind == "unhold")') then
    return p_items;
  end if;
  select jsonb_object_agg(s.workflow_step_uuid, jsonb_build_object('error_type', c.error_type, 'retryable', false,
    'attempt', s.attempts, 'fingerprint', left(md5(c.error_type || ' ' || s.template_id || ':' || s.ordinal), 16),
    'message', case c.error_type when 'not_a_time'
      then format('not_before: expected a time such as 2026-01-31T18:00:00Z at %s', tasker.place_text(ts.not_before))
      else format('concurrency: expected a value for its key at %s', tasker.place_text(k.key)) end))
  into v_failed
  from jsonb_to_recordset(p_items) as i (s uuid, kind text)
  join tasker.workflow_steps s on s.workflow_step_uuid = i.s
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  left join lateral (select l.key from tasker.template_limits l
    where ts.gates & 1 <> 0 and l.template_id = s.template_id and l.ordinal in (-1, s.ordinal) and l.key is not null
      and tasker.limit_value(tasker.value_at(s.task_uuid, l.key)) is null order by l.ordinal, l.nth limit 1) k on true
  cross join lateral (select case when k.key is null then 'not_a_time' else 'limit_key_missing' end) c (error_type)
  where tasker.kind_needs_parents(i.kind) and (ts.not_before is not null or ts.gates & 1 <> 0)
    and tasker.step_begins_at(s.task_uuid, s.template_id, s.ordinal, tasker.now()) = '-infinity';
  return case when v_failed is null then p_items else (
    select jsonb_agg(case when v_failed ? (i->>'s') then i || jsonb_build_object('kind', 'fail', 'e', v_failed->(i->>'s')) else i end)
    from jsonb_array_elements(p_items) i) end;
end
$$;

-- A place in a task's data as templates write it.
create or replace function tasker.place_text(p_place jsonb) returns text
language sql immutable as $$
  select coalesce('input.' || (select string_agg(n, '.') from jsonb_array_elements_text(p_place->'input') n),
    concat_ws('.', 'steps', p_place->>'step', (select string_agg(n, '.') from jsonb_array_elements_text(p_place->'path') n)))
$$;
