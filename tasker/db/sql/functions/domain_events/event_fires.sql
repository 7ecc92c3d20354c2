-- Whether an event with this condition tells of this outcome; null is none.
create or replace function tasker.event_fires(p_condition text, p_outcome text) returns boolean
language sql immutable parallel safe as $$
  select p_outcome is not null and (p_condition in (p_outcome, 'always') or p_condition = 'failure' and p_outcome <> 'success')
$$;
