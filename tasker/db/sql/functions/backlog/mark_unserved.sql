-- Sets aside unserved backlogged steps: they wait for a worker that may have their handler (tasker.probe_unserved), not
-- for room, and keep their rank. Steps that were refused before keep the time of the first refusal. The caller has
-- called tasker.unserved_keys.
-- Locks: the backlogged steps ORDER BY workflow_step_uuid; skips those that another transaction has locked.
create or replace function tasker.mark_unserved(p_steps uuid[]) returns void
language plpgsql as $$
begin
  with lost as materialized (
    select b.workflow_step_uuid, s.template_id, s.ordinal, s.claim_token from tasker.ready_backlog b
    join tasker.workflow_steps s on s.workflow_step_uuid = b.workflow_step_uuid
    where b.workflow_step_uuid = any (p_steps)
    order by b.workflow_step_uuid for no key update of b skip locked
  ), marked as (
    update tasker.ready_backlog b set unserved = l.template_id || ':' || l.ordinal
    from lost l where b.workflow_step_uuid = l.workflow_step_uuid
  )
  insert into tasker.unserved_steps as u (workflow_step_uuid, claim_token, callable, since)
  select l.workflow_step_uuid, l.claim_token, ts.handler, tasker.now()
  from lost l join tasker.template_steps ts on ts.template_id = l.template_id and ts.ordinal = l.ordinal
  on conflict (workflow_step_uuid) do update set claim_token = excluded.claim_token, callable = excluded.callable,
    since = excluded.since where u.claim_token <> excluded.claim_token;
end
$$;
