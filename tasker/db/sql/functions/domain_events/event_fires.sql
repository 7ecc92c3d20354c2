-- True if an event with this condition is published for this outcome; a null outcome publishes none.
create or replace function tasker.event_fires(p_condition text, p_outcome text) returns boolean
language sql immutable parallel safe as $$
  select p_outcome is not null and (p_condition in (p_outcome, 'always') or p_condition = 'failure' and p_outcome <> 'success')
$$;
