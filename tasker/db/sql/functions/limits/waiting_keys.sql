-- Keys for which steps wait, in their order behind a rule and a value: one index probe for each key, not for
-- each step. p_value null: from the first key of the rule.
create or replace function tasker.waiting_keys(p_rule int, p_value text, p_limit int)
returns table (rule_id int, value text)
language sql stable
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set enable_bitmapscan to off
set jit to off
as $$
  with recursive key as (
    (select w.rule_id, w.value, 1 as nth from tasker.limit_waiters w
      where case when p_value is null then (w.rule_id, w.value) >= (p_rule, '')
        else (w.rule_id, w.value) > (p_rule, p_value) end
      order by w.rule_id, w.value limit 1)
    union all
    select n.rule_id, n.value, k.nth + 1 from key k cross join lateral (
      select w.rule_id, w.value from tasker.limit_waiters w where (w.rule_id, w.value) > (k.rule_id, k.value)
      order by w.rule_id, w.value limit 1) n
    where k.nth < p_limit
  )
  select k.rule_id, k.value from key k
$$;

-- True if steps wait for a permit of a key. One index probe: a `limit 1` keeps it from becoming a join with
-- all of them.
create or replace function tasker.has_waiters(p_rule int, p_value text) returns boolean
language sql stable as $$
  select (select true from tasker.limit_waiters w where w.rule_id = p_rule and w.value = p_value
    order by w.rule_id, w.value, w.rank limit 1) is true
$$;
