-- The time before which a step of a template does not start, once it is ready at `p_ready_at`: after its
-- `delay`, or at the time of its `not_before`. Null without either; -infinity if there is no time at the
-- place that `not_before` names. `p_judged`: changes of the same write, whose results are not stored yet.
create or replace function tasker.step_begins_at(p_task uuid, p_template int, p_ordinal int,
  p_ready_at timestamptz, p_judged tasker.judged_change[] default null) returns timestamptz
language sql stable as $$
  select case when ts.delay_ms is not null then p_ready_at + tasker.ms(ts.delay_ms)
    when ts.not_before is not null then coalesce(tasker.time_of(case
      when ts.not_before ? 'time' then ts.not_before->'time'
      when ts.not_before ? 'input'
        then (select d.context #> array(select jsonb_array_elements_text(ts.not_before->'input'))
        from tasker.task_details d where d.task_uuid = p_task)
      else coalesce((select j.result from unnest(p_judged) j
          where j.task_uuid = p_task and j.name = ts.not_before->>'step'),
        (select r.result from tasker.workflow_steps s join tasker.step_results r on r.task_uuid = s.task_uuid
          and r.ordinal = s.ordinal and r.workflow_step_uuid = s.workflow_step_uuid
        where s.task_uuid = p_task and s.name = ts.not_before->>'step')) #> array(
        select jsonb_array_elements_text(ts.not_before->'path')) end), '-infinity') end
  from tasker.template_steps ts where ts.template_id = p_template and ts.ordinal = p_ordinal
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
