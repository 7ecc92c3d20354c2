-- After a release of backlogged steps, lets twice as many of the steps that were set aside for the same handler wait
-- for room again: all of them follow soon, unless it turns out that no worker has the handler (`p_unserved`).
-- Locks: backlogged steps that no other transaction has locked.
create or replace function tasker.apply_probe_results(p_released uuid[], p_unserved text[]) returns void
language plpgsql as $$
begin
  with next as materialized (
    select f.workflow_step_uuid from (
      select s.namespace_id, s.template_id || ':' || s.ordinal as key, count(*) as released from tasker.workflow_steps s
      where s.workflow_step_uuid = any (p_released) group by 1, 2) k
    cross join lateral (
      select b.workflow_step_uuid from tasker.ready_backlog b
      where b.namespace_id = k.namespace_id and not b.paused and b.unserved = k.key
      order by b.rank limit 2 * k.released for no key update skip locked) f
    where k.key <> all (p_unserved)
  )
  update tasker.ready_backlog b set unserved = null from next x where b.workflow_step_uuid = x.workflow_step_uuid;
end
$$;
