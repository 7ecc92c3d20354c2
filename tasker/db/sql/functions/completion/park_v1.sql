-- The `queued` result path: stores results and parks the steps for an orchestrator, which ends their leases.
-- Of two claims of one step the newer one counts.
-- Locks: steps, tasks (shared, skips). Only rows in progress under the given token of the given worker
-- change. cpu_tuple_cost: as in advance_v1, so that each row of the batch is looked up.
-- p_args: {worker, items: [{s, t, kind ok|retry|fail, k, w (the caller), d, ms, r, m, e, ev}]}.
-- Returns: {verdicts, parked: [{step, task, token}]}; the caller must send a message to
--   orchestration_step_results for each parked step.
create or replace function tasker.park_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set cpu_tuple_cost to 10
set jit to off
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_worker constant uuid := (p_args->>'worker')::uuid;
  v_steps constant uuid[] := array(select (i->>'s')::uuid from jsonb_array_elements(p_args->'items') i);
  v_verdicts jsonb;
  v_parked jsonb;
  v_moved uuid[];
begin
  perform tasker.require_read_committed();
  perform from tasker.workflow_steps s
  where s.workflow_step_uuid = any (v_steps)
  order by s.workflow_step_uuid for no key update;

  with given as (
    select distinct on (i.s) i.*, tasker.parking_path(i.kind) as path
    from jsonb_to_recordset(p_args->'items') as i (s uuid, t uuid, kind text, k bigint,
      d numeric, ms numeric, r jsonb, m jsonb, e jsonb, w uuid, ev jsonb)
    order by i.s, i.k desc nulls last
  ), moved as (
    update tasker.workflow_steps s set updated_at = v_now, deadline_at = null, hinted_at = v_now,
      sort_key = s.sort_key + tasker.path_length(g.path), state = tasker.path_end(g.path)
    from given g where s.workflow_step_uuid = g.s and s.state = 'in_progress'
      and s.claim_token = g.k and s.worker_uuid = coalesce(g.w, v_worker)
    returning s.*, g.kind, g.path, g.d, g.ms, g.r, g.m, g.e, g.ev
  ), stored as (
    insert into tasker.step_results (task_uuid, ordinal, workflow_step_uuid, name, result, metadata,
      bytes, created_at)
    select m.task_uuid, m.ordinal, m.workflow_step_uuid, m.name, m.r, m.m, pg_column_size(m.r), v_now
    from moved m where tasker.kind_stores_result(m.kind) and m.r is not null
    on conflict (task_uuid, ordinal, workflow_step_uuid) do update
      set result = excluded.result, metadata = excluded.metadata, bytes = excluded.bytes,
        created_at = excluded.created_at
  ), failed as (
    insert into tasker.step_failures (task_uuid, workflow_step_uuid, attempt, claim_token, worker_uuid,
      error, created_at)
    select m.task_uuid, m.workflow_step_uuid, m.attempts, m.claim_token, v_worker, m.e, v_now from moved m
    where tasker.kind_stores_failure(m.kind) and m.e is not null
  ), published as (   -- by the write that accepts the result (write_events)
    insert into tasker.parked_events (workflow_step_uuid, task_uuid, claim_token, events)
    select m.workflow_step_uuid, m.task_uuid, m.claim_token, m.ev from moved m where m.ev is not null
    on conflict (workflow_step_uuid) do update set claim_token = excluded.claim_token,
      events = excluded.events
  ), logged as (
    insert into tasker.step_moves (workflow_step_uuid, path, sort_key, attempt, claim_token, worker_uuid,
      execution_time_ms, metadata, created_at)
    select m.workflow_step_uuid, m.path, m.sort_key, m.attempts, m.claim_token, v_worker,
      tasker.clamped_ms(m.ms), jsonb_strip_nulls(jsonb_build_object('kind', m.kind, 'delay_ms', m.d)),
      v_now from moved m
  )
  select jsonb_agg(jsonb_build_object('step', m.workflow_step_uuid, 'task', m.task_uuid,
        'token', m.claim_token)),
    array_agg(m.workflow_step_uuid) into v_parked, v_moved
  from moved m;
  if cardinality(v_moved) = cardinality(v_steps) then
    return jsonb_build_object('parked', v_parked);
  end if;

  select jsonb_object_agg(i->>'s', case   -- without a worker: the retry is enqueued, under the same token
    when s.claim_token = (i->>'k')::bigint
      and coalesce(s.worker_uuid = coalesce((i->>'w')::uuid, v_worker), true) then 'already_accepted'
    when s.state = 'cancelled' then 'cancelled' else 'stale' end) into v_verdicts
  from jsonb_array_elements(p_args->'items') i
  left join tasker.workflow_steps s on s.workflow_step_uuid = (i->>'s')::uuid
  where (i->>'s')::uuid <> all (coalesce(v_moved, '{}'));

  insert into tasker.refused_results (task_uuid, workflow_step_uuid, claim_token, worker_uuid, verdict,
    detail, created_at)
  select g.t, g.s, g.k, v_worker, v_verdicts->>g.s::text, jsonb_strip_nulls(jsonb_build_object('kind', g.kind,
    'result', g.r, 'error', g.e)), v_now
  from jsonb_to_recordset(p_args->'items') as g (s uuid, t uuid, kind text, k bigint, r jsonb, e jsonb)
  -- nothing is stored for deleted tasks, and a deletion in progress is not waited for
  join tasker.tasks t on t.task_uuid = g.t
  where v_verdicts->>g.s::text in ('stale', 'cancelled')
  for key share of t skip locked;
  return jsonb_strip_nulls(jsonb_build_object('verdicts', v_verdicts, 'parked', v_parked));
end
$$;
