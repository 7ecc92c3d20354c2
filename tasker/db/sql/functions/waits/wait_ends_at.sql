-- The time at which a wait that begins at `p_from` ends without an event, from its part of the plan; null:
-- never; -infinity: its path leads to no time, to no key of an event, or to no person. `p_judged`: changes of
-- the same write, whose results are not stored yet.
create or replace function tasker.wait_ends_at(p_task uuid, p_wait jsonb, p_from timestamptz,
  p_judged tasker.judged_change[] default null) returns timestamptz
language sql stable as $$
  select case
    when exists (select from jsonb_array_elements(coalesce(nullif(p_wait->'events', 'null'), '[]')) e
      where jsonb_typeof(e->'key') = 'object'
        and tasker.limit_value(tasker.value_at(p_task, e->'key', p_judged)) is null) then '-infinity'
    when exists (select from jsonb_array_elements(coalesce(nullif(p_wait->'subjects', 'null'), '[]')) s
      where jsonb_typeof(s) = 'object' and not exists (select from tasker.names_at(p_task, s, p_judged)))
      then '-infinity'
    when p_wait->>'for_seconds' is not null
      then p_from + tasker.ms((p_wait->>'for_seconds')::numeric * 1000)
    when p_wait->'until' ? 'next' then tasker.next_calendar_time(p_wait->'until', p_from)
    when jsonb_typeof(p_wait->'until') = 'object'
      then coalesce(tasker.time_of(tasker.value_at(p_task, p_wait->'until', p_judged)), '-infinity') end
$$;

-- The first time after `p_after` of a calendar rule: {next: day, weekday, month or the name of a day
-- of the week, at: time of day, timezone}. A time skipped by a change to summer time is an hour later.
-- -infinity: the database does not know the zone.
create or replace function tasker.next_calendar_time(p_word jsonb, p_after timestamptz) returns timestamptz
language plpgsql stable as $$
begin
  return (select min(c.at) from (
    select d.day, (d.day + (p_word->>'at')::time) at time zone (p_word->>'timezone') as at
    from (select (p_after at time zone (p_word->>'timezone'))::date + n as day
      from generate_series(0, 31) n) d) c
  where c.at > p_after and case p_word->>'next'
    when 'day' then true
    when 'weekday' then extract(isodow from c.day) <= 5
    when 'month' then extract(day from c.day) = 1
    else extract(isodow from c.day) = array_position(array['monday', 'tuesday', 'wednesday', 'thursday',
      'friday', 'saturday', 'sunday'], p_word->>'next') end);
exception when invalid_parameter_value then
  return '-infinity';
end
$$;
