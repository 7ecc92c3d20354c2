-- A shortcut of tasker.advance_v1 for the most frequent latency-critical write: successful results of one
-- task whose next steps are all handed off to the caller. It has the same effect with a third of the
-- statements. Returns null and writes nothing for every other write; then advance_v1 continues, with locks
-- that it would take itself. A test compares the outcomes of both.
-- Locks: task, steps.
-- Conditions: a few results with their tokens and nothing else; none publishes events; nothing is paused; no
--   more urgent step waits (tasker.yields); the task's steps have no gates, and it does not end if a step
--   waits for that; each claim is the caller's; and all steps that wait for these have no inputs of their own
--   (as instances of a batch have), are pending and were never claimed, so that they have no position and
--   have lost no worker.
create or replace function tasker.advance_simple(p_args jsonb, p_now timestamptz) returns jsonb
language plpgsql as $$
declare
  v_items constant jsonb := p_args->'items';
  v_count constant int := jsonb_array_length(v_items);
  v_worker constant uuid := (p_args->>'worker')::uuid;
  v_slots constant int := coalesce((p_args->>'slots')::int, 0);
  v_path constant text := tasker.step_path('in_progress', 'ok');
  v_claim constant text := tasker.placed_path(tasker.path_code('pending'), 'claim');
  v_timeout_ms constant bigint not null := tasker.clamped_ms((p_args->>'timeout_ms')::numeric);
  v_grace_ms constant bigint not null := tasker.clamped_ms((p_args->>'grace_ms')::numeric);
  v_steps tasker.judged_change[];   -- with their results
  v_children tasker.ready_step[];
  v_ready int;
  v_plain boolean;
  v_target text;
  v_way text;
  v_ends boolean;
  v_claims jsonb;
  t tasker.tasks;
