-- The one function that moves the steps of tasks: stores results, ends attempts, counts down children, hands
-- ready steps off to the caller, enqueues or backlogs the rest, evaluates the tasks, writes the history. One
-- transaction.
--
-- cpu_tuple_cost: plans are made while tables are small and kept while they grow. Comparing each row of the
--   batch is priced high, so that each row of it is looked up by index, whatever the statistics say.
--
-- Locks: tasks, steps, pauses (shared), backlog, counters, keys of limits (advisory), then as grant_permits.
--   Edges, children and counters are read in later statements (a statement keeps its old snapshot while it
--   waits for a lock). Children need no lock: a pending step changes only under its task's lock.
--
-- p_args: worker, wait (false: an item of a task that another transaction has locked gets the verdict
--   `busy`), lock_ms (maximum wait for one lock; with `wait` false, items whose step or child is locked are
--   `busy`, too), slots, namespace_ids (that the caller serves), unserved ("template:ordinal" that it does
--   not serve), window, timeout_ms, grace_ms, on_blocked, note, dead_letters (false: no dead letters for
--   tasks that fail), repairs (the kind of repair that the accepted items are; counted with them), events
--   (true: steps of the items may publish events; other writes skip the look-up), grants (false: permits
--   that ended are noted for the next process, as the caller may not wait for keys or grants permits
--   itself), atomic (true: the items are one plan: all are accepted, or none), snoozes (true: handlers of
--   items asked to be called again later, `sn`: how often they may), items: [{s step, t task, kind, k
--   token|null, w the worker that had this token (the caller, for items that end a claim), st how the task
--   goes on after a failure (workflow_steps.settled), d delay ms, ms duration, r result, or the state of a
--   handler (store_handler_state), m metadata, or the wait of a handler (begin_waits_of_handlers), e
--   error, n note, x [new steps], gv graph version, ev the worker's part of its events (write_events)}]
-- Returns: verdicts {step: verdict} of items that were not accepted, claims [...], send [{namespace, step,
--   task}: messages; without a step: only the workers of the namespace are to be woken], finished {task:
--   state} and their time, at, begins_in_ms: time until the first step begins that became ready and waits for
--   its time, or ends its wait; 0 if child tasks are to be started or counted; waiters {task: waiter to
--   notify of its end after the commit (notify_waiters_v1)}.
create or replace function tasker.advance_v1(p_args jsonb) returns jsonb
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
  v_window constant int not null := (p_args->>'window')::int;
  v_timeout_ms constant bigint not null := tasker.clamped_ms((p_args->>'timeout_ms')::numeric);
  v_grace_ms constant bigint not null := tasker.clamped_ms((p_args->>'grace_ms')::numeric);
  v_tasks constant uuid[] := array(select (i->>'t')::uuid from jsonb_array_elements(p_args->'items') i);
  v_locked uuid[];
  v_all tasker.judgement;
  v_judged tasker.judged_change[];
  v_ready tasker.ready_step[];
  v_placed tasker.placed_step[];
  v_verdicts jsonb;
  v_ended jsonb;
  v_claims jsonb;
  v_send jsonb;
  v_wake jsonb;
  v_held boolean;
  v_suspends boolean;
  v_begins timestamptz;
  v_notes jsonb;   -- by step
  v_change record;
  v_grown uuid[] := '{}';
  v_free int := 0;
  v_own uuid[] := '{}';
  v_inputs jsonb;
  v_granted jsonb;
begin
  perform tasker.require_read_committed();
  if p_args ? 'lock_ms' then
    perform set_config('lock_timeout', greatest((p_args->>'lock_ms')::int, 1)::text, true);
  end if;

  if p_args ? 'snoozes' then
    p_args := tasker.limit_snoozes(p_args);
  end if;
  v_ended := tasker.advance_simple(p_args, v_now);   -- the most frequent latency-critical write
  if v_ended is not null then
    return v_ended;
  end if;

  if coalesce((p_args->>'wait')::boolean, true) then
    select array_agg(q.task_uuid) into v_locked from (
      select t.task_uuid from tasker.tasks t
      where t.task_uuid = any (v_tasks)
      order by t.task_uuid for no key update of t) q;
  else
    select array_agg(q.task_uuid) into v_locked from (
      select t.task_uuid from tasker.tasks t
      where t.task_uuid = any (v_tasks)
      order by t.task_uuid for no key update of t skip locked) q;
  end if;

  v_all := tasker.judge_changes(p_args, v_locked);
  v_judged := v_all.changes;
  if p_args ? 'atomic' and v_all.refused then   -- a plan is valid as a whole
    for v_nth in 1..cardinality(v_judged) loop
      if v_judged[v_nth].verdict = 'accepted' then
        v_judged[v_nth].verdict := 'replan';
      end if;
    end loop;
  end if;

  if coalesce(cardinality(v_judged), 0) < cardinality(v_tasks) or v_all.refused then
    v_verdicts := tasker.refuse_changes(p_args, v_judged, v_now);
    v_judged := array(select j from unnest(v_judged) j where j.verdict = 'accepted');
    if cardinality(v_judged) = 0 then
      return jsonb_build_object('verdicts', v_verdicts);
    end if;
  end if;

  -- also for a decision that creates nothing: it is no longer open, which changes the graph
  if v_all.grows then
    for v_change in
      select g.task_uuid, coalesce(g.expand, '[]') as expand
      from tasker.requested_changes(p_args) g join unnest(v_judged) j on j.step_uuid = g.step_uuid
      where g.graph_version is not null
      order by g.step_uuid   -- as refuse_ahead counts them
    loop
      v_free := v_free + tasker.expand_step(v_change.task_uuid, v_change.expand, v_now);
      v_grown := v_grown || v_change.task_uuid;
    end loop;
  end if;

  if v_all.unserved then
    perform tasker.record_unreadable_templates(v_judged, v_now);
  end if;

  if v_all.drops then
    delete from tasker.step_results r using unnest(v_judged) j   -- parked, and not accepted in the end
    where r.task_uuid = j.task_uuid and r.ordinal = j.ordinal and r.workflow_step_uuid = j.step_uuid
      and j.from_state = 'enqueued_for_orchestration' and tasker.kind_drops_result(j.kind);
  end if;

  if v_all.fails then
    insert into tasker.step_failures (task_uuid, workflow_step_uuid, attempt, claim_token, worker_uuid,
      error, created_at)
    select j.task_uuid, j.step_uuid, j.attempt, j.token, j.worker_uuid, j.error, v_now
    from unnest(v_judged) j where j.error is not null and tasker.kind_stores_failure(j.kind);
  end if;

  if v_all.fails or p_args ? 'events' then
    perform tasker.write_events(p_args, v_judged, v_now);
  end if;

  if v_all.keeps_state then
    perform tasker.store_handler_state(v_judged, v_now);
  end if;

  -- Steps of the batch that wait for other steps of it: their own change moves them, and they are counted
  -- down here.
  if v_all.waits then
    v_own := tasker.decrement_unmet_of_children(v_judged);
  end if;

  -- Children that lose parents (two parents in one batch count twice).
  select array_agg(row(c.workflow_step_uuid, c.task_uuid, c.namespace_id, c.template_id, c.ordinal, c.name,
    k.priority, k.met, c.state = 'pending' and c.unmet = k.met, tasker.path_code('pending'), c.state,
    c.claim_token, c.attempts, c.sort_key, false)::tasker.ready_step) into v_ready
  from tasker.children_of(v_judged) k join tasker.workflow_steps c on c.workflow_step_uuid = k.step_uuid
  where c.workflow_step_uuid <> all (v_own);

  if v_all.runs then   -- steps of the batch that are to run again
    v_ready := v_ready
      || array(select row(j.step_uuid, j.task_uuid, j.namespace_id, j.template_id, j.ordinal, j.name,
      j.priority, 0, j.unmet = 0, j.path, case when tasker.is_suspended(j.from_state, j.worker_uuid)
        then 'waiting_for_retry' else j.from_state end,   -- a resumed step is placed as a retry is
      j.token, j.attempt,
      j.sort_key - tasker.path_length(j.path), true)::tasker.ready_step
      from unnest(v_judged) j where tasker.step_is_to_run(j.to_state));
    select jsonb_object_agg(j.step_uuid, j.note) into v_notes from unnest(v_judged) j
    where j.note is not null;
  end if;
  if v_free > 0 then   -- steps created by this write that wait for nothing
    v_ready := v_ready
      || array(select row(c.workflow_step_uuid, c.task_uuid, c.namespace_id, c.template_id, c.ordinal, c.name,
      t.priority, 0, true, tasker.path_code('pending'), c.state, c.claim_token, c.attempts, c.sort_key,
      false)::tasker.ready_step
      from tasker.tasks t join tasker.workflow_steps c on c.task_uuid = t.task_uuid
      where t.task_uuid = any (v_grown) and c.state = 'pending' and c.unmet = 0 and c.created_at = v_now
        and not exists (select from tasker.ready_backlog b where b.workflow_step_uuid = c.workflow_step_uuid)
        and not exists (select from tasker.timers m where m.subject = c.workflow_step_uuid)
        and not exists (select from tasker.limit_waiters w where w.workflow_step_uuid = c.workflow_step_uuid)
        and not exists (select from unnest(v_judged) j where j.step_uuid = c.workflow_step_uuid));
  end if;

  if v_ready is not null then
    v_placed := tasker.place_ready(v_ready, coalesce((p_args->>'slots')::int, 0),
      array(select jsonb_array_elements_text(p_args->'namespace_ids')::int),
      array(select jsonb_array_elements_text(p_args->'unserved')), v_window, v_timeout_ms, v_judged);
  end if;

  with stored as (
    insert into tasker.step_results (task_uuid, ordinal, workflow_step_uuid, name, result, metadata,
      bytes, created_at)
    select j.task_uuid, j.ordinal, j.step_uuid, j.name, j.result, j.metadata, pg_column_size(j.result), v_now
    from unnest(v_judged) j where j.result is not null and tasker.kind_stores_result(j.kind)
    on conflict (task_uuid, ordinal, workflow_step_uuid) do update
      set result = excluded.result, metadata = excluded.metadata, bytes = excluded.bytes,
        created_at = excluded.created_at
  ), moved as (
    update tasker.workflow_steps s set
      unmet = s.unmet - c.met, state = coalesce(c.state, s.state), claim_token = c.token,
      attempts = c.attempt, sort_key = s.sort_key + tasker.path_length(c.path),
      worker_uuid = case when c.claimed then v_worker when c.leaves then null else s.worker_uuid end,
      started_at = case when c.claimed then v_now when c.leaves then null else s.started_at end,
      deadline_at = case when c.ends then null
        when c.claimed then tasker.deadline(v_now, c.timeout_ms, v_grace_ms)
        when c.leaves then null else s.deadline_at end,
      due_at = case when c.ends then v_now + tasker.ms(c.delay_ms) when c.leaves then c.begins_at
        else coalesce(c.begins_at, s.due_at) end,
      settled = coalesce(c.settled, s.settled),
      hinted_at = case when c.enqueued then v_now else s.hinted_at end,
      hint_count = case when c.enqueued then 1 else s.hint_count end,
      updated_at = v_now
    from (
      -- Steps of the batch that ended or wait.
      select j.step_uuid, 0 as met, j.path, j.to_state as state, j.token, j.attempt,
        not tasker.kind_suspends(j.kind) as ends, tasker.kind_suspends(j.kind) as leaves,
        tasker.kind_runs_ahead(j.kind) as claimed, false as enqueued,
        null::bigint as timeout_ms,
        case j.to_state when 'waiting_for_retry' then j.delay_ms end as delay_ms,
        case when tasker.kind_suspends(j.kind) then v_now + tasker.ms(j.delay_ms) end as begins_at,
        coalesce(j.worker_uuid, v_worker) as worker_uuid,
        j.duration_ms, j.note, j.settled
      from unnest(v_judged) j where not tasker.step_is_to_run(j.to_state)
      union all   -- children and steps that run again
      select p.step_uuid, p.met, p.path,
        coalesce(tasker.place_state(p.place), case when p.moved then 'pending' end),
        tasker.place_token(p.place, p.token), tasker.place_attempts(p.place, p.attempt), false, p.moved,
        p.place = 'claim', p.place = 'enqueue', p.timeout_ms, null, p.begins_at, v_worker, null,
        case when p.moved then v_notes->p.step_uuid::text end, null
      from unnest(v_placed) p
    ) c where s.workflow_step_uuid = c.step_uuid
    returning s.workflow_step_uuid, c.path, s.sort_key, s.attempts, s.claim_token, c.worker_uuid,
      c.duration_ms, c.note
  )
  insert into tasker.step_moves (workflow_step_uuid, path, sort_key, attempt, claim_token, worker_uuid,
    execution_time_ms, metadata, created_at)
  select m.workflow_step_uuid, m.path, m.sort_key, m.attempts, m.claim_token, m.worker_uuid, m.duration_ms,
    m.note, v_now
  from moved m where tasker.path_length(m.path) > 0;

  if v_placed is not null then
    v_inputs := tasker.own_inputs(array(select p.step_uuid from unnest(v_placed) p where p.place = 'claim'),
      (p_args->>'max_claim_bytes')::bigint);
    select jsonb_agg(jsonb_build_object('namespace', ns.name, 'step', p.step_uuid, 'task', p.task_uuid)
        order by p.priority desc, p.held_rank, p.step_uuid) filter (where p.place = 'enqueue'),
      jsonb_agg(tasker.claim_json(p.step_uuid, p.task_uuid, p.name, p.template_id, p.ordinal,
        tasker.place_token(p.place, p.token), tasker.place_attempts(p.place, p.attempt),
        v_inputs->p.step_uuid::text,
        case when p.attempt > 1 then tasker.needs_isolation(p.task_uuid, p.step_uuid, p.attempt) end,
        case when p.attempt > 0 then tasker.ran_ms(p.step_uuid, p.template_id, p.ordinal) end)
        order by p.priority desc, p.step_uuid) filter (where p.place = 'claim'),
      bool_or(p.place = 'hold'), bool_or(p.place = 'suspend'), min(p.begins_at),
      jsonb_agg(distinct jsonb_build_object('namespace', ns.name)) filter (where p.place = 'hold'
        and ns.ordered and p.begins_at is null and not p.limited and not p.paused)
    into v_send, v_claims, v_held, v_suspends, v_begins, v_wake
    from unnest(v_placed) p join tasker.task_namespaces ns on ns.namespace_id = p.namespace_id;
  end if;

  if v_all.resumed then
    perform tasker.end_waits(v_judged, v_now);
  end if;
  if v_all.reopened then
    perform tasker.leave_phase(v_judged, v_now);
  end if;
  v_ended := tasker.evaluate_task_states(v_judged, v_placed, p_args, v_all.unheld or coalesce(v_held, false),
    v_all.dequeued or v_send is not null, v_now);
  if v_all.suspends then
    perform tasker.begin_waits_of_handlers(v_judged, v_now);
    v_begins := v_now;
  end if;
  if v_suspends then   -- after the timers of these steps are deleted
    if tasker.begin_waits(v_placed, v_now) then
      v_begins := v_now;
    end if;
  end if;
  if v_all.limited then   -- permits that ended with this write go to the next steps in the same commit
    v_granted := tasker.hand_on_permits(v_judged, v_placed, p_args, coalesce(jsonb_array_length(v_claims), 0),
      coalesce(v_ended->'finished', '{}'));
    v_claims := nullif(coalesce(v_claims, '[]') || coalesce(v_granted->'claims', '[]'), '[]');
    v_send := nullif(coalesce(v_send, '[]') || coalesce(v_granted->'send', '[]'), '[]');
  end if;
  if v_wake is not null then
    v_send := coalesce(v_send, '[]') || v_wake;
  end if;
  if v_ended ? 'send' then   -- of the phase that begins
    v_send := coalesce(v_send, '[]') || (v_ended->'send');
    v_ended := v_ended - 'send';
  end if;
  if p_args ? 'repairs' then
    perform tasker.record_repairs_v1(jsonb_build_object(p_args->>'repairs', (
      select count(*) from unnest(v_judged) j where j.settled is distinct from 's')));
  end if;
  return jsonb_build_object('verdicts', v_verdicts, 'claims', v_claims, 'send', v_send)
    || case when v_begins is null then '{}'
      else jsonb_build_object('begins_in_ms', ceil(extract(epoch from v_begins - v_now) * 1000)) end
    || coalesce(v_ended, '{}');
end
$$;
