-- The one function that moves the steps of tasks: stores results, ends attempts, counts down children, hands ready
-- steps to the caller, enqueues or holds the rest, evaluates the tasks, writes the history. One transaction.
--
-- Locks: the tasks of the batch ORDER BY task_uuid, then the steps of the batch ORDER BY workflow_step_uuid; edges,
-- children and counters are read in later statements (a statement keeps its old snapshot while it waits for a lock).
-- Children need no lock: a pending step changes only under its task's lock. The counters of the queues come last.
--
-- p_args: worker, wait (false: a task that others hold is answered `busy`), slots, namespace_ids (that the caller
--   serves), unserved ("template:ordinal" that it does not), window, timeout_ms, grace_ms, on_blocked, note, repairs
--   (the kind of repair that the accepted items are; counted with them),
--   items: [{s step, t task, kind, k token|null, w the worker that had this token (the caller, for what ends a claim),
--            d delay ms, ms duration, r result, m metadata, e error, n note, x [new steps], gv graph version}]
-- Answer: verdicts {step: verdict} of what was not accepted, claims [...], send [...], finished {task: state},
-- waiters {task: who is to be told of its end, behind the commit (tell_waiters_v1)}.
create or replace function tasker.advance_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_worker constant uuid := (p_args->>'worker')::uuid;
  v_century constant bigint := 3155760000000;   -- milliseconds: no delay or time-out is longer (tasker.ms)
  v_given tasker.given_change[];
  v_locked uuid[];
  v_judged tasker.judged_change[];
  v_ready tasker.ready_step[];
  v_placed tasker.placed_step[];
  v_verdicts jsonb;
  v_ended jsonb;
  v_claims jsonb;
  v_send jsonb;
  v_change record;
  v_free int := 0;
  v_own uuid[] := '{}';
