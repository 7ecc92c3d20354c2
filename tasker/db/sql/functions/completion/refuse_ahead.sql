-- Refuses changes of the kind `ahead` (steps that ran before their parents' results were stored) where the
-- usual path could have had another outcome: the step then becomes ready by this write, like any other. A
-- step is accepted if all its unmet parents end well by accepted changes of this batch, it has no gates, and
-- it is not paused. Its first token means that it was never claimed; `judge_changes` has checked that it is
-- pending.
-- If it creates steps, they must be planned for the graph as the expansions before it leave it, in the order
-- of the steps, as advance_v1 makes them. A refused step may be a parent of another one: this is repeated.
create or replace function tasker.refuse_ahead(p_args jsonb, p_answer tasker.judgement)
returns tasker.judgement
language plpgsql
set enable_hashjoin to on
as $$
declare
  v_changes tasker.judged_change[] := p_answer.changes;
  v_paused constant uuid[] := case when exists (select from tasker.pauses)
    then tasker.paused_of(array(select c.step_uuid from unnest(v_changes) c)) else '{}' end;
  v_refused uuid[];
begin
  loop
    v_refused := array(
      select a.step_uuid from (
        select j.*, g.graph_version as given_version, t.graph_version
          + count(g.graph_version) over (partition by j.task_uuid order by j.step_uuid
            rows between unbounded preceding and 1 preceding) as graph_version
        from unnest(v_changes) j join tasker.requested_changes(p_args) g on g.step_uuid = j.step_uuid
        join tasker.tasks t on t.task_uuid = j.task_uuid
        where j.verdict = 'accepted') a
      join tasker.template_steps ts on ts.template_id = a.template_id and ts.ordinal = a.ordinal
      left join tasker.children_of(array(select j from unnest(v_changes) j where j.verdict = 'accepted')) k
        on k.step_uuid = a.step_uuid
      where tasker.kind_runs_ahead(a.kind) and (k.met is distinct from a.unmet or a.token <> 1
        or a.given_version <> a.graph_version or ts.gates <> 0 or a.step_uuid = any (v_paused)));
    exit when v_refused = '{}';
    for i in 1 .. cardinality(v_changes) loop
      if v_changes[i].step_uuid = any (v_refused) then
        v_changes[i].verdict := 'stale';
      end if;
    end loop;
    p_answer.refused := true;
  end loop;
  p_answer.changes := v_changes;
  return p_answer;
end
$$;
