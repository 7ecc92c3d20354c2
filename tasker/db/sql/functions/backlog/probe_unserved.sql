-- Among the steps set aside, lets the first by rank of each template step wait for room again if a live
-- worker may have its handler; the others follow it (tasker.apply_probe_results). So a new worker without the
-- handler takes only one such step, however many wait. Wakes sleeping workers of these namespaces. Returns
-- the number of namespaces in which it found such steps.
-- Locks: backlog (skips).
create or replace function tasker.probe_unserved(p_namespaces int[]) returns int
language plpgsql
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_refused text[];
  v_found int[];
begin
  if not exists (select from unnest(p_namespaces) as n (id) cross join lateral (
      select from tasker.ready_backlog b
      where b.namespace_id = n.id and not b.paused and b.unserved is not null limit 1) a) then
    return 0;   -- usual case, and every starting process calls this: the rest is not even planned
  end if;
  v_refused := tasker.unserved_by_all_workers(p_namespaces);
  with recursive key as (   -- from key to key: one index probe for each key, not for each step
    select n.id, (select b.unserved from tasker.ready_backlog b
      where b.namespace_id = n.id and not b.paused and b.unserved is not null
      order by b.unserved limit 1) as key
    from unnest(p_namespaces) as n (id)
    union all
    select k.id, (select b.unserved from tasker.ready_backlog b
      where b.namespace_id = k.id and not b.paused and b.unserved > k.key order by b.unserved limit 1)
    from key k where k.key is not null
  ), probe as materialized (
    select f.workflow_step_uuid from key k cross join lateral (
      select b.workflow_step_uuid from tasker.ready_backlog b
      where b.namespace_id = k.id and not b.paused and b.unserved = k.key
      order by b.rank limit 1 for no key update skip locked) f
    where k.key <> all (v_refused)
  ), freed as (
    update tasker.ready_backlog b set unserved = null from probe p
    where b.workflow_step_uuid = p.workflow_step_uuid
    returning b.namespace_id
  )
  select array_agg(distinct f.namespace_id) into v_found from freed f;
  perform pg_notify('tasker_work', '@' || ns.name) from tasker.task_namespaces ns
  where ns.namespace_id = any (v_found);
  return coalesce(cardinality(v_found), 0);
end
$$;

-- After a release of backlogged steps, lets twice as many of the steps that were set aside for the same
-- handler wait for room again: all of them follow soon, unless it turns out that no worker has the handler
-- (`p_unserved`).
-- Locks: backlog (skips).
create or replace function tasker.apply_probe_results(p_released uuid[], p_unserved text[]) returns void
language plpgsql as $$
begin
  with next as materialized (
    select f.workflow_step_uuid from (
      select s.namespace_id, s.template_id || ':' || s.ordinal as key, count(*) as released
      from tasker.workflow_steps s
      where s.workflow_step_uuid = any (p_released) group by 1, 2) k
    cross join lateral (
      select b.workflow_step_uuid from tasker.ready_backlog b
      where b.namespace_id = k.namespace_id and not b.paused and b.unserved = k.key
      order by b.rank limit 2 * k.released for no key update skip locked) f
    where k.key <> all (p_unserved)
  )
  update tasker.ready_backlog b set unserved = null from next x
  where b.workflow_step_uuid = x.workflow_step_uuid;
end
$$;
