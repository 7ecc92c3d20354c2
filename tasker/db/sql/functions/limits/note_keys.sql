-- Notes keys at which the timekeeper looks in `p_in_ms`: whoever calls this may not wait for a key, or could not grant.
create or replace function tasker.note_keys(p_rules int[], p_values text[], p_in_ms int) returns void
language plpgsql as $$
begin
  insert into tasker.limit_notes (rule_id, value) select distinct k.rule_id, k.value from unnest(p_rules, p_values) as k (rule_id, value);
  perform pg_notify('tasker_timers', p_in_ms::text);   -- delivered by the commit
end
$$;
