-- The steps of a batch that cannot be changed without waiting: the row of the step, or that of a child that
-- it would count down, is locked by a transaction that takes no lock of the task (an operator's SQL session).
-- The tasks must be locked already; `p_locked` are those that are.
-- Locks: steps (skips). All others of these rows.
create or replace function tasker.locked_steps(p_args jsonb, p_locked uuid[]) returns uuid[]
language plpgsql as $$
declare
  v_kept uuid[];
begin
  with given as materialized (
    select s.workflow_step_uuid as step, s.task_uuid, s.template_id, s.ordinal,
      tasker.step_satisfies(tasker.path_end(tasker.step_path(s.state, g.kind)), g.settled) as ends_well
    from tasker.requested_changes(p_args) g join tasker.workflow_steps s on s.workflow_step_uuid = g.step_uuid
    where (g.task_uuid in (select unnest(p_locked))) is true
  ), needed as materialized (
    select g.step, g.step as row from given g
    union all
    select g.step, tasker.step_uuid(g.task_uuid, e.to_ordinal + 1) from given g
    join tasker.template_edges e on e.template_id = g.template_id and e.from_ordinal = g.ordinal
    where g.ends_well
    union all
    select g.step, e.to_step_uuid from given g
    join tasker.dynamic_edges e on e.task_uuid = g.task_uuid and e.from_step_uuid = g.step where g.ends_well
  ), had as materialized (
    select s.workflow_step_uuid from tasker.workflow_steps s
    where s.workflow_step_uuid = any (array(select n.row from needed n))
    order by s.workflow_step_uuid for no key update skip locked
  )
  select coalesce(array_agg(distinct n.step), '{}') into v_kept from needed n
  where (n.row in (select h.workflow_step_uuid from had h)) is not true   -- hashed, not joined
    -- false for a branch that was not taken
    and exists (select from tasker.workflow_steps s where s.workflow_step_uuid = n.row);
  return v_kept;
end
$$;
