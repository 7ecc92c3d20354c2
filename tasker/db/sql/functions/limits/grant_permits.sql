-- Gives the free permits of keys to the first steps that wait for them, by rank, and places these steps as
-- any other that became ready: handed off to the caller, enqueued, or backlogged. A key is locked by an
-- advisory lock, one of 64 of its rule: there is no row of a key that could be wrong or stay. Permits are
-- counted in a later statement than the lock, so of two transactions the second sees what the first did. A
-- step with several limits waits for one at a time, without any permit: it gets all of them at once, or waits
-- for the first that has none.
-- Locks: keys of limits (advisory), in the order of their hashes and in one pass for each transaction; other
--   keys of these steps (advisory, without waiting), waiting steps and their tasks (skips), then as
--   advance_v1 with `lock_ms`, which waits for none of them.
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
  v_most constant int := 500;    -- steps in one round; the rest is noted
  v_pauses constant boolean := exists (select from tasker.pauses);
  v_steps uuid[];                -- that may go, in their order, with the keys for which they wait
  v_rules int[];
  v_values text[];
  v_paused uuid[];
  v_moving uuid[] := '{}';
  v_several boolean;
  v_sent_on boolean := true;
  v_sibling record;
  v_answer jsonb := '{}';
begin
  perform pg_advisory_xact_lock(m.hash) from (
    select distinct tasker.limit_lock(k.rule_id, k.value) as hash
    from unnest(p_rules, p_values) as k (rule_id, value)
    order by 1 offset 0) m;

  for v_round in 1..10 loop   -- again where a step left for another limit
    exit when not v_sent_on;
    with key as materialized (
      select d.rule_id, d.value, greatest(0, least(tasker.free_permits(d.rule_id, d.value), v_most)) as free
      from (select distinct k.rule_id, k.value from unnest(p_rules, p_values) as k (rule_id, value)) d
    )
    select array_agg(w.workflow_step_uuid order by w.rank, w.workflow_step_uuid),
      array_agg(k.rule_id order by w.rank, w.workflow_step_uuid),
      array_agg(k.value order by w.rank, w.workflow_step_uuid), bool_or(w.several)
    into v_steps, v_rules, v_values, v_several
    from key k cross join lateral (   -- paused ones give way to those behind them
      select w.workflow_step_uuid, w.rank, w.several from tasker.limit_waiters w
      join tasker.tasks t on t.task_uuid = w.task_uuid
      where w.rule_id = k.rule_id and w.value = k.value and w.workflow_step_uuid <> all (v_moving)
      order by w.rank,
        w.workflow_step_uuid limit case when v_pauses and k.free > 0 then k.free + 200 else k.free end
      for no key update of w, t skip locked) w;
    exit when v_steps is null;

    v_sent_on := false;
    if v_pauses then   -- these go to the backlog, without a permit
      v_paused := tasker.paused_of(v_steps);
      v_moving := v_moving || v_paused;
      select array_agg(s.step order by s.nth), array_agg(s.rule_id order by s.nth),
        array_agg(s.value order by s.nth)
      into v_steps, v_rules, v_values
      from unnest(v_steps, v_rules, v_values) with ordinality as s (step, rule_id, value, nth)
      where s.step <> all (v_paused);
    end if;
    if v_several then
      for v_nth in 1..coalesce(cardinality(v_steps), 0) loop
        case tasker.grant_all_limits(v_steps[v_nth], v_rules[v_nth], v_values[v_nth])
          when 'granted' then v_moving := v_moving || v_steps[v_nth];
          when 'sent on' then v_sent_on := true;
          else null;
        end case;
      end loop;
    else
      v_moving := v_moving || tasker.insert_permits(v_steps, v_rules, v_values);
    end if;
    for v_sibling in select * from tasker.waiting_with_permit(p_rules, p_values, v_moving) loop
      case (case when v_sibling.several
          then tasker.grant_all_limits(v_sibling.step, v_sibling.rule_id, v_sibling.value)
          else 'granted' end)
        when 'granted' then v_moving := v_moving || v_sibling.step;
        when 'sent on' then v_sent_on := true;
        else null;
      end case;
    end loop;
  end loop;

  if cardinality(v_moving) > 0 then
    v_answer := tasker.place_granted(v_moving, p_args);
  end if;
  perform tasker.note_next_look(p_rules, p_values);
  perform tasker.give_way(p_rules, p_values);
  return v_answer;
