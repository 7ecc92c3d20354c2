-- Gives the free permits of keys to the first steps that wait for them, by rank, and places these steps as any other
-- that became ready: handed off to the caller, enqueued, or backlogged. A key is locked by an advisory lock, one of 64
-- of its rule: there is no row of a key that could be wrong or stay. Permits are counted in a later statement than the
-- lock, so of two transactions the second sees what the first did.
-- Locks: keys of limits (advisory), in the order of their hashes and in one pass for each transaction; waiting steps
--   and their tasks (skips), then as advance_v1 with `lock_ms`, which waits for none of them.
-- p_args: as advance_v1 without items.
-- Returns: {claims, send, granted: number of steps that got permits}.
create or replace function tasker.grant_permits(p_rules int[], p_values text[], p_args jsonb) returns jsonb
language plpgsql
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set enable_sort to off
set enable_bitmapscan to off
set jit to off
as $$
declare
  v_most constant int := 500;    -- steps in one call; the rest is noted
  v_pauses constant boolean := exists (select from tasker.pauses);
  v_rules int[];
  v_values text[];
  v_steps uuid[];
  v_of_rules int[];
  v_of_values text[];
  v_paused uuid[] := '{}';
  v_moving uuid[];
  v_left boolean;
  v_answer jsonb := '{}';
begin
  perform pg_advisory_xact_lock(m.hash) from (
    select distinct tasker.limit_lock(k.rule_id, k.value) as hash from unnest(p_rules, p_values) as k (rule_id, value)
    order by 1 offset 0) m;

  with key as materialized (
    select d.rule_id, d.value, greatest(0, least(tasker.free_permits(d.rule_id, d.value), v_most)) as free
    from (select distinct k.rule_id, k.value from unnest(p_rules, p_values) as k (rule_id, value)) d
  )
  select array_agg(w.workflow_step_uuid order by w.rank), array_agg(k.rule_id order by w.rank), array_agg(k.value order by w.rank)
  into v_steps, v_of_rules, v_of_values
  from key k cross join lateral (   -- paused ones give way to those behind them
    select w.workflow_step_uuid, w.rank from tasker.limit_waiters w join tasker.tasks t on t.task_uuid = w.task_uuid
    where w.rule_id = k.rule_id and w.value = k.value
    order by w.rank, w.workflow_step_uuid limit case when v_pauses and k.free > 0 then k.free + 200 else k.free end
    for no key update of w, t skip locked) w;

  if v_pauses and v_steps is not null then
    v_paused := tasker.paused_of(v_steps);
  end if;
  with key as materialized (
    select d.rule_id, d.value, tasker.free_permits(d.rule_id, d.value) as free
    from (select distinct s.rule_id, s.value from unnest(v_of_rules, v_of_values) as s (rule_id, value)) d
  ), given as (
    insert into tasker.limit_permits (subject, rule_id, value, granted_at)
    select n.step, n.rule_id, n.value, tasker.now() from (
      select s.step, s.rule_id, s.value, row_number() over (partition by s.rule_id, s.value order by s.nth) as nth
      from unnest(v_steps, v_of_rules, v_of_values) with ordinality as s (step, rule_id, value, nth)
      where s.step <> all (v_paused)) n
    join key k on k.rule_id = n.rule_id and k.value = n.value
    where n.nth <= k.free
    returning subject
  )
  select array(select g.subject from given g) into v_moving;
  v_moving := v_moving || v_paused;   -- these wait in the backlog, without a permit
  if cardinality(v_moving) > 0 then
    v_answer := tasker.place_granted(v_moving, p_args);
  end if;

  -- Steps that another transaction has locked, or behind many paused ones: looked at again soon.
  select array_agg(k.rule_id), array_agg(k.value) into v_rules, v_values
  from (select distinct k.rule_id, k.value from unnest(p_rules, p_values) as k (rule_id, value)) k
  where tasker.free_permits(k.rule_id, k.value) > 0
    and exists (select from tasker.limit_waiters w where w.rule_id = k.rule_id and w.value = k.value);
  if v_rules is not null then
    perform tasker.note_keys(v_rules, v_values, 20);
  end if;
  return v_answer;
end
$$;

-- Places steps that wait for a permit and now have one, or are paused. Those that cannot be moved at the moment lose
-- the permit again.
create or replace function tasker.place_granted(p_steps uuid[], p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_answer jsonb;
  v_refused uuid[];
begin
  v_answer := tasker.advance_v1(p_args - '{repairs,note,events}'::text[] || jsonb_build_object('wait', false, 'grants', false,
    'lock_ms', coalesce((p_args->>'lock_ms')::int, 1000), 'items', (
      select jsonb_agg(jsonb_build_object('s', w.workflow_step_uuid, 't', w.task_uuid, 'kind', 'unhold'))
      from tasker.limit_waiters w where w.workflow_step_uuid = any (p_steps))));
  v_refused := array(select v.step::uuid from jsonb_each_text(nullif(v_answer->'verdicts', 'null')) as v (step, verdict));
  if cardinality(v_refused) > 0 then
    delete from tasker.limit_permits p where p.subject = any (v_refused);
    delete from tasker.limit_waiters w where w.workflow_step_uuid = any (v_refused)
      and v_answer->'verdicts'->>w.workflow_step_uuid::text in ('stale', 'cancelled');   -- of a step that waits no more
  end if;
  return jsonb_strip_nulls(jsonb_build_object('claims', v_answer->'claims', 'send', v_answer->'send',
    'granted', cardinality(p_steps) - cardinality(v_refused)));
end
$$;

-- The number of the advisory lock of a key: one of 64 of its rule, so a write with many keys takes few locks.
create or replace function tasker.limit_lock(p_rule int, p_value text) returns bigint
language sql immutable parallel safe as $$
  select hashtextextended('tasker limit ' || p_rule || ' ' || (hashtextextended(p_value, 0) & 63), 0)
$$;
