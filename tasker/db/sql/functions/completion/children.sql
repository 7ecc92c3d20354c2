-- True if the dependents of a step do not wait for it: it is done, or its task goes on without it.
create or replace function tasker.step_satisfies(p_state text, p_settled "char") returns boolean
language sql immutable parallel safe as $$
  select p_settled is not null or tasker.step_is_done(p_state)
$$;

-- The children of the steps that these changes complete, or that the task goes on without, and the number
-- of their parents among them (`met`).
-- Children created while the task ran have edges of their own; static ones have the edges of the template,
-- between steps whose identifiers follow from their ordinals. No SET clauses, so that the function is planned
-- with the statement around it.
create or replace function tasker.children_of(p_judged tasker.judged_change[])
returns table (step_uuid uuid, priority int, met int)
language sql stable
as $$
  select k.child, max(k.priority), count(*)::int
  from (
    select tasker.step_uuid(j.task_uuid, te.to_ordinal + 1) as child, j.priority
    from unnest(p_judged) j
    join tasker.template_edges te on te.template_id = j.template_id and te.from_ordinal = j.ordinal
    where tasker.step_satisfies(j.to_state, j.settled)
    union all
    select e.to_step_uuid, j.priority
    from unnest(p_judged) j
    join tasker.dynamic_edges e on e.task_uuid = j.task_uuid and e.from_step_uuid = j.step_uuid
    where tasker.step_satisfies(j.to_state, j.settled)) k
  group by k.child
$$;

-- Counts down the unmet parents of the steps of a batch that wait for other steps of the same batch. They do
-- not become ready by that: their own change moves them. Returns these steps. The caller has locked their
-- rows.
-- Locks: steps. The caller has locked them.
create or replace function tasker.decrement_unmet_of_children(p_judged tasker.judged_change[]) returns uuid[]
language plpgsql as $$
declare
  v_own constant uuid[] := array(select j.step_uuid from unnest(p_judged) j where j.unmet > 0);
begin
  update tasker.workflow_steps s set unmet = s.unmet - k.met
  from tasker.children_of(p_judged) k
  where s.workflow_step_uuid = k.step_uuid and k.step_uuid = any (v_own);
  return v_own;
end
$$;
