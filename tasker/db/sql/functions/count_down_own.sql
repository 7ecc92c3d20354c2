-- Counts down the unmet parents of those steps of a batch that wait for other steps of the same batch. They do not become
-- ready by that: their own change moves them. Answers these steps. Their rows are locked.
create or replace function tasker.count_down_own(p_judged tasker.judged_change[]) returns uuid[]
language plpgsql as $$
declare
  v_own constant uuid[] := array(select j.step_uuid from unnest(p_judged) j where j.unmet > 0);
begin
  update tasker.workflow_steps s set unmet = s.unmet - k.met
  from (select e.to_step_uuid, count(*)::int as met
        from unnest(p_judged) j
        join tasker.workflow_step_edges e on e.task_uuid = j.task_uuid and e.from_step_uuid = j.step_uuid
        where j.to_state in ('complete', 'resolved_manually') and e.to_step_uuid = any (v_own)
        group by e.to_step_uuid) k
  where s.workflow_step_uuid = k.to_step_uuid;
  return v_own;
end
$$;
