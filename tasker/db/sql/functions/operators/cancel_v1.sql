-- Cancels a task and all its steps that are not final, in one transaction; tokens grow, so the results of
-- steps still running are refused. A task with steps of `finally` runs these before it ends (begin_phase); a
-- cancel while they run ends them, too. With `compensate` the effects of its complete steps are undone
-- before, also of one whose result is stored and waits for an orchestrator: it becomes complete. A cancel of
-- a compensation leaves the rest of the effects, but not one with `compensate`.
-- Locks: task, steps, backlog, counters, fan-outs; then as begin_phase.
-- p_args: {task, worker, reason, actor, compensate}, and what begin_phase needs.
-- Returns: {cancelled, state, from, running: [{step, token, worker}], finished: {task: its state}, waiters:
--   {task: waiter to notify of its end}}, or, if a phase begins, what begin_phase returns; {cancelled: false,
--   state, outcome} if the task has ended, or is to be compensated and is or was.
create or replace function tasker.cancel_v1(p_args jsonb) returns jsonb
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
  v_note constant jsonb := jsonb_strip_nulls(jsonb_build_object('worker', p_args->'worker',
      'reason', p_args->'reason', 'actor', p_args->'actor'));
  v_task tasker.tasks;
  v_path text;
  v_running jsonb;
  v_counted int;
  v_done uuid[];    -- steps whose stored results count
  v_phase "char";   -- that runs before it ends
  v_ends boolean;
  v_begun jsonb := '{}';
  v_rules int[];    -- of the permits that end
  v_values text[];
