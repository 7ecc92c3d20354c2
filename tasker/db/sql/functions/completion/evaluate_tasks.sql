-- The outcome of a complete task: `partial` if steps of it failed or were skipped, null if none is missing.
create or replace function tasker.outcome_of(p_task uuid) returns text
language sql stable as $$
  select case when exists (select from tasker.workflow_steps s
    where s.task_uuid = p_task and s.settled <> 'o') then 'partial' end
$$;

-- True for a step that runs when all others have come to rest: a compensation, or a step of `finally`.
create or replace function tasker.is_late(p_template int, p_ordinal int) returns boolean
language sql stable parallel safe as $$
  select exists (select from tasker.template_steps ts where ts.template_id = p_template
    and ts.ordinal = p_ordinal and (ts.gates & 4096 <> 0 or ts.undoes is not null))
$$;

-- True if a failure of a step starts the compensation of its task. A step with an unknown effect does not:
-- its worker was lost, and it may run only once; an operator decides.
create or replace function tasker.starts_compensation(p_task uuid) returns boolean
language sql stable as $$
  select coalesce(bool_or(ts.gates & 8192 <> 0), false)
    and not coalesce(bool_or(ts.on_worker_lost = 'fail' and f.error_type in ('worker_lost',
      'outcome_unknown')), false)
  from tasker.workflow_steps s
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  left join lateral (select x.error->>'error_type' as error_type from tasker.step_failures x
    where x.task_uuid = s.task_uuid and x.workflow_step_uuid = s.workflow_step_uuid
    order by x.failure_id desc limit 1) f on true
  where s.task_uuid = p_task and s.state = 'error' and s.settled is null
$$;

-- What follows when a task comes to rest: the state in which it ends, or the phase that runs before.
-- p_target: the state by its counters.
create or replace function tasker.after_rest(p_task tasker.tasks, p_target text) returns tasker.rest
language plpgsql stable as $$
declare
  v_next tasker.rest := row(p_target, null, null)::tasker.rest;
  v_last constant boolean := p_task.gates & 4096 <> 0;
begin
  if p_task.phase is null and p_task.gates & 8192 <> 0 and p_target <> 'complete'
      and tasker.starts_compensation(p_task.task_uuid) then
    return row('waiting_for_dependencies', 'c', 'compensating')::tasker.rest;
  end if;
  if p_task.phase in ('c', 'k') then
    v_next.outcome := case when exists (select from tasker.workflow_steps s
        join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
        where s.task_uuid = p_task.task_uuid and ts.undoes is not null
          and not tasker.step_satisfies(s.state, s.settled))
      then 'compensation_failed' else 'compensated' end;
  else
    v_next.outcome := p_task.outcome;
  end if;
  if v_last and (p_task.phase is null or p_task.phase in ('c', 'k')) then
    v_next.target := 'waiting_for_dependencies';
    v_next.phase := case p_task.phase when 'k' then 'x' else 'f' end;
  elsif coalesce(p_task.phase in ('k', 'x'), false) and not exists (select from tasker.workflow_steps s
      join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
      where s.task_uuid = p_task.task_uuid and ts.undoes is not null and s.state = 'error') then
    v_next.target := 'cancelled';
  elsif v_next.outcome = 'compensated' then
    v_next.target := 'error';
  end if;
  return v_next;
end
$$;

-- Counts compensations that ended, by their outcomes.
create or replace function tasker.count_compensations(p_outcomes text[]) returns void
language sql as $$
  insert into tasker.compensation_counters as c (outcome, shard, number)
  select o, tasker.free_shard(0), count(*) from unnest(p_outcomes) o group by o order by o
  on conflict (outcome, shard) do update set number = c.number + excluded.number
$$;

-- One evaluation for each task and write: new counters, new state along the shortest legal path, history
-- (rule 10). The caller has locked the tasks. p_changes: the changes of the counters, with the number of
-- steps that became ready (`started`). Tasks that come to rest because of failures become dead letters in
-- the same transaction, unless `dead_letters` is false; those with compensations or steps of
-- `finally` begin these (begin_phase).
-- Locks: tasks. The caller has locked them.
-- p_args: on_blocked, worker, note, dead_letters, and what begin_phase needs.
-- Returns: for the tasks that ended with this write {finished: {task: final state}, at: time, waiters: {task:
--   waiter to notify}, begins_in_ms: 0 if a step waits for such an end}, and what begin_phase returns; null
--   if there is neither.
create or replace function tasker.evaluate_tasks(p_changes tasker.task_change[], p_args jsonb,
  p_now timestamptz) returns jsonb
language plpgsql as $$
declare
  v_on_blocked constant text := coalesce(p_args->>'on_blocked', 'give_up');
  v_finished jsonb;
  v_waiters jsonb;
  v_troubled uuid[];
  v_from text[];
  v_told uuid[];    -- those whose end is an event
  v_children uuid[];   -- those for whose end a step waits
  v_dated uuid[];   -- with a deadline: those that ended, and those that continue
  v_resting jsonb;   -- by task: the phase that begins
  v_undone text[];   -- outcomes of compensations that ended
  v_begun jsonb;
  v_ended jsonb;
