-- Counts down the unmet parents of the steps of a batch that wait for other steps of the same batch. They do not become
-- ready by that: their own change moves them. Returns these steps. The caller has locked their rows.
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
