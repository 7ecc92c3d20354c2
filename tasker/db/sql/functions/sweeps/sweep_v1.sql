-- One slice of a sweep over the open tasks: everything in them that a message or a process should have moved
-- and did not. Reads only; the caller repairs through advance_v1, whose guards decide again under the locks.
-- Messages in a paused queue are not lost, and their grace starts again at the end of the pause. A slice of
-- tasks under way continues behind `after`, so a pass over these costs the same however many others wait.
-- With `from`, everything open is read (tasker.find_waiting_v1). Both read steps in their order: a slice ends
-- in the middle of a wide task.
-- p_args: {after: step uuid, limit: of tasks, from: step uuid, steps: maximum number,
--   hint_grace_ms, park_grace_ms, idle_grace_ms, unserved_ms (null: never), results_queue,
--   finalizations_queue: names of the queues whose pauses count}
-- Returns: {last: step uuid, null at the end (of those under way: when none are left), orphans, unwaiting
--   (suspended without a wait), untimed (suspended until a time without a timer), unhinted, parked,
--   forgotten, unserved, unpromoted, unfinished}
create or replace function tasker.sweep_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
  with grace as materialized (   -- once; the grace of a message grows with its repairs, up to 64 times
    select tasker.ms(tasker.required(p_args, 'hint_grace_ms')::numeric) as hint,
      tasker.ms(tasker.required(p_args, 'park_grace_ms')::numeric) as park,
      tasker.ms(tasker.required(p_args, 'idle_grace_ms')::numeric) as idle,
      tasker.ms((p_args->>'unserved_ms')::numeric) as unserved,
      tasker.queue_open_since(p_args->>'results_queue') as results_since,
      tasker.queue_open_since(p_args->>'finalizations_queue') as finalizations_since
  ), slice as materialized (
    select p.*, tasker.step_uuid(p.behind, 0) as task_uuid, tasker.required(p_args, 'limit')::int as tasks,
      tasker.required(p_args, 'steps')::int as steps
    from (select p_args->>'from' is not null as everything,
      coalesce(p_args->>'from', p_args->>'after', '00000000-0000-0000-0000-000000000000')::uuid as behind) p
  ), open as materialized (   -- from the task of that step on
    select t.* from (
      (select t.* from tasker.tasks t
        where not (select c.everything from slice c) and not t.complete and not t.waits
        and t.task_uuid >= (select c.task_uuid from slice c)
        -- and that of the step
        order by t.task_uuid limit (select c.tasks + (p_args->>'after' is not null)::int from slice c))
      union all
      (select t.* from tasker.tasks t where (select c.everything from slice c) and not t.complete
        and t.task_uuid >= (select c.task_uuid from slice c)
        order by t.task_uuid limit (select c.tasks from slice c))) t
    order by t.task_uuid
  ), walked as materialized (
    select o.waits, s as step from open o cross join lateral (
      select x.* from tasker.workflow_steps x
      where x.workflow_step_uuid > greatest((select c.behind from slice c), o.task_uuid)
        and x.workflow_step_uuid <= tasker.step_uuid(o.task_uuid, 16777215)
      order by x.workflow_step_uuid) s
    limit (select c.steps from slice c)
  ), reached as materialized (   -- null: all of these tasks
    select (w.step).workflow_step_uuid as step from walked w
    where (select count(*) from walked) = (select c.steps from slice c) order by 1 desc limit 1
  ), steps as materialized (
    select (w.step).* from walked w where case when (select c.everything from slice c)
      then not tasker.step_is_ended((w.step).state) and ((w.step).state <> 'pending' or (w.step).unmet = 0)
        and (w.waits or not tasker.step_is_active((w.step).state))
      else tasker.step_is_active((w.step).state) end
  ), item as (
    select s.*, tasker.now() - s.updated_at as idle, ns.name as namespace,
      jsonb_build_object('s', s.workflow_step_uuid, 't', s.task_uuid, 'k', s.claim_token, 'name', s.name,
      'namespace', ns.name, 'template', s.template_id, 'ordinal', s.ordinal, 'attempt', s.attempts) as j
    from steps s join tasker.task_namespaces ns on ns.namespace_id = s.namespace_id
  )
  select jsonb_strip_nulls(jsonb_build_object(
    'last', case when exists (select from reached) then (select r.step from reached r)
      when case when (select c.everything from slice c)
        then (select count(*) from open) = (select c.tasks from slice c)
        else exists (select from walked) end then (select tasker.step_uuid(o.task_uuid, 16777215) from open o
          order by o.task_uuid desc limit 1) end,
    'orphans', (select jsonb_agg(i.j
        || jsonb_build_object('worker', i.worker_uuid, 'overdue', i.deadline_at < tasker.now(),
        'worker_name', w.name, 'worker_host', w.host, 'worker_pid', w.pid, 'silent_ms', case
          when w.lease_until < tasker.now()
            then round(extract(epoch from tasker.now() - w.beat_at) * 1000) end,
        'left_ms', (select round(extract(epoch from m.due_at - tasker.now()) * 1000) from tasker.timers m
          where m.subject = i.task_uuid and m.kind = 'd'),
        'ran_ms', tasker.ran_ms(i.workflow_step_uuid, i.template_id, i.ordinal), 'began', i.started_at,
        'progress', (select jsonb_build_object('fraction', p.fraction, 'done', p.done, 'total', p.total,
          'message', p.message, 'reported_at', p.reported_at) from tasker.step_progress p
          where p.workflow_step_uuid = i.workflow_step_uuid and p.claim_token = i.claim_token)))
      from item i left join tasker.workers w on w.worker_uuid = i.worker_uuid
      where i.state = 'in_progress' and not tasker.is_suspended(i.state, i.worker_uuid)
        and (i.deadline_at < tasker.now() or w.worker_uuid is null or w.lease_until < tasker.now())),
    'unwaiting', (select jsonb_agg(i.j) from item i where tasker.is_suspended(i.state, i.worker_uuid)
      and not exists (select from tasker.step_waits w where w.workflow_step_uuid = i.workflow_step_uuid
        and w.token = i.claim_token and w.ended_at is null)),
    'untimed', (select jsonb_agg(i.j) from item i where tasker.is_suspended(i.state, i.worker_uuid)
      and exists (select from tasker.step_waits w where w.workflow_step_uuid = i.workflow_step_uuid
        and w.token = i.claim_token and w.ended_at is null and w.until is not null)
      and not exists (select from tasker.timers m where m.subject = i.workflow_step_uuid and m.kind = 'w')),
    'unhinted', (select jsonb_agg(i.j) from item i where i.state = 'enqueued' and tasker.now() - i.hinted_at
      > power(2, greatest(least(i.hint_count, 7), 1) - 1) * (select g.hint from grace g)),
    'parked', (select jsonb_agg(i.j) from item i where tasker.step_is_parked(i.state)
      and (select greatest(i.hinted_at, g.results_since) < tasker.now() - g.park from grace g)),
    'forgotten', (select jsonb_agg(i.j) from item i where i.state = 'pending' and i.unmet = 0
      and i.idle > (select g.idle from grace g)
      and not exists (select from tasker.ready_backlog b where b.workflow_step_uuid = i.workflow_step_uuid)
      and not exists (select from tasker.limit_waiters w where w.workflow_step_uuid = i.workflow_step_uuid)
      and not exists (select from tasker.timers m where m.subject = i.workflow_step_uuid and m.kind = 'b')),
    'unserved', (select jsonb_agg(i.j || jsonb_build_object('callable', u.callable)) from item i
      join tasker.unserved_steps u on u.workflow_step_uuid = i.workflow_step_uuid
        and u.claim_token = i.claim_token
      where tasker.step_is_to_run(i.state)
        and not exists (select from tasker.ready_backlog b where b.workflow_step_uuid = i.workflow_step_uuid
          and (b.paused or tasker.namespace_is_paused(b.namespace_id)))
        and tasker.now() - u.since > (select g.unserved from grace g)
        -- a live worker can read the template and lacks the handler: neither an outage nor an older release
        -- fails a step
        and exists (
          select from tasker.workers w where w.kind = 'worker' and i.namespace = any (w.namespaces)
            and (i.template_id || ':' || i.ordinal) = any (w.unserved) and i.template_id <> all (w.unreadable)
            and w.lease_until > tasker.now())
        and not exists (   -- no worker that may have the handler was alive lately, not even a busy one
          select from tasker.workers w where w.kind = 'worker' and i.namespace = any (w.namespaces)
            and (i.template_id || ':' || i.ordinal) <> all (w.unserved)
            and w.lease_until > tasker.now() - (select g.unserved from grace g))),
    'unpromoted', (select jsonb_agg(i.j) from item i where i.state = 'waiting_for_retry'
      and not exists (select from tasker.timers m where m.subject = i.workflow_step_uuid)),
    'unfinished', (select jsonb_agg(o.task_uuid) from (
        -- each in the slice that it begins in
        select * from open o where o.waits = (select c.everything from slice c)
          and o.task_uuid > (select c.behind from slice c)
          and (o.task_uuid < (select e.step from reached e)) is not false) o
      where (o.done = o.total
        or (o.active = 0 and o.retrying = 0 and o.held = 0 and o.failed + o.cancelled > 0
          and o.state <> 'blocked_by_failures') or tasker.task_is_passing(o.state))
        and (select greatest(o.updated_at, g.finalizations_since) < tasker.now() - g.idle from grace g))))
$$;
