-- False if no open task is older than the shortest limit, and none is of a template with limits of its own:
-- then none can be stale (tasker.stale_tasks), and that large query need not be planned. A task cannot rest
-- for longer than it exists; its last write counts as well, because a clock may have been set back.
create or replace function tasker.stale_candidates() returns boolean
language plpgsql stable as $$
declare
  v_shortest constant interval := (
    select least(g.waiting_for_dependencies_minutes, g.waiting_for_retry_minutes,
      g.steps_in_process_minutes, g.task_max_lifetime_minutes,
      g.checkpoint_stall_minutes) * interval '1 minute'
    from tasker.staleness_settings g);
  v_now constant timestamptz := tasker.now();
begin
  return exists (
    select from (select t.template_id, min(least(t.created_at, t.updated_at)) as since from tasker.tasks t
      where not t.complete group by t.template_id) o
    where o.since <= v_now - v_shortest
      or exists (select from tasker.templates m where m.template_id = o.template_id and m.lifecycle <> '{}')
      or exists (select from tasker.template_steps s
        where s.template_id = o.template_id and s.max_in_process_minutes is not null));
end
$$;

-- Tasks without progress, in the order of their identifiers: the reason, the exceeded limit, and whether the
-- task is to end in `error` or is only recorded. Tasks that continue without intervention are only recorded:
-- those that wait for a worker (worker_unavailable) or for a long step to end. p_tasks: only these; p_after:
-- only those behind it.
create or replace function tasker.stale_tasks(p_tasks uuid[], p_after uuid, p_limit int)
returns table (task_uuid uuid, namespace_name text, task_name text, state text, minutes double precision,
  threshold_minutes double precision, reason tasker.dlq_reason, signal text, step text, may_end boolean,
  to_dlq boolean)
language sql stable
as $$
  select a.task_uuid, a.namespace_name, a.task_name, a.current_state,
    case f.signal when 'time_in_state' then a.minutes when 'task_age' then a.aged_minutes else w.minutes end,
    case f.signal when 'time_in_state' then a.threshold_minutes when 'task_age' then a.max_age_minutes
      else w.limit_minutes end,
    (case when f.unserved then 'worker_unavailable' else 'staleness_timeout' end)::tasker.dlq_reason,
    f.signal, w.name,
    not f.unserved and w.name is null and (a.lifecycle->>'auto_fail_on_timeout')::boolean is not false,
    (a.lifecycle->>'auto_dlq_on_timeout')::boolean is not false
      and coalesce(a.lifecycle->>'staleness_action', 'dlq') = 'dlq'
  from tasker.v_task_state_analysis a
  left join lateral tasker.slowest_open_step(case when a.active > 0 and not a.is_too_old and not a.paused
    -- null: no step is read
    and not (a.rests_too_long and a.excuse is null) then a.task_uuid end, a.template_id) w on true
  cross join lateral (select s.signal, s.signal in ('time_in_state', 'task_age') and a.queued and not a.served
      and not (case s.signal when 'task_age' then a.own_age_limit else a.own_limit end) as unserved
    from (select case when a.rests_too_long and a.excuse is null then 'time_in_state'
      when a.is_too_old then 'task_age'
      else w.signal end as signal) s) f
  where f.signal is not null and not a.paused
    and a.task_uuid > coalesce(p_after, '00000000-0000-0000-0000-000000000000')
    and (p_tasks is null or a.task_uuid = any (p_tasks))
  order by a.task_uuid limit p_limit
$$;

-- The first running step of a task that exceeds the time limit of its template, or that wrote checkpoints and
-- stopped doing so without reporting progress either. A step without checkpoints is judged by its run time
-- alone.
create or replace function tasker.slowest_open_step(p_task uuid, p_template int)
returns table (name text, signal text, minutes double precision, limit_minutes double precision)
language sql stable rows 1
as $$
  select q.name, case when q.ran >= q.most then 'step_duration' else 'checkpoint_stalled' end,
    case when q.ran >= q.most then q.ran else q.silent end,
      case when q.ran >= q.most then q.most else q.stall end
  from (
    select s.name, s.workflow_step_uuid, ts.max_in_process_minutes as most,
      g.checkpoint_stall_minutes as stall,
      extract(epoch from tasker.now() - s.started_at)::double precision / 60 as ran,
      extract(epoch from tasker.now()
        - greatest(c.updated_at, s.started_at, p.reported_at))::double precision / 60 as silent,
      c.updated_at is not null as has_checkpoint
    from tasker.workflow_steps s
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    cross join tasker.staleness_settings g
    left join tasker.step_checkpoints c on c.workflow_step_uuid = s.workflow_step_uuid
    left join tasker.step_progress p on p.workflow_step_uuid = s.workflow_step_uuid
      and p.claim_token = s.claim_token
    where p_task is not null and s.task_uuid = p_task and s.state = 'in_progress'
      and not tasker.is_suspended(s.state, s.worker_uuid)
      and exists (select from tasker.template_steps any_step where any_step.template_id = p_template
        and (any_step.max_in_process_minutes is not null or any_step.step_type = 'batch_worker'))) q
  where q.ran >= q.most or (q.has_checkpoint and q.silent >= q.stall)
  order by q.workflow_step_uuid limit 1
$$;

-- The actions for those of the tasks that are stale. A task is ended if it has a step that can be ended, and
-- none whose result only waits to be processed. A task that would only be recorded and has a pending entry is
-- left out.
create or replace function tasker.staleness_actions(p_tasks uuid[], p_to_error boolean, p_to_dlq boolean)
returns jsonb
language sql stable
as $$
  select coalesce(jsonb_agg(jsonb_build_object('task_uuid', q.task_uuid, 'namespace_name', q.namespace_name,
    'task_name', q.task_name, 'current_state', q.state, 'time_in_state_minutes', floor(q.minutes),
    'threshold_minutes', q.threshold_minutes, 'reason', q.reason, 'signal', q.signal, 'step', q.step,
    'moved_to_dlq', q.enters, 'transition_success', q.ends,
    'action_taken', case when q.ends and q.enters then 'TransitionedToDlqAndError'
      when q.ends then 'TransitionedToErrorOnly'
      else 'MovedToDlqOnly' end) order by q.task_uuid), '[]')
  from (
    select s.*, s.may_end and p_to_error and coalesce((
        select bool_or(tasker.step_path(w.state, 'expire') is not null)
          and not bool_or(tasker.step_is_parked(w.state))
        from tasker.workflow_steps w where w.task_uuid = s.task_uuid and not tasker.step_is_ended(w.state)
          and (w.state <> 'pending' or w.unmet = 0)), false) as ends,
      s.to_dlq and p_to_dlq and not exists (select from tasker.tasks_dlq e
        where e.task_uuid = s.task_uuid and e.resolution_status = 'pending') as enters
    from tasker.stale_tasks(p_tasks, null, cardinality(p_tasks)) s) q
  where q.ends or q.enters
$$;
