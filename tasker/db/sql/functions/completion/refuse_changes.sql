-- The verdicts of the changes of a batch that were not accepted: {step: verdict}. Results among them are
-- stored as evidence. By hash join, whatever the caller's settings: all of a large batch may be refused, as
-- that of a worker that lost its lease.
-- Locks: tasks (shared).
create or replace function tasker.refuse_changes(p_args jsonb, p_judged tasker.judged_change[],
  p_now timestamptz) returns jsonb
language plpgsql
set enable_hashjoin to on
set enable_nestloop to off
as $$
declare
  v_verdicts jsonb;
begin
  with refused as materialized (
    select g.step_uuid, g.task_uuid, g.token, g.kind, g.result, g.error, j.from_state, coalesce(j.verdict,
      case when exists (select from tasker.workflow_steps s
             where s.workflow_step_uuid = g.step_uuid and s.task_uuid is not distinct from g.task_uuid)
           then 'busy' else 'stale' end) as verdict   -- stale: no such step, or of another task
    from tasker.requested_changes(p_args) g left join unnest(p_judged) j on j.step_uuid = g.step_uuid
    where j.verdict is distinct from 'accepted'
  ), kept as (
    insert into tasker.refused_results (task_uuid, workflow_step_uuid, claim_token, worker_uuid, verdict,
      detail, created_at)
    select r.task_uuid, r.step_uuid, r.token, (p_args->>'worker')::uuid, r.verdict, jsonb_build_object(
      'kind', r.kind, 'state', r.from_state, 'result', r.result, 'error', r.error), p_now
    from refused r join tasker.tasks t on t.task_uuid = r.task_uuid   -- nothing is stored for deleted tasks
    where r.verdict in ('stale', 'cancelled') and tasker.kind_reports(r.kind)
    for key share of t
  )
  select jsonb_object_agg(r.step_uuid, r.verdict) into v_verdicts from refused r;
  return v_verdicts;
end
$$;
