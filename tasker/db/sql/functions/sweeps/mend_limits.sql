-- The part of tasker.repair_v1 that checks limits, a slice of keys and a slice of permits with each call:
-- free permits of keys for which steps wait although no process is to look there, and permits of steps that
-- do not run. Steps that stay in the backlog because they are paused, or because no worker has their handler,
-- give their permits back, which is no repair. What is free now is noted for the timekeeper
-- (tasker.note_keys).
-- Locks: turn (skips), tasks (skips), keys of limits (advisory, without waiting).
-- Returns: {repaired: {kind: n}, slices: true if the pass has more}, with the kinds that occurred.
create or replace function tasker.mend_limits(p_args jsonb) returns jsonb
language plpgsql
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_kind constant text := 'limits';
  v_slice constant int not null := (p_args->>'slice')::int;
  v_turn tasker.turns;
  v_rules int[];
  v_values text[];
  v_subjects uuid[];
  v_tasks uuid[];
  v_ended int;
  v_more boolean;
  v_repaired jsonb := '{}';
begin
  if not exists (select from tasker.limit_waiters) and not exists (select from tasker.limit_permits)
      and not exists (select from tasker.limit_buckets) then
    return '{"repaired": {}}';   -- usual case
  end if;
  if not exists (select from tasker.turns t where t.kind = v_kind) then
    insert into tasker.turns (kind, taken_at) values (v_kind, '-infinity') on conflict (kind) do nothing;
  end if;
  select * into v_turn from tasker.turns t where t.kind = v_kind for update skip locked;
  if not found then
    return '{"repaired": {}}';
  end if;
  if p_args ? 'begin' then
    v_turn.position := null;
    v_turn.after := null;
  end if;
  v_subjects := array(select p.subject from tasker.limit_permits p
    where p.subject > coalesce(v_turn.position, '00000000-0000-0000-0000-000000000000')
    order by p.subject limit v_slice);
  select array_agg(k.rule_id order by k.rule_id, k.value), array_agg(k.value order by k.rule_id, k.value)
  into v_rules, v_values
  from tasker.waiting_keys(coalesce(v_turn.after[1]::int, 0), v_turn.after[2], v_slice) k;
  v_more := v_subjects[v_slice] is not null or v_rules[v_slice] is not null;
  update tasker.turns t set taken_at = tasker.now(), position = v_subjects[v_slice],
    after = case when v_rules[v_slice] is not null then array[v_rules[v_slice]::text, v_values[v_slice]] end
  where t.kind = v_kind;

  -- A step and its permits change under the lock of the task alone.
  select array_agg(q.task_uuid) into v_tasks from (
    select t.task_uuid from tasker.tasks t
    where t.task_uuid in (select tasker.step_uuid(p, 0) from unnest(v_subjects) p)
    order by t.task_uuid for no key update skip locked) q;
  with judged as materialized (
    select p.subject, p.rule_id, s.state = 'pending' and b.workflow_step_uuid is not null as held,
      b.paused or b.unserved is not null or tasker.namespace_is_paused(b.namespace_id) as rests
    from tasker.limit_permits p
    left join tasker.workflow_steps s on s.workflow_step_uuid = p.subject
    left join tasker.ready_backlog b on b.workflow_step_uuid = p.subject
    where p.subject = any (v_subjects) and not coalesce(tasker.step_is_active(s.state), false)
      and not exists (select from tasker.tasks t where t.task_uuid = p.subject and not t.complete)
      and (tasker.step_uuid(p.subject, 0) = any (v_tasks)
        or not exists (select from tasker.tasks t where t.task_uuid = tasker.step_uuid(p.subject, 0)))
  ), gone as (
    delete from tasker.limit_permits p using judged j
    where p.subject = j.subject and p.rule_id = j.rule_id and (j.held is not true or j.rests)
    returning p.rule_id, p.value, j.held
  ), noted as (
    select tasker.note_keys(array_agg(g.rule_id), array_agg(g.value), 0) from gone g having count(*) > 0
  )
  select count(*) filter (where g.held is not true) into v_ended from gone g left join noted on true;
  if v_ended > 0 then
    v_repaired := jsonb_build_object('permit_of_an_ended_step', v_ended);
  end if;

  delete from tasker.limit_buckets b where b.ctid = any (array(select x.ctid from tasker.limit_buckets x
    -- as if it had never been used
    where x.full_at < tasker.now() - interval '1 minute' limit v_slice for update skip locked));

  -- The holder of a key's lock checks it before its commit.
  select array_agg(k.rule_id), array_agg(k.value) into v_rules, v_values
  from unnest(v_rules, v_values) as k (rule_id, value)
  where pg_try_advisory_xact_lock(tasker.limit_lock(k.rule_id, k.value));
  select array_agg(k.rule_id), array_agg(k.value) into v_rules, v_values
  from unnest(v_rules, v_values) as k (rule_id, value)
  where tasker.free_permits(k.rule_id, k.value) > 0   -- a later statement
    and tasker.has_waiters(k.rule_id, k.value)
    and not exists (select from tasker.limit_notes n where n.rule_id = k.rule_id and n.value = k.value);
  if v_rules is not null then
    perform tasker.note_keys(v_rules, v_values, 0);
    v_repaired := v_repaired || jsonb_build_object('permit_not_granted', cardinality(v_rules));
  end if;
  return jsonb_build_object('repaired', v_repaired)
    || case when v_more then '{"slices": true}'::jsonb else '{}' end;
end
$$;