begin
  perform tasker.require_read_committed();

  select array_agg(q::tasker.given_change) into v_given from (
    select distinct on (i.s) i.s, i.t, i.kind, i.k, tasker.clamped_ms(i.d), tasker.clamped_ms(i.ms), i.r, i.m, i.e, i.n, i.x, i.gv,
      coalesce(i.w, case when i.k is not null and tasker.kind_ends_claim(i.kind) then v_worker end)
    from jsonb_to_recordset(p_args->'items') as i (s uuid, t uuid, kind text, k bigint, d numeric, ms numeric, r jsonb,
      m jsonb, e jsonb, n jsonb, x jsonb, gv int, w uuid)
    order by i.s, i.k desc nulls last) q;   -- of two claims of one step the newer one counts

  if coalesce((p_args->>'wait')::boolean, true) then
    select array_agg(q.task_uuid) into v_locked from (
      select t.task_uuid from tasker.tasks t
      where t.task_uuid = any (array(select g.task_uuid from unnest(v_given) g))
      order by t.task_uuid for no key update of t) q;
  else
    select array_agg(q.task_uuid) into v_locked from (
      select t.task_uuid from tasker.tasks t
      where t.task_uuid = any (array(select g.task_uuid from unnest(v_given) g))
      order by t.task_uuid for no key update of t skip locked) q;
  end if;

  v_judged := tasker.judge_changes(v_given, v_locked);

  if coalesce(cardinality(v_judged), 0) < cardinality(v_given)
     or exists (select from unnest(v_judged) j where j.verdict <> 'accepted') then
    select jsonb_object_agg(g.step_uuid, coalesce(j.verdict,
      case when exists (select from tasker.workflow_steps s
             where s.workflow_step_uuid = g.step_uuid and s.task_uuid = g.task_uuid)
           then 'busy' else 'stale' end)) into v_verdicts   -- stale: no such step, or of another task
    from unnest(v_given) g left join unnest(v_judged) j on j.step_uuid = g.step_uuid
    where j.verdict is distinct from 'accepted';

    insert into tasker.refused_results (task_uuid, workflow_step_uuid, claim_token, worker_uuid, verdict, detail, created_at)
    select g.task_uuid, g.step_uuid, g.token, v_worker, v_verdicts->>g.step_uuid::text, jsonb_build_object(
      'kind', g.kind, 'state', j.from_state, 'result', g.result, 'error', g.error), v_now
    from unnest(v_given) g left join unnest(v_judged) j on j.step_uuid = g.step_uuid   -- rare, so the join is cheap enough
    where v_verdicts->>g.step_uuid::text in ('stale', 'cancelled') and tasker.kind_reports(g.kind);

    v_judged := array(select j from unnest(v_judged) j where j.verdict = 'accepted');
    if cardinality(v_judged) = 0 then
      return jsonb_build_object('verdicts', v_verdicts);
    end if;
  end if;

  if p_args @? '$.items[*].gv' then   -- a decision that creates nothing changes the graph too: it is open no more
    for v_change in
      select g.task_uuid, coalesce(g.expand, '[]') as expand
      from unnest(v_given) g join unnest(v_judged) j on j.step_uuid = g.step_uuid
      where g.graph_version is not null
    loop
      v_free := v_free + tasker.expand_step(v_change.task_uuid, v_change.expand, v_now);
    end loop;
  end if;

  if p_args @? '$.items[*].n.unserved' then
    perform tasker.note_unserved(v_judged, v_now);
  end if;

  insert into tasker.step_results (task_uuid, ordinal, workflow_step_uuid, name, result, metadata, created_at)
  select j.task_uuid, j.ordinal, j.step_uuid, j.name, j.result, j.metadata, v_now
  from unnest(v_judged) j where j.result is not null and tasker.kind_stores_result(j.kind)
  on conflict (task_uuid, ordinal, workflow_step_uuid) do update
    set result = excluded.result, metadata = excluded.metadata, created_at = excluded.created_at;

  if exists (select from unnest(v_judged) j where j.from_state = 'enqueued_for_orchestration' and tasker.kind_drops_result(j.kind)) then
    delete from tasker.step_results r using unnest(v_judged) j   -- parked, and not accepted after all
    where r.task_uuid = j.task_uuid and r.ordinal = j.ordinal and r.workflow_step_uuid = j.step_uuid
      and j.from_state = 'enqueued_for_orchestration' and tasker.kind_drops_result(j.kind);
  end if;

  if p_args @? '$.items[*].e' then
    insert into tasker.step_failures (task_uuid, workflow_step_uuid, attempt, claim_token, worker_uuid, error, created_at)
    select j.task_uuid, j.step_uuid, j.attempt, j.token, j.worker_uuid, j.error, v_now
    from unnest(v_judged) j where j.error is not null and tasker.kind_stores_failure(j.kind);
  end if;

  -- steps of the batch that wait for other steps of it: they are moved by their own change, and counted down here
  if exists (select from unnest(v_judged) j where j.unmet > 0) then
    v_own := tasker.count_down_own(v_judged);
  end if;

  -- children that lose parents (two parents in one batch count twice), then steps of the batch that are to run again
  select array_agg(q::tasker.ready_step) into v_ready from (
    select c.workflow_step_uuid, c.task_uuid, c.namespace_id, c.template_id, c.ordinal, c.name, k.priority, k.met,
      c.state = 'pending' and c.unmet = k.met, 'pending', c.state, c.claim_token, c.attempts, c.sort_key, false
    from tasker.children_of(v_judged) k join tasker.workflow_steps c on c.workflow_step_uuid = k.step_uuid
    where c.workflow_step_uuid <> all (v_own)
    union all
    select j.step_uuid, j.task_uuid, j.namespace_id, j.template_id, j.ordinal, j.name, j.priority, 0, j.unmet = 0,
      j.path, j.from_state, j.token, j.attempt, j.sort_key - tasker.path_length(j.path), true
    from unnest(v_judged) j where tasker.step_is_to_run(j.to_state)
    union all   -- steps that this write created and that wait for nothing
    select c.workflow_step_uuid, c.task_uuid, c.namespace_id, c.template_id, c.ordinal, c.name, t.priority, 0, true,
      'pending', c.state, c.claim_token, c.attempts, c.sort_key, false
    from tasker.tasks t join tasker.workflow_steps c on c.task_uuid = t.task_uuid
    where t.task_uuid = any (v_locked) and v_free > 0 and c.state = 'pending' and c.unmet = 0 and c.created_at = v_now
      and t.task_uuid in (select g.task_uuid from unnest(v_given) g where g.expand is not null)
      and not exists (select from tasker.ready_backlog b where b.workflow_step_uuid = c.workflow_step_uuid)
      and not exists (select from unnest(v_judged) j where j.step_uuid = c.workflow_step_uuid)) q;

  if v_ready is not null then
    v_placed := tasker.place_ready(v_ready, coalesce((p_args->>'slots')::int, 0),
      array(select jsonb_array_elements_text(p_args->'namespace_ids')::int),
      array(select jsonb_array_elements_text(p_args->'unserved')), coalesce((p_args->>'window')::int, 2000),
      coalesce((p_args->>'timeout_ms')::bigint, 30000));
  end if;

  -- steps of the batch that ended or wait
  update tasker.workflow_steps s set state = j.to_state, claim_token = j.token, attempts = j.attempt, sort_key = j.sort_key,
    deadline_at = null, due_at = case j.to_state when 'waiting_for_retry' then v_now + tasker.ms(j.delay_ms) end,
    updated_at = v_now
  from unnest(v_judged) j
  where s.workflow_step_uuid = j.step_uuid and not tasker.step_is_to_run(j.to_state);

  if v_placed is not null then
  -- children and steps that run again
  update tasker.workflow_steps s set
    unmet = s.unmet - p.met,
    state = coalesce(tasker.place_state(p.place), case when p.moved then 'pending' else s.state end),
    claim_token = tasker.place_token(p.place, p.token),
    attempts = tasker.place_attempts(p.place, p.attempt),
    sort_key = s.sort_key + tasker.path_length(p.path),
    worker_uuid = case p.place when 'claim' then v_worker else case when p.moved then null else s.worker_uuid end end,
    started_at = case p.place when 'claim' then v_now else case when p.moved then null else s.started_at end end,
    deadline_at = case p.place when 'claim' then v_now + (least(p.timeout_ms, v_century)
      + least(coalesce((p_args->>'grace_ms')::bigint, 10000), v_century)) * interval '1 millisecond' else case when p.moved then null else s.deadline_at end end,
    due_at = case when p.moved then null else s.due_at end,
    hinted_at = case p.place when 'enqueue' then v_now else s.hinted_at end,
    hint_count = case p.place when 'enqueue' then 1 else s.hint_count end,
    updated_at = v_now
  from unnest(v_placed) p where s.workflow_step_uuid = p.step_uuid;
  end if;

  insert into tasker.step_moves (workflow_step_uuid, path, sort_key, attempt, claim_token, worker_uuid,
    execution_time_ms, metadata, created_at)
  select j.step_uuid, tasker.path_code(j.path), j.sort_key, j.attempt, j.token, coalesce(j.worker_uuid, v_worker),
    j.duration_ms, j.note, v_now
  from unnest(v_judged) j where not tasker.step_is_to_run(j.to_state)
  union all
  select p.step_uuid, tasker.path_code(p.path), p.sort_key + tasker.path_length(p.path),
    tasker.place_attempts(p.place, p.attempt), tasker.place_token(p.place, p.token),
    v_worker, null, case when p.moved then (select j.note from unnest(v_judged) j where j.step_uuid = p.step_uuid) end,
    v_now
  from unnest(v_placed) p where p.path like '%>%';

  v_ended := tasker.settle_tasks(v_judged, v_placed, p_args, v_now);

  if v_placed is not null then
  select jsonb_agg(jsonb_build_object('namespace', ns.name, 'step', p.step_uuid, 'task', p.task_uuid)
      order by p.priority desc, p.held_rank, p.step_uuid) into v_send
  from unnest(v_placed) p join tasker.task_namespaces ns on ns.namespace_id = p.namespace_id where p.place = 'enqueue';

  select jsonb_agg(jsonb_build_object('step', p.step_uuid, 'task', p.task_uuid, 'name', p.name,
      'template', p.template_id, 'ordinal', p.ordinal, 'token', tasker.place_token(p.place, p.token),
      'attempt', tasker.place_attempts(p.place, p.attempt),
      'priority', p.priority,
      'inputs', (select i.inputs from tasker.step_inputs i where i.workflow_step_uuid = p.step_uuid),
      'checkpoint', (select c.checkpoint from tasker.step_checkpoints c where c.workflow_step_uuid = p.step_uuid),
      'apart', case when p.attempt > 1 then tasker.runs_apart(p.task_uuid, p.step_uuid, p.attempt) end)
      order by p.priority desc, p.step_uuid) into v_claims
  from unnest(v_placed) p where p.place = 'claim';
  end if;

  if p_args ? 'repairs' then
    perform tasker.repaired_v1(jsonb_build_object(p_args->>'repairs', cardinality(v_judged)));
  end if;
  return jsonb_build_object('verdicts', v_verdicts, 'claims', v_claims, 'send', v_send) || coalesce(v_ended, '{}');
end
$$;