begin
  perform tasker.require_read_committed();
  select * into v_task from tasker.tasks where task_uuid = (p_args->>'task')::uuid for no key update;
  if v_task.task_uuid is null then
    return jsonb_build_object('cancelled', false);
  end if;
  if v_task.complete then
    return jsonb_build_object('cancelled', false, 'state', v_task.state);
  end if;

  if (p_args->>'compensate')::boolean and v_task.outcome is not null then   -- perhaps the same request again
    return jsonb_build_object('cancelled', false, 'state', v_task.state, 'outcome', v_task.outcome);
  end if;

  v_phase := case
    when (p_args->>'compensate')::boolean then 'k'
    when v_task.phase in ('f', 'x') then null
    when v_task.gates & 4096 <> 0 then 'x' end;
  v_ends := v_phase is null;
  v_path := tasker.path_code(v_task.state) || tasker.task_path(v_task.state,
    case when v_ends then 'cancelled' else 'waiting_for_dependencies' end);
  delete from tasker.pauses p where p.task_uuid = v_task.task_uuid;

  perform from tasker.workflow_steps where task_uuid = v_task.task_uuid
  order by workflow_step_uuid for no key update;
  perform from tasker.ready_backlog b
  where b.workflow_step_uuid = any (array(select s.workflow_step_uuid from tasker.workflow_steps s
    where s.task_uuid = v_task.task_uuid and s.state = 'pending'))
  order by b.workflow_step_uuid for update;

  with open as (
    select s.workflow_step_uuid, s.state as from_state, s.claim_token as token,
      tasker.step_path(s.state, case when v_phase = 'k' and s.state = 'enqueued_for_orchestration'
        and exists (select from tasker.template_steps u where u.template_id = s.template_id
          and u.undoes = s.ordinal) then 'ok' else 'cancel' end) as path
    from tasker.workflow_steps s
    where s.task_uuid = v_task.task_uuid and tasker.step_path(s.state, 'cancel') is not null
      and s.settled is null   -- it has ended
  ), moved as (
    update tasker.workflow_steps s set state = tasker.path_end(o.path),
      claim_token = tasker.kind_token('cancel', s.claim_token, false),
      attempts = tasker.kind_attempts('cancel', s.attempts),
      sort_key = s.sort_key + tasker.path_length(o.path), due_at = null, deadline_at = null,
      updated_at = v_now
    from open o where s.workflow_step_uuid = o.workflow_step_uuid
    returning s.*, o.from_state, o.token, o.path
  ), logged as (
    insert into tasker.step_moves (workflow_step_uuid, path, sort_key, attempt, claim_token,
      worker_uuid, metadata, created_at)
    select m.workflow_step_uuid, m.path, m.sort_key, m.attempts, m.claim_token, m.worker_uuid,
      v_note, v_now from moved m
  ), unheld as (
    delete from tasker.ready_backlog b using open o where b.workflow_step_uuid = o.workflow_step_uuid
  ), over as (
    delete from tasker.timers m
    where m.subject = v_task.task_uuid and (v_ends or m.kind <> 'd')
      or m.subject in (select o.workflow_step_uuid from open o)
  ), unlined as (
    delete from tasker.limit_waiters w using open o where w.workflow_step_uuid = o.workflow_step_uuid
  ), waits as (
    update tasker.step_waits w set ended_at = v_now, outcome = 'cancelled'
    where v_task.gates & 8 <> 0 and w.task_uuid = v_task.task_uuid and w.ended_at is null
  ), permits as (
    delete from tasker.limit_permits p where v_task.gates & 1 <> 0
      and (p.subject = v_task.task_uuid and v_ends or p.subject in (select o.workflow_step_uuid from open o))
    returning p.rule_id, p.value
  ), counted as (
    update tasker.tasks t set state = tasker.path_end(v_path), complete = v_ends,
      completed_at = case when v_ends then v_now end,
      updated_at = v_now, sort_key = t.sort_key + tasker.path_length(v_path), active = 0,
      outcome = case when t.outcome = 'compensating' then 'compensation_failed' else t.outcome end,
      retrying = 0, held = 0, suspended = 0,
      done = t.done + (select count(*) from moved m where m.state = 'complete'),
      cancelled = t.cancelled + (select count(*) from moved m where m.state = 'cancelled'),
      failed = t.failed - (select count(*) from moved m where m.from_state = 'error')
    where t.task_uuid = v_task.task_uuid returning t.sort_key
  ), task_logged as (
    insert into tasker.task_moves (task_uuid, path, sort_key, processor_uuid, metadata, created_at)
    select v_task.task_uuid, v_path, c.sort_key, (p_args->>'worker')::uuid, v_note, v_now
    from counted c where tasker.path_length(v_path) > 0
  ), explained as (
    update tasker.task_details d set cancel_reason = p_args->>'reason'
    where d.task_uuid = v_task.task_uuid and (v_task.phase in ('k', 'x')) is not true
  )
  select jsonb_agg(jsonb_build_object('step', m.workflow_step_uuid, 'token', m.token,
        'worker', m.worker_uuid))
      filter (where m.from_state = 'in_progress' and m.worker_uuid is not null),
    -count(*) filter (where m.from_state = 'enqueued'),
    (select array_agg(p.rule_id) from permits p), (select array_agg(p.value) from permits p),
    array_agg(m.workflow_step_uuid) filter (where m.state = 'complete')
  into v_running, v_counted, v_rules, v_values, v_done from moved m;
  if v_done is not null then   -- the steps below are cancelled, and count them down all the same
    update tasker.workflow_steps s set unmet = s.unmet - e.met
    from (select x.to_step_uuid as step, count(*)::int as met from tasker.workflow_step_edges x
      where x.task_uuid = v_task.task_uuid and x.from_step_uuid = any (v_done) group by 1) e
    where s.workflow_step_uuid = e.step;
  end if;
  perform tasker.note_keys(v_rules, v_values, 0) where v_rules is not null;

  perform tasker.count_enqueued(array[v_task.namespace_id], array[v_counted]);
  if v_task.gates & 1024 <> 0 then   -- a later statement: it sees the children that a start has just created
    perform tasker.close_fan_outs(array(select f.workflow_step_uuid from tasker.fan_outs f
      where f.task_uuid = v_task.task_uuid and f.state <> 'c'), v_now);
  end if;
  if v_task.gates & 128 <> 0 and v_ends then
    perform tasker.write_child_ends(array[v_task.task_uuid]);
    perform pg_notify('tasker_timers', '0');   -- delivered by the commit
  end if;
  if v_task.gates & 512 <> 0 and v_ends then
    perform tasker.write_task_events(array[v_task.task_uuid], v_now);
  end if;
  if v_running is not null then
    perform pg_notify('tasker_cancelled', v_task.task_uuid::text);
  end if;
  if v_task.outcome = 'compensating' then
    perform tasker.count_compensations('{compensation_failed}');
  end if;
  if not v_ends then
    v_begun := tasker.begin_phase(jsonb_build_object(v_task.task_uuid, v_phase),
      p_args || jsonb_build_object('note', v_note), v_now);
  end if;
  return jsonb_strip_nulls(jsonb_build_object('cancelled', true, 'from', v_task.state,
    'running', v_running, 'state', (select t.state from tasker.tasks t where t.task_uuid = v_task.task_uuid)))
    || case when not v_ends then v_begun else jsonb_strip_nulls(jsonb_build_object(
      'finished', jsonb_build_object(v_task.task_uuid, 'cancelled'), 'waiters', case
        when v_task.waiter is not null then jsonb_build_object(v_task.task_uuid, v_task.waiter) end)) end;
end
$$;
