-- Tasks without progress, in the order of their identifiers: the reason, the exceeded limit, and whether the task is to
-- end in `error` or is only recorded. Tasks that continue without intervention are only recorded: those that wait for a
-- worker (worker_unavailable) or for a long step to end. p_tasks: only these; p_after: only those behind it.
create or replace function tasker.stale_tasks(p_tasks uuid[], p_after uuid, p_limit int)
returns table (task_uuid uuid, namespace_name text, task_name text, state text, minutes double precision,
  threshold_minutes double precision, reason tasker.dlq_reason, signal text, step text, may_end boolean, to_dlq boolean)
language sql stable
as $$
  select a.task_uuid, a.namespace_name, a.task_name, a.current_state,
    case f.signal when 'time_in_state' then a.minutes when 'task_age' then a.aged_minutes else w.minutes end,
    case f.signal when 'time_in_state' then a.threshold_minutes when 'task_age' then a.max_age_minutes
      else w.limit_minutes end,
    (case when f.unserved then 'worker_unavailable' else 'staleness_timeout' end)::tasker.dlq_reason,
    f.signal, w.name, not f.unserved and w.name is null and (a.lifecycle->>'auto_fail_on_timeout')::boolean is not false,
    (a.lifecycle->>'auto_dlq_on_timeout')::boolean is not false
      and coalesce(a.lifecycle->>'staleness_action', 'dlq') = 'dlq'
  from tasker.v_task_state_analysis a
  left join lateral tasker.slowest_open_step(case when a.active > 0 and not a.is_too_old and not a.paused
    and not (a.rests_too_long and a.excuse is null) then a.task_uuid end, a.template_id) w on true   -- null: no step is read
  cross join lateral (select s.signal, s.signal in ('time_in_state', 'task_age') and a.queued and not a.served
      and not (case s.signal when 'task_age' then a.own_age_limit else a.own_limit end) as unserved
    from (select case when a.rests_too_long and a.excuse is null then 'time_in_state' when a.is_too_old then 'task_age'
      else w.signal end as signal) s) f
  where f.signal is not null and not a.paused and a.task_uuid > coalesce(p_after, '00000000-0000-0000-0000-000000000000')
    and (p_tasks is null or a.task_uuid = any (p_tasks))
  order by a.task_uuid limit p_limit
$$;