begin
  with n as materialized (
    select k.*, r.phase as next_phase, r.outcome as next_outcome, coalesce(r.target, k.counted) as target,
      coalesce(tasker.task_path(k.state, coalesce(r.target, k.counted)), '') as path
    from (
      select c.*, tasker.task_target(c.state, c.started, c.total, c.done, c.failed + c.cancelled, c.active,
        c.retrying, c.held, v_on_blocked) as counted
      from (
        select t.task_uuid, t.state, t.total, t.done + d.done as done, t.failed + d.failed as failed,
          t.cancelled + d.cancelled as cancelled, t.active + d.active as active,
          t.retrying + d.retrying as retrying, t.held + d.held as held, d.started,
          t.suspended + d.suspended as suspended, t.gates, t.phase
        from unnest(p_changes) d join tasker.tasks t on t.task_uuid = d.task_uuid offset 0) c
      offset 0) k   -- offset: later references use the column instead of a copy of its expression
    left join lateral (select r.*   -- offset: without it the function is called before the condition is read
      from (select t from tasker.tasks t where t.task_uuid = k.task_uuid
        and (k.gates & 12288 <> 0 or k.phase is not null)
        and (k.counted = 'complete' or tasker.task_is_blocked(k.counted)) offset 0) x
      cross join lateral tasker.after_rest(x.t, k.counted) r) r on true
  ), moved as (
    update tasker.tasks t set
      done = n.done, failed = n.failed, cancelled = n.cancelled, active = n.active, retrying = n.retrying,
      held = n.held, suspended = n.suspended, state = case n.path when '' then t.state else n.target end,
      complete = tasker.task_is_final(case n.path when '' then t.state else n.target end),
      outcome = case when n.target = 'complete' and t.gates & 16 <> 0 then tasker.outcome_of(t.task_uuid)
        else coalesce(n.next_outcome, t.outcome) end,
      completed_at = case when n.path = '' then t.completed_at
        when tasker.task_is_final(n.target) then p_now end,
      sort_key = t.sort_key + case n.path when '' then 0 else tasker.path_length(n.path) + 1 end,
      updated_at = p_now
    from n
    where t.task_uuid = n.task_uuid
    returning t.task_uuid, t.state, t.complete, t.waiter, t.sort_key, t.gates, n.state as from_state, n.path,
      n.next_phase, case when n.phase in ('c', 'k') then n.next_outcome end as undone
  ), logged as (
    insert into tasker.task_moves (task_uuid, path, sort_key, processor_uuid, metadata, created_at)
    select m.task_uuid, tasker.path_code(m.from_state) || m.path, m.sort_key, (p_args->>'worker')::uuid,
      p_args->'note', p_now
    from moved m where m.path <> ''
  )
  select jsonb_object_agg(m.task_uuid, m.state) filter (where m.complete and m.path <> ''),
    jsonb_object_agg(m.task_uuid, m.waiter)
      filter (where m.complete and m.path <> '' and m.waiter is not null),
    array_agg(m.task_uuid) filter (where m.path <> '' and tasker.task_is_blocked(m.state)),
    array_agg(m.from_state) filter (where m.path <> '' and tasker.task_is_blocked(m.state)),
    array_agg(m.task_uuid) filter (where m.path <> '' and m.gates & 256 <> 0
      and (m.complete or tasker.task_is_final(m.from_state))),
    array_agg(m.task_uuid) filter (where m.path <> '' and m.complete and m.gates & 512 <> 0),
    jsonb_object_agg(m.task_uuid, m.next_phase) filter (where m.next_phase is not null),
    array_agg(m.undone) filter (where m.undone is not null),
    array_agg(m.task_uuid) filter (where m.path <> '' and m.complete and m.gates & 128 <> 0)
  into v_finished, v_waiters, v_troubled, v_from, v_dated, v_told, v_resting, v_undone, v_children
  from moved m where m.complete or tasker.task_is_blocked(m.state) or m.gates & 256 <> 0
    or m.next_phase is not null;
  if v_dated is not null then
    perform tasker.write_deadlines(v_dated, p_now);
  end if;
  if v_told is not null then
    perform tasker.write_task_events(v_told, p_now);
  end if;
  if v_children is not null then
    perform tasker.write_child_ends(v_children);
  end if;
  if v_troubled is not null and coalesce((p_args->>'dead_letters')::boolean, true) then
    perform tasker.dlq_failed(v_troubled, v_from, p_now);
  end if;
  if v_undone is not null then
    perform tasker.count_compensations(v_undone);
  end if;
  if v_resting is not null then
    v_begun := tasker.begin_phase(v_resting, p_args, p_now);
  end if;
  v_ended := case when v_waiters is not null then jsonb_build_object('finished', v_finished, 'at', p_now,
      'waiters', v_waiters)
    when v_finished is not null then jsonb_build_object('finished', v_finished, 'at', p_now) end;
  if v_children is not null then
    v_ended := coalesce(v_ended, '{}') || '{"begins_in_ms": 0}';
  end if;
  return case when v_begun is null then v_ended else tasker.merged_ends(v_begun, coalesce(v_ended, '{}')) end;
end
$$;
