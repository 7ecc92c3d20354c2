-- The verdict on each change of a batch, from the steps' rows: locks them ORDER BY workflow_step_uuid in this one pass.
-- The tasks must be locked already; `p_locked` are those that are. The fields of the change come along, so that nothing
-- joins two arrays later (that would be quadratic in the batch). A token grows when a claim ends without its own result
-- (release, reset, loss, operator action, cancel), so whatever still runs under it is refused. The worker is compared too:
-- after a failover that lost a commit two workers may hold the same token.
create or replace function tasker.judge_changes(p_given tasker.given_change[], p_locked uuid[])
returns tasker.judged_change[]
language plpgsql as $$
declare
  v_answer tasker.judged_change[];
begin
select array_agg(q::tasker.judged_change) into v_answer from (
    select s.workflow_step_uuid, s.task_uuid, g.kind,
      case
        when g.token <> s.claim_token or g.worker_uuid <> s.worker_uuid then case s.state when 'cancelled' then 'cancelled' else 'stale' end
        when g.token is not null and tasker.kind_was_accepted(g.kind, s.state) then 'already_accepted'
        when p.path is null then case s.state when 'cancelled' then 'cancelled' else 'stale' end
        when t.complete and not (t.state = 'error' and tasker.kind_reopens(g.kind)) then 'cancelled'
        when tasker.kind_needs_parents(g.kind) and s.unmet > 0 then 'stale'
        when g.graph_version <> t.graph_version then 'replan'
        else 'accepted'
      end,
      s.state, p.path, tasker.path_end(p.path),
      tasker.kind_token(g.kind, s.claim_token, coalesce(g.note ? 'lost', false)),
      tasker.kind_attempts(g.kind, s.attempts),
      s.sort_key + tasker.path_length(p.path), s.unmet, s.template_id, s.ordinal, s.namespace_id, s.name, s.worker_uuid,
      t.priority, g.delay_ms, g.duration_ms, g.result, g.metadata, g.error, g.note
    from unnest(p_given) g
    join tasker.tasks t on t.task_uuid = g.task_uuid and t.task_uuid = any (p_locked)
    join tasker.workflow_steps s on s.workflow_step_uuid = g.step_uuid and s.task_uuid = g.task_uuid
    cross join lateral (select tasker.step_path(s.state, g.kind)) as p (path)
    order by s.workflow_step_uuid
    for no key update of s) q;
  return v_answer;
end
$$;
