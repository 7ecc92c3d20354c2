-- The items of due_v1, in which a step fails instead of starting if its `not_before` names no time
-- (`not_a_time`), if it has no value of the key of a limit (`limit_key_missing`), or if it would begin only
-- after the deadline of its task (`deadline_too_near`).
create or replace function tasker.fail_unstartable_steps(p_items jsonb) returns jsonb
language plpgsql as $$
declare
  v_failed jsonb;
begin
  if not jsonb_path_exists(p_items, '$[*] ? (@.kind == "unhold")') then
    return p_items;
  end if;
  select jsonb_object_agg(s.workflow_step_uuid,
    jsonb_build_object('error_type', p.problem, 'retryable', false,
    'attempt', s.attempts,
    'fingerprint', left(md5(p.problem || ' ' || s.template_id || ':' || s.ordinal), 16),
    'message', case p.problem
      when 'deadline_too_near' then format('the step would begin at %s, and the deadline of the task is %s',
        to_char(b.begins_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'),
        to_char(d.due_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'))
      when 'not_a_time' then format('not_before: expected a time such as 2026-01-31T18:00:00Z at %s',
        tasker.place_text(ts.not_before))
      else format('concurrency: expected a value for its key at %s', tasker.place_text(k.key)) end))
  into v_failed
  from jsonb_to_recordset(p_items) as i (s uuid, kind text)
  join tasker.workflow_steps s on s.workflow_step_uuid = i.s
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  join tasker.tasks t on t.task_uuid = s.task_uuid
  left join tasker.timers d on d.subject = s.task_uuid and d.kind = 'd' and t.gates & 256 <> 0
  left join lateral (select l.key from tasker.template_limits l
    where ts.gates & 1 <> 0 and l.template_id = s.template_id and l.ordinal in (-1, s.ordinal)
      and l.key is not null
      and tasker.limit_value(tasker.value_at(s.task_uuid, l.key)) is null order by l.ordinal,
        l.nth limit 1) k on true
  -- The step became ready with its last write, or at the start of its task.
  cross join lateral (select tasker.step_begins_at(s.task_uuid, s.template_id, s.ordinal,
    greatest(s.updated_at, t.run_at)) as begins_at) b
  cross join lateral (select case when b.begins_at = '-infinity'
      then case when k.key is null then 'not_a_time' else 'limit_key_missing' end
    when b.begins_at >= d.due_at then 'deadline_too_near' end as problem) p
  where tasker.kind_needs_parents(i.kind) and ts.gates <> 0 and p.problem is not null;
  return case when v_failed is null then p_items else (
    select jsonb_agg(case when v_failed ? (i->>'s') then i
          || jsonb_build_object('kind', 'fail', 'e', v_failed->(i->>'s')) else i end)
    from jsonb_array_elements(p_items) i) end;
end
$$;

-- A place in a task's data as templates write it.
create or replace function tasker.place_text(p_place jsonb) returns text
language sql immutable as $$
  select coalesce('input.' || (select string_agg(n, '.') from jsonb_array_elements_text(p_place->'input') n),
    concat_ws('.', 'steps', p_place->>'step',
      (select string_agg(n, '.') from jsonb_array_elements_text(p_place->'path') n)))
$$;