begin
  -- Checked before any lock: the tasks of a batch are locked in the order of their identifiers, not of the
  -- batch's items.
  if v_count > 16 or p_args ?| '{repairs,events,lock_ms}'
    or jsonb_path_exists(v_items, '$[*] ? (@.t != $task || @.kind != "ok" || exists (@.n) || exists (@.gv))',
      jsonb_build_object('task', v_items->0->'t')) then
    return null;
  end if;
  if coalesce((p_args->>'wait')::boolean, true) then
    select * into t from tasker.tasks where task_uuid = (v_items->0->>'t')::uuid for no key update;
  else
    select * into t from tasker.tasks
    where task_uuid = (v_items->0->>'t')::uuid for no key update skip locked;
  end if;
  if (not t.complete and t.gates & ~128 = 0) is not true then
    return null;
  end if;

  select array_agg(row(q.step, t.task_uuid, 'ok', null, 'in_progress', v_path, 'complete', q.k, q.attempts,
      q.sort_key + tasker.path_length(v_path), 0, t.template_id, q.ordinal, null, q.name,
      q.worker, null, null, tasker.clamped_ms(q.ms), q.r, q.m, null, null, null)::tasker.judged_change),
    count(distinct q.step) = v_count and bool_and(q.plain) into v_steps, v_plain from (
    select x.workflow_step_uuid as step, x.attempts, x.sort_key, x.ordinal, x.name, x.worker_uuid as worker,
      i.k, i.ms, i.r, i.m, i.k = x.claim_token and coalesce(i.w, v_worker) = x.worker_uuid
      and x.task_uuid = t.task_uuid and x.state = 'in_progress' and x.unmet = 0 as plain
    from jsonb_to_recordset(v_items) as i (s uuid, k bigint, w uuid, ms numeric, r jsonb, m jsonb)
    join tasker.workflow_steps x on x.workflow_step_uuid = i.s
    order by x.workflow_step_uuid
    for no key update of x) q;
  if v_plain is not true then
    return null;
  end if;

  select array_agg(row(c.workflow_step_uuid, c.task_uuid, c.namespace_id, c.template_id, c.ordinal, c.name,
      t.priority, e.met, c.unmet = e.met, tasker.path_code('pending'), c.state, c.claim_token, c.attempts,
      c.sort_key, false)::tasker.ready_step),
    count(*) filter (where c.unmet = e.met),
    bool_and(c.state = 'pending' and c.claim_token = 0
      and (t.graph_version = 0 or not exists (select from tasker.step_inputs i
        where i.workflow_step_uuid = c.workflow_step_uuid))
      and (c.unmet > e.met or coalesce(p_args->'namespace_ids' @> to_jsonb(c.namespace_id), false)
      and not coalesce(p_args->'unserved' ? (c.template_id || ':' || c.ordinal), false)))
  into v_children, v_ready, v_plain from (
    select k.child, count(*)::int as met from (   -- as children_of
      select tasker.step_uuid(t.task_uuid, e.to_ordinal + 1) as child from unnest(v_steps) s
      join tasker.template_edges e on e.template_id = s.template_id and e.from_ordinal = s.ordinal
      union all
      select e.to_step_uuid from unnest(v_steps) s
      join tasker.dynamic_edges e on e.task_uuid = s.task_uuid and e.from_step_uuid = s.step_uuid
      where t.graph_version > 0) k
    group by k.child) e
  join tasker.workflow_steps c on c.workflow_step_uuid = e.child;
  if not v_plain or v_ready > v_slots or exists (select from tasker.pauses)
      or v_ready > 0 and exists (select from tasker.ready_backlog b where b.namespace_id = t.namespace_id
        and b.priority > t.priority and not b.paused and b.unserved is null)   -- as tasker.yields
      or v_ready > 0 and exists (select from tasker.ready_backlog b where b.namespace_id = t.namespace_id
        and b.flow > '' and not b.paused and b.unserved is null) then   -- steps may wait for their turn
    return null;
  end if;

  v_target := tasker.task_target(t.state, v_ready, t.total, t.done + v_count, t.failed + t.cancelled,
    t.active - v_count + v_ready, t.retrying, t.held, coalesce(p_args->>'on_blocked', 'give_up'));
  v_way := coalesce(tasker.task_path(t.state, v_target), '');
  if v_way <> '' and tasker.task_is_blocked(v_target) then
    return null;   -- a dead letter may be due
  end if;
  v_ends := v_way <> '' and tasker.task_is_final(v_target);
  if v_ends and t.gates <> 0 then
    return null;   -- a step waits for the end of the task
  end if;

  with stored as (
    insert into tasker.step_results (task_uuid, ordinal, workflow_step_uuid, name, result, metadata,
      bytes, created_at)
    select s.task_uuid, s.ordinal, s.step_uuid, s.name, s.result, s.metadata, pg_column_size(s.result), p_now
    from unnest(v_steps) s
    where s.result is not null
    on conflict (task_uuid, ordinal, workflow_step_uuid) do update
      set result = excluded.result, metadata = excluded.metadata, bytes = excluded.bytes,
        created_at = excluded.created_at
  ), moved as (
    update tasker.workflow_steps s set
      unmet = s.unmet - c.met, state = coalesce(c.state, s.state), claim_token = c.token,
      attempts = c.attempt, sort_key = c.sort_key,
      worker_uuid = case when c.claimed then v_worker else s.worker_uuid end,
      started_at = case when c.claimed then p_now else s.started_at end,
      deadline_at = case when c.claimed then tasker.deadline(p_now, coalesce((select ts.timeout_ms
          from tasker.template_steps ts where ts.template_id = s.template_id and ts.ordinal = s.ordinal),
        v_timeout_ms),
          v_grace_ms)
        when c.ends then null else s.deadline_at end,
      due_at = case when c.ends then null else s.due_at end,
      updated_at = p_now
    from (
      select s.step_uuid, 0 as met, s.to_state as state, s.token, s.attempt, s.sort_key, true as ends,
        false as claimed, s.duration_ms
      from unnest(v_steps) s
      union all
      select k.step_uuid, k.met, case when k.ready then 'in_progress' end,
        k.token + case when k.ready then 1 else 0 end,
        case when k.ready then tasker.place_attempts('claim', k.attempt) else k.attempt end,
        k.sort_key + case when k.ready then tasker.path_length(v_claim) else 0 end, false, k.ready, null
      from unnest(v_children) k
    ) c where s.workflow_step_uuid = c.step_uuid
    returning s.workflow_step_uuid, s.ordinal, s.name, s.sort_key, s.attempts, s.claim_token, s.worker_uuid,
      c.ends, c.claimed, c.duration_ms
  ), logged as (
    insert into tasker.step_moves (workflow_step_uuid, path, sort_key, attempt, claim_token, worker_uuid,
      execution_time_ms, created_at)
    select m.workflow_step_uuid, case when m.ends then v_path else v_claim end, m.sort_key, m.attempts,
      m.claim_token, m.worker_uuid, m.duration_ms, p_now
    from moved m where m.ends or m.claimed
  ), counted as (
    update tasker.tasks x set done = x.done + v_count, active = x.active - v_count + v_ready,
      state = case v_way when '' then x.state else v_target end, complete = v_ends,
      completed_at = case when v_ends then p_now when v_way = '' then x.completed_at end,
      sort_key = x.sort_key + case v_way when '' then 0 else tasker.path_length(v_way) + 1 end,
      updated_at = p_now
    where x.task_uuid = t.task_uuid
    returning x.sort_key
  ), told as (
    insert into tasker.task_moves (task_uuid, path, sort_key, processor_uuid, metadata, created_at)
    select t.task_uuid, tasker.path_code(t.state) || v_way, x.sort_key, v_worker, p_args->'note', p_now
    from counted x where v_way <> ''
  )
  select jsonb_agg(tasker.claim_json(m.workflow_step_uuid, t.task_uuid, m.name, t.template_id, m.ordinal,
      m.claim_token, m.attempts, null, null, null) order by m.workflow_step_uuid)
  into v_claims from moved m where m.claimed;

  return jsonb_build_object('verdicts', null, 'claims', v_claims, 'send', null)
    || case when v_ends then jsonb_build_object('finished', jsonb_build_object(t.task_uuid, v_target),
        'at', p_now) else '{}' end
    || case when v_ends and t.waiter is not null
       then jsonb_build_object('waiters', jsonb_build_object(t.task_uuid, t.waiter))
       else '{}' end;
end
$$;