end
$$;

-- Inserts permits for steps, given in their order with the keys for which they wait, as far as each key has
-- free ones.
-- Returns the steps that got one.
create or replace function tasker.insert_permits(p_steps uuid[], p_rules int[], p_values text[])
returns uuid[]
language plpgsql as $$
declare
  v_granted uuid[];
begin
  with key as materialized (
    select d.rule_id, d.value, tasker.free_permits(d.rule_id, d.value) as free
    from (select distinct s.rule_id, s.value from unnest(p_rules, p_values) as s (rule_id, value)) d
  ), given as (
    insert into tasker.limit_permits (subject, rule_id, value, granted_at)
    select n.subject, n.rule_id, n.value, tasker.now() from (
      -- a task has one for all its steps
      select x.*, row_number() over (partition by x.rule_id, x.value order by x.nth) as place from (
        select case when r.of_tasks then tasker.step_uuid(s.step, 0) else s.step end as subject, s.rule_id,
          s.value, min(s.nth) as nth
        from unnest(p_steps, p_rules, p_values) with ordinality as s (step, rule_id, value, nth)
        join tasker.limit_rules r on r.rule_id = s.rule_id group by 1, s.rule_id, s.value) x) n
    join key k on k.rule_id = n.rule_id and k.value = n.value
    where n.place <= k.free
    returning subject, rule_id, value
  ), used as (   -- tokens of rates
    insert into tasker.limit_buckets as b (rule_id, value, full_at)
    select g.rule_id, g.value, tasker.now() + g.number / r.rate * interval '1 second'
    from (select x.rule_id, x.value, count(*) as number from given x group by x.rule_id, x.value) g
    join tasker.limit_rules r on r.rule_id = g.rule_id where r.rate is not null
    on conflict (rule_id, value) do update
    set full_at = greatest(b.full_at, tasker.now()) + (excluded.full_at - tasker.now())
  )
  select array_agg(distinct s.step) into v_granted from given g
  join unnest(p_steps, p_rules) as s (step, rule_id) on s.rule_id = g.rule_id
    and g.subject in (s.step, tasker.step_uuid(s.step, 0));
  return coalesce(v_granted, '{}');
end
$$;

-- Gives a step that waits for a permit of a key all permits that it needs, if each has a free one. Else it
-- waits for the first of its other limits that has none.
-- Locks: its other keys (advisory, without waiting).
-- Returns: granted, sent on, or full: this key has no free permit.
create or replace function tasker.grant_all_limits(p_step uuid, p_rule int, p_value text) returns text
language plpgsql as $$
declare
  v_rules int[];
  v_values text[];
  v_locked boolean[];
  v_full int;
begin
  -- that of its task
  if tasker.free_permits(p_rule, p_value) <= 0 and not exists (select from tasker.limit_permits p
      where p.subject = tasker.step_uuid(p_step, 0) and p.rule_id = p_rule) then
    return 'full';
  end if;
  select array_agg(l.rule_id order by l.nth), array_agg(l.value order by l.nth),
    array_agg(pg_try_advisory_xact_lock(tasker.limit_lock(l.rule_id, l.value)) order by l.nth)
  into v_rules, v_values, v_locked
  from tasker.workflow_steps s
  cross join lateral tasker.limits_of(s.workflow_step_uuid, s.template_id, s.ordinal) l
  where s.workflow_step_uuid = p_step
    and not exists (select from tasker.limit_permits p where p.subject = l.subject and p.rule_id = l.rule_id);
  -- a later statement
  select k.nth into v_full
  from unnest(v_rules, v_values, v_locked) with ordinality as k (rule_id, value, locked, nth)
  where k.rule_id <> p_rule and (not k.locked or tasker.free_permits(k.rule_id, k.value) <= 0)
  order by k.nth limit 1;
  if v_full is null then
    if v_rules is not null then
      perform tasker.insert_permits(array_fill(p_step, array[cardinality(v_rules)]), v_rules, v_values);
    end if;
    return 'granted';
  end if;
  update tasker.limit_waiters w set rule_id = v_rules[v_full], value = v_values[v_full]
  where w.workflow_step_uuid = p_step;
  if v_locked[v_full] then
    perform tasker.note_next_look(v_rules[v_full:v_full], v_values[v_full:v_full]);
  else
    perform tasker.note_keys(v_rules[v_full:v_full], v_values[v_full:v_full], 0);
  end if;
  return 'sent on';
