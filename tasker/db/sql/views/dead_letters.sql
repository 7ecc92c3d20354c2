-- Every open task with the time since anything moved it, its limit, and the excuse for it to rest. The
-- clock of a task starts with its last write, so a task that moves never ages, whatever its state; that of
-- a task that only waits for a time starts then, and that of one that waits for an event does not start.
-- The age of a task counts from its creation, or the time that it was submitted for, from the last
-- operator action that restarted it, and, unless its template limits the age, from the last time that one
-- of its steps waited for (a retry, a delay, a snooze). A task with a deadline of its own is never too old
-- for the fleet's limit, and one that runs its steps of `finally` for none. Excuses do not apply to a
-- limit set by the template. To the fleet's limits these apply: a step that runs within its time limit on
-- a live worker, a parked result, and steps in the queue, or waiting for a permit, for workers that are
-- alive. A pause stops every clock. Steps are read only of tasks near a limit.
create or replace view tasker.v_task_state_analysis as
select a.*,
  case when a.paused then 'paused' when a.own_limit then null when a.runs_in_time then 'running'
    when a.parked then 'result parked' when a.queued and a.served then 'queued' end as excuse,
  coalesce(a.minutes >= a.threshold_minutes, false) as rests_too_long,
  coalesce(a.aged_minutes >= a.max_age_minutes, false) as is_too_old
from (
  select t.task_uuid, t.namespace_id, t.template_id, ns.name as namespace_name, nt.name as task_name,
    nt.version as task_version, t.state as current_state, t.priority, t.created_at, t.updated_at,
    t.active, m.lifecycle,
    extract(epoch from tasker.now() - t.created_at)::double precision / 60 as age_minutes,
    greatest(0, extract(epoch from tasker.now() - greatest(t.created_at, t.run_at, o.began_at,
          case when l.own_age is null then k.due_at end))::double precision / 60) as aged_minutes,
    l.threshold_minutes, l.own is not null as own_limit, l.max_age_minutes,
    l.own_age is not null as own_age_limit, greatest(0, extract(
        epoch from tasker.now() - coalesce(k.rests_until, t.updated_at))::double precision / 60) as minutes,
    coalesce(k.runs_in_time, false) as runs_in_time, coalesce(k.parked, false) as parked,
    coalesce(k.queued, false) as queued, coalesce(k.paused, false) as paused,
    exists (select from tasker.workers w where w.kind = 'worker' and w.stopped_at is null
      and w.lease_until > tasker.now() and ns.name = any (w.namespaces)) as served
  from tasker.tasks t
  join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
  join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
  join tasker.templates m on m.template_id = t.template_id
  cross join tasker.staleness_settings g
  cross join lateral (
    select c.own, c.own_age,
      coalesce(c.own, case t.state when 'waiting_for_dependencies' then g.waiting_for_dependencies_minutes
        when 'waiting_for_retry' then g.waiting_for_retry_minutes
        when 'steps_in_process' then g.steps_in_process_minutes end) as threshold_minutes,
      case when t.phase is null then coalesce(c.own_age, case when t.gates & 256 = 0
        or not exists (select from tasker.timers d where d.subject = t.task_uuid and d.kind = 'd')
        then g.task_max_lifetime_minutes end) end as max_age_minutes
    from (select (case t.state
        when 'waiting_for_dependencies' then m.lifecycle->>'max_waiting_for_dependencies_minutes'
        when 'waiting_for_retry' then m.lifecycle->>'max_waiting_for_retry_minutes'
        when 'steps_in_process'
          then m.lifecycle->>'max_steps_in_process_minutes' end)::double precision as own,
      (m.lifecycle->>'max_duration_minutes')::double precision as own_age) c) l
  left join lateral (
    select max(e.at) filter (where e.at > t.updated_at and t.active = t.suspended) as rests_until,
      max(e.at) filter (where e.at > t.updated_at) as due_at,
      bool_or(s.state = 'in_progress' and s.deadline_at >= tasker.now()
        and exists (select from tasker.workers w
        where w.worker_uuid = s.worker_uuid and w.lease_until > tasker.now())) as runs_in_time,
      bool_or(tasker.step_is_parked(s.state)) as parked,
      bool_or(s.state = 'enqueued' or b.workflow_step_uuid is not null
        or exists (select from tasker.limit_waiters w
        where w.workflow_step_uuid = s.workflow_step_uuid)) as queued,
    bool_or(b.paused or b.namespace_id = any ((select tasker.paused_namespaces())::int[])) as paused
    from tasker.workflow_steps s
    left join tasker.ready_backlog b on b.workflow_step_uuid = s.workflow_step_uuid
    cross join lateral (select case when s.due_at is null and tasker.is_suspended(s.state, s.worker_uuid)
      then tasker.now() else s.due_at end as at) e   -- a step may wait for ever
    where (tasker.now() - t.updated_at >= 0.8 * l.threshold_minutes * interval '1 minute'
        or tasker.now() - t.created_at >= 0.8 * l.max_age_minutes * interval '1 minute')
      and s.task_uuid = t.task_uuid and not tasker.step_is_ended(s.state)
      and (s.state <> 'pending' or s.unmet = 0)
    ) k on true
  -- start of the age: the last restart by an operator, or the time when a retry was or will be due
  left join lateral (
    select greatest((select max(r.created_at) from tasker.task_moves r
        where r.task_uuid = t.task_uuid and left(r.path, 1) = tasker.path_code('error')),
      (select max(f.created_at + tasker.ms((f.error->>'retry_in_ms')::numeric)) from tasker.step_failures f
        where f.task_uuid = t.task_uuid and l.own_age is null),
      (select max((x.metadata->>'waited_until')::timestamptz) from tasker.workflow_steps w
        join tasker.step_moves x on x.workflow_step_uuid = w.workflow_step_uuid
        where w.task_uuid = t.task_uuid and l.own_age is null and x.metadata ? 'waited_until')) as began_at
    where tasker.now() - t.created_at >= 0.8 * l.max_age_minutes * interval '1 minute') o on true
  where not t.complete) a;

