-- Notes keys at which the timekeeper looks in `p_in_ms`: the caller may not wait for a key, or could
-- not grant.
create or replace function tasker.note_keys(p_rules int[], p_values text[], p_in_ms int) returns void
language plpgsql as $$
begin
  insert into tasker.limit_notes (rule_id, value, due_at)
  select distinct k.rule_id, k.value, tasker.now() + tasker.ms(p_in_ms)
  from unnest(p_rules, p_values) as k (rule_id, value)
  -- none that another transaction takes, which may have looked before
  where not exists (select from tasker.limit_notes n
    where p_in_ms > 0 and n.rule_id = k.rule_id and n.value = k.value
      and n.due_at <= tasker.now() + tasker.ms(p_in_ms));
  if p_in_ms < 1500 then   -- before the timekeeper looks again
    perform pg_notify('tasker_timers', p_in_ms::text);   -- delivered by the commit
  end if;
end
$$;

-- Notes the keys among these for which steps still wait, and where a permit is free (the step or its task is
-- locked, or behind many paused ones), or will be without the end of a step: when the next token of a rate
-- comes. Not within 20 ms, so a high rate takes few looks. The caller has the locks of the keys.
create or replace function tasker.note_next_look(p_rules int[], p_values text[]) returns void
language plpgsql as $$
declare
  v_look record;
begin
  for v_look in
    select array_agg(k.rule_id) as rules, array_agg(k.value) as key_values, k.in_ms from (
      select d.rule_id, d.value, case when tasker.free_permits(d.rule_id, d.value) > 0 then 20
        else greatest(20, least(600000, tasker.next_token_ms(d.rule_id, d.value))) end as in_ms
      from (select distinct k.rule_id, k.value from unnest(p_rules, p_values) as k (rule_id, value)) d
      where (tasker.lacks_tokens(d.rule_id, d.value) or tasker.free_permits(d.rule_id, d.value) > 0)
        and tasker.has_waiters(d.rule_id, d.value)) k
    group by k.in_ms
  loop
    perform tasker.note_keys(v_look.rules, v_look.key_values, v_look.in_ms::int);
  end loop;
end
$$;