end
$$;

-- Places steps that wait for a permit and now have theirs, or are paused. Those that cannot be moved at the
-- moment lose their permits again.
-- Locks: as advance_v1, which waits for none of them.
create or replace function tasker.place_granted(p_steps uuid[], p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_lock_ms constant int := 1000;   -- with it, rows that others have locked are passed over
  v_answer jsonb;
  v_refused uuid[];
begin
  v_answer := tasker.advance_v1(p_args - '{repairs,note,events}'::text[]
    || jsonb_build_object('wait', false, 'grants', false,
    'lock_ms', v_lock_ms, 'items', (
      select jsonb_agg(jsonb_build_object('s', w.workflow_step_uuid, 't', w.task_uuid, 'kind', 'unhold'))
      from tasker.limit_waiters w where w.workflow_step_uuid = any (p_steps))));
  v_refused := array(select v.step::uuid
    from jsonb_each_text(nullif(v_answer->'verdicts', 'null')) as v (step, verdict));
  if cardinality(v_refused) > 0 then
    delete from tasker.limit_permits p where p.subject = any (v_refused)
      or p.subject in (select tasker.step_uuid(r, 0) from unnest(v_refused) r) and not exists (
        select from tasker.tasks t where t.task_uuid = p.subject and t.active > 0);
    delete from tasker.limit_waiters w where w.workflow_step_uuid = any (v_refused)
      -- of a step that waits no more
      and v_answer->'verdicts'->>w.workflow_step_uuid::text in ('stale', 'cancelled');
  end if;
  return jsonb_strip_nulls(jsonb_build_object('claims', v_answer->'claims', 'send', v_answer->'send',
    'granted', cardinality(p_steps) - cardinality(v_refused)));
end
$$;

-- The steps, except `p_but`, that wait for a permit of these keys which their task has: it came with another
-- step of it.
create or replace function tasker.waiting_with_permit(p_rules int[], p_values text[], p_but uuid[])
returns table (step uuid, rule_id int, value text, several boolean)
language sql stable as $$
  select w.workflow_step_uuid, w.rule_id, w.value, w.several
  from (select distinct k.rule_id, k.value from unnest(p_rules, p_values) as k (rule_id, value)) k
  join tasker.limit_rules r on r.rule_id = k.rule_id and r.of_tasks
  cross join lateral (select p.subject from tasker.limit_permits p
    where p.rule_id = k.rule_id and p.value = k.value offset 0) p
  cross join lateral (select x.* from tasker.limit_waiters x   -- steps of this task
    where x.workflow_step_uuid > p.subject
      and x.workflow_step_uuid <= tasker.step_uuid(p.subject, 16777215) offset 0) w
  where w.rule_id = k.rule_id and w.workflow_step_uuid <> all (p_but)
$$;

-- The number of the advisory lock of a key: one of 64 of its rule, so a write with many keys takes few locks.
create or replace function tasker.limit_lock(p_rule int, p_value text) returns bigint
language sql immutable parallel safe as $$
  select hashtextextended('tasker limit ' || p_rule || ' ' || (hashtextextended(p_value, 0) & 63), 0)
$$;