-- Open tasks with their health before they become dead letters: `warning` from 80 % of a limit, `stale` from
-- 100 %.
create or replace view tasker.v_task_staleness_monitoring as
select h.task_uuid, h.namespace_name, h.task_name, h.current_state,
  floor(h.minutes)::int as time_in_state_minutes,
  ceil(coalesce(h.threshold_minutes, h.max_age_minutes))::int as staleness_threshold_minutes,
  case when h.share >= 1 then 'stale' when h.share >= 0.8 then 'warning' else 'healthy' end as health_status,
  h.priority, floor(h.age_minutes)::int as task_age_minutes, h.excuse, h.share
from (
  select a.*,
    greatest(case when a.excuse is null then coalesce(a.minutes / a.threshold_minutes, 0) else 0 end,
    case when a.paused then 0 else a.aged_minutes / a.max_age_minutes end) as share
  from tasker.v_task_state_analysis a) h;

-- The number of entries for each reason, and the time until they were resolved.
create or replace view tasker.v_dlq_dashboard as
select e.dlq_reason, count(*) as total_entries,
  count(*) filter (where e.resolution_status = 'pending') as pending,
  count(*) filter (where e.resolution_status = 'manually_resolved') as manually_resolved,
  count(*) filter (where e.resolution_status = 'permanently_failed') as permanent_failures,
  count(*) filter (where e.resolution_status = 'cancelled') as cancelled,
  min(e.dlq_timestamp) as oldest_entry, max(e.dlq_timestamp) as newest_entry,
  (avg(extract(epoch from e.resolved_at - e.dlq_timestamp)) / 60)::double precision
    as avg_resolution_time_minutes
from tasker.tasks_dlq e group by e.dlq_reason;

-- Priorities for an investigation: a base for the reason, and one point for each hour that the entry has
-- waited, up to 100.
create or replace view tasker.v_dlq_investigation_queue as
select q.dlq_entry_uuid, q.task_uuid, q.dlq_reason, q.original_state, q.dlq_timestamp, q.minutes_in_dlq,
  (q.base + least(q.minutes_in_dlq / 60, 100))::double precision as priority_score,
  t.namespace_name, t.task_name, t.task_version, t.state as current_state, t.priority,
  floor(extract(epoch from tasker.now() - t.updated_at) / 60)::int as time_in_state_minutes, q.fingerprints
from (
  select e.*, case e.dlq_reason when 'dependency_cycle_detected' then 40 when 'worker_unavailable' then 30
      when 'compensation_failed' then 35
      when 'max_retries_exceeded' then 20 when 'permanent_failure' then 20 when 'staleness_timeout' then 10
      else 5 end as base,
    (extract(epoch from tasker.now() - e.dlq_timestamp) / 60)::double precision as minutes_in_dlq
  from tasker.tasks_dlq e where e.resolution_status = 'pending') q
left join lateral (   -- one by one: the planner might start with all tasks
  select ns.name as namespace_name, nt.name as task_name, nt.version as task_version, x.state,
    x.priority, x.updated_at
  from tasker.tasks x left join tasker.task_namespaces ns on ns.namespace_id = x.namespace_id
  left join tasker.named_tasks nt on nt.named_task_uuid = x.named_task_uuid
  where x.task_uuid = q.task_uuid offset 0) t on true;
