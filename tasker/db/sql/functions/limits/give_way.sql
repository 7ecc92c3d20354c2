-- Arranges for the cancel of tasks under limits of tasks that are full: of those that wait (`cancel_new`), or
-- of as many of the oldest running ones as wait (`cancel_running`). The timekeeper cancels each (timer `c`)
-- in a later transaction, because the caller has locks of keys.
create or replace function tasker.give_way(p_rules int[], p_values text[]) returns void
language plpgsql as $$
declare
  v_count int;
begin
  if not exists (select from tasker.limit_rules r
    where r.rule_id = any (p_rules) and r.on_limit <> 'wait') then
    return;
  end if;
  with key as materialized (
    select distinct k.rule_id, k.value, r.on_limit from unnest(p_rules, p_values) as k (rule_id, value)
    join tasker.limit_rules r on r.rule_id = k.rule_id and r.on_limit <> 'wait'
    where tasker.free_permits(k.rule_id, k.value) <= 0
  ), waiting as materialized (
    select k.rule_id, k.value, k.on_limit, w.task_uuid from key k cross join lateral (
      select distinct x.task_uuid from (select y.task_uuid from tasker.limit_waiters y
        where y.rule_id = k.rule_id and y.value = k.value order by y.rank,
          y.workflow_step_uuid limit 1000) x) w
  ), going as (
    select w.task_uuid from waiting w where w.on_limit = 'cancel_new'
    union all
    select p.subject
    from (select w.rule_id, w.value, count(*) as number from waiting w where w.on_limit = 'cancel_running'
      group by w.rule_id, w.value) n
    cross join lateral (select x.subject from tasker.limit_permits x
      where x.rule_id = n.rule_id and x.value = n.value
      order by x.granted_at, x.subject limit n.number) p
  )
  insert into tasker.timers (subject, kind, due_at, task_uuid, token)
  select g.task_uuid, 'c', tasker.now(), g.task_uuid, 0 from going g
  on conflict (subject, kind) do nothing;
  get diagnostics v_count = row_count;
  if v_count > 0 then
    perform pg_notify('tasker_timers', '0');
  end if;
end
$$;
