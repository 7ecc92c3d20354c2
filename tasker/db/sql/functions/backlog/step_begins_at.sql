-- The time before which a step of a template does not start, once it is ready at `p_ready_at`: after its
-- `delay`, or at the time of its `not_before`. Null without either; -infinity if there is no time at the
-- place that `not_before` names, or no value of the key of one of its limits. `p_judged`: changes of the same
-- write, whose results are not stored yet.
create or replace function tasker.step_begins_at(p_task uuid, p_template int, p_ordinal int,
  p_ready_at timestamptz, p_judged tasker.judged_change[] default null) returns timestamptz
language sql stable as $$
  select case when ts.gates & 1 <> 0 and exists (select from tasker.template_limits l
      where l.template_id = p_template and l.ordinal in (-1, p_ordinal) and l.key is not null
        and tasker.limit_value(tasker.value_at(p_task, l.key, p_judged)) is null) then '-infinity'
    when ts.delay_ms is not null then p_ready_at + tasker.ms(ts.delay_ms)
    when ts.not_before is not null
      then coalesce(tasker.time_of(tasker.value_at(p_task, ts.not_before, p_judged)), '-infinity') end
  from tasker.template_steps ts where ts.template_id = p_template and ts.ordinal = p_ordinal
$$;

-- The value at a place of a task's data: {time} itself, {input: [name...]}, or {step, path: [name...]} in the
-- result of a step, which may be among `p_judged`.
create or replace function tasker.value_at(p_task uuid, p_place jsonb,
  p_judged tasker.judged_change[] default null) returns jsonb
language sql stable as $$
  select case
    when p_place ? 'time' then p_place->'time'
    when p_place ? 'input' then (select d.context #> array(select jsonb_array_elements_text(p_place->'input'))
      from tasker.task_details d where d.task_uuid = p_task)
    else coalesce((select j.result from unnest(p_judged) j
        where j.task_uuid = p_task and j.name = p_place->>'step'),
      (select r.result from tasker.workflow_steps s join tasker.step_results r on r.task_uuid = s.task_uuid
        and r.ordinal = s.ordinal and r.workflow_step_uuid = s.workflow_step_uuid
      where s.task_uuid = p_task
        and s.name = p_place->>'step')) #> array(select jsonb_array_elements_text(p_place->'path')) end
$$;

-- A time in data: a text with date, time of day and offset (2026-01-31T18:00:00Z); null for every other
-- value.
create or replace function tasker.time_of(p_value jsonb) returns timestamptz
language plpgsql stable as $$
begin
  if jsonb_typeof(p_value) = 'string'
      and p_value #>> '{}' ~ '^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d(:?\d\d)?)$' then
    return (p_value #>> '{}')::timestamptz;
  end if;
  return null;
exception when data_exception then
  return null;
end
$$;
