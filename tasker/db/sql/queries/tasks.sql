-- Reading tasks. Each query has a name and takes its parameters as %(name)s.

-- name: report
-- One task as a JSON document, its steps in topological order as arrays (`tasker.views.tasks.STORED`): of a
-- thousand the names of their fields would be half of the text. No row when there is no such task. What
-- belongs to a step comes by an index on the step, and only where there is some: a step that is complete with
-- its one claim has neither failed nor been reused. The parents of static steps are ordinals, those of others
-- come once as `edges`: the caller puts them together. `{columns}` are the task's own.
-- `{of_page}` and `{names}` are empty and null, or a page of the steps and the names of its static parents
-- (`page_of_steps`, `static_names`).
select json_build_object('task', (select row_to_json(v) from (select {columns}) v),
  'total', t.total,
  'edges', (
    select coalesce(json_agg(json_build_array(e.to_step_uuid, p.name) order by p.workflow_step_uuid), '[]')
    from tasker.dynamic_edges e join tasker.workflow_steps p on p.workflow_step_uuid = e.from_step_uuid
    where e.task_uuid = t.task_uuid {edges_of_page}),
  'names', {names},
  'steps', (
    select json_agg(json_build_array(s.workflow_step_uuid, s.name, ts.step_type, ts.handler,
      s.state, s.attempts, s.max_attempts, s.ordinal, case when ts.is_static then ts.parents end, r.result,
      case when not c.is_short then (
        select json_agg(x.error || jsonb_build_object('at', x.created_at, 'worker', x.worker_uuid)
            order by x.failure_id)
        from tasker.step_failures x
        where x.task_uuid = s.task_uuid and x.workflow_step_uuid = s.workflow_step_uuid) end,
      (select g.execution_time_ms from tasker.step_moves g
        where g.workflow_step_uuid = s.workflow_step_uuid and tasker.path_succeeded(g.path) is not null
        order by g.sort_key desc limit 1),
      k.checkpoint->'items_processed',
      case when not c.is_short then (
        select max(g.metadata->>'reused_from') from tasker.step_moves g
        where g.workflow_step_uuid = s.workflow_step_uuid) end,
      coalesce(s.ordinal = any (u.ordinals) and tasker.has_no_live_worker(s), false),
      case when s.state = 'pending' then s.due_at end, s.settled,
      case when s.state = 'enqueued' or (s.state = 'pending' and s.unmet = 0) then (
        select jsonb_build_object('namespace', ns.name, 'template', p.template, 'step', p.step,
        'task', p.task_uuid, 'actor', p.actor, 'reason', p.reason, 'paused_at', p.paused_at)
        from tasker.pauses_of(s.namespace_id, s.template_id, s.ordinal, s.task_uuid) p
        order by p.pause_id limit 1) end)
      order by ts.ordinal, s.workflow_step_uuid)
    from tasker.workflow_steps s
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    left join tasker.step_results r on r.task_uuid = s.task_uuid and r.ordinal = s.ordinal
      and r.workflow_step_uuid = s.workflow_step_uuid
    left join tasker.step_checkpoints k on k.workflow_step_uuid = s.workflow_step_uuid
    cross join lateral (select s.state = 'complete' and s.attempts = 1 and s.claim_token = 1) c (is_short)
    where s.task_uuid = t.task_uuid {of_page}))
from tasker.tasks t
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
join tasker.task_details d on d.task_uuid = t.task_uuid
cross join lateral (   -- offset: once, not for each step
  select case
      when not t.complete then tasker.unserved_ordinals(ns.name, t.template_id) end as ordinals offset 0) u
where t.task_uuid = %(task)s

-- name: page_of_steps
-- The steps of a page of a task, in topological order.
select w.workflow_step_uuid from tasker.workflow_steps w where w.task_uuid = %(task)s::uuid
order by w.ordinal, w.workflow_step_uuid limit %(limit)s offset %(offset)s

-- name: slice_of_steps
-- The steps of a slice of a task in the order of their creation, which is a topological one, too: it costs
-- what it has.
select w.workflow_step_uuid from tasker.workflow_steps w
where w.workflow_step_uuid > %(after)s::uuid
  and w.workflow_step_uuid <= tasker.step_uuid(%(task)s::uuid, 16777215)
order by w.workflow_step_uuid limit %(limit)s offset %(offset)s

-- name: named_steps
-- The steps of a task with these names.
select w.workflow_step_uuid from tasker.workflow_steps w
where w.task_uuid = %(task)s::uuid and w.name = any (%(steps)s::text[])

-- name: counts
-- The numbers of a task's steps, in the order of `StepCounts`.
select t.total, t.done, t.failed, t.cancelled, t.active, t.retrying, t.held from tasker.tasks t
where t.task_uuid = %(task)s::uuid

-- name: first_failed
-- The first step of a task that is in error, in the order of creation; of failed attempts the first thousand
-- are read.
select s.name from (
  select distinct f.workflow_step_uuid from (
    select x.workflow_step_uuid from tasker.step_failures x where x.task_uuid = %(task)s::uuid
    order by x.workflow_step_uuid limit 1000) f) f
cross join lateral (select w.name from tasker.workflow_steps w
  where w.workflow_step_uuid = f.workflow_step_uuid and w.state = 'error'
    and w.settled is null limit 1) s
order by f.workflow_step_uuid limit 1

-- name: static_names
-- The names of the steps that those of a page depend on, by ordinal.
select json_object_agg(p.ordinal, p.name) from tasker.template_steps p
where p.template_id = t.template_id and p.is_static and p.ordinal = any (array(
  select unnest(c.parents) from tasker.workflow_steps w
  join tasker.template_steps c on c.template_id = w.template_id and c.ordinal = w.ordinal
  where w.workflow_step_uuid = any (array({page_of_steps})) and c.is_static))

-- name: progress
-- For a live view: a task, its current pauses, and its steps that changed since a moment (null: all) or run
-- right now, as one JSON document. A repeated call passes a moment some seconds before `at`, because a
-- transaction may be committed late.
select jsonb_build_object('status', t.state, 'finished', t.complete, 'total', t.total, 'done', t.done,
  'failed', t.failed,
  'at', tasker.now(),
  'pauses', case when t.complete or not exists (select from tasker.pauses) then '[]' else (
    select coalesce(jsonb_agg(jsonb_build_object('namespace', case when p.queue is null then ns.name end,
      'template', p.template,
      'step', p.step, 'task', p.task_uuid, 'queue', p.queue, 'actor', p.actor, 'reason', p.reason,
      'paused_at', p.paused_at)
      order by p.pause_id), '[]')
    from tasker.pauses p where p.pause_id in (
        select f.pause_id from (select distinct s.template_id, s.ordinal from tasker.workflow_steps s
          where s.task_uuid = t.task_uuid
            and (s.state = 'enqueued' or (s.state = 'pending' and s.unmet = 0))) s
        cross join lateral tasker.pauses_of(t.namespace_id, s.template_id, s.ordinal, t.task_uuid) f)
      or p.queue = %(results_queue)s
      and exists (select from tasker.workflow_steps s where s.task_uuid = t.task_uuid
        and tasker.step_is_parked(s.state))) end,
  'steps', (
    select coalesce(jsonb_agg(jsonb_build_object('name', s.name, 'template_step', ts.name, 'state', s.state,
      'attempts', s.attempts, 'max_attempts', s.max_attempts, 'at', s.updated_at, 'started_at', s.started_at,
      'due_at', s.due_at, 'items_processed', k.checkpoint->'items_processed',
      'reported', tasker.reported(p, s), 'unserved', case when s.ordinal = any (u.ordinals)
        and tasker.has_no_live_worker(s) then tasker.served_by(ts) end,
      'error', case when tasker.step_is_failed(s.state) then (
        select (array_agg(jsonb_build_object('type', x.error->>'error_type', 'message', x.error->>'message',
          'attempt', x.attempt) order by x.failure_id desc))[1]
        from tasker.step_failures x
        where x.task_uuid = s.task_uuid and x.workflow_step_uuid = s.workflow_step_uuid) end,
      'duration_ms', case when tasker.step_is_settled(s.state) then (   -- as in a report
        select (array_agg(g.execution_time_ms order by g.sort_key desc))[1] from tasker.step_moves g
        where g.workflow_step_uuid = s.workflow_step_uuid and tasker.path_succeeded(g.path) is not null) end)
      order by ts.ordinal, s.workflow_step_uuid), '[]')
    from tasker.workflow_steps s
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    left join tasker.step_checkpoints k on k.workflow_step_uuid = s.workflow_step_uuid
    left join tasker.step_progress p on p.workflow_step_uuid = s.workflow_step_uuid
    where s.task_uuid = t.task_uuid
      and (%(since)s::timestamptz is null or s.updated_at >= %(since)s or s.state = 'in_progress'
        or (s.ordinal = any (u.ordinals) and tasker.has_no_live_worker(s)))))
from tasker.tasks t
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
cross join lateral (   -- offset: once, not for each step
  select case
      when not t.complete then tasker.unserved_ordinals(ns.name, t.template_id) end as ordinals offset 0) u
where t.task_uuid = %(task)s

-- name: template_id
-- The compiled template that a task is pinned to.
select t.template_id from tasker.tasks t where t.task_uuid = %(task)s

-- name: template_ids
-- The templates that these tasks are pinned to.
select t.task_uuid::text, t.template_id from tasker.tasks t where t.task_uuid = any (%(tasks)s::uuid[])

-- name: starting_with
-- The tasks in a range of identifiers, the newest first, to find a task by the prefix of its identifier.
select t.task_uuid::text from tasker.tasks t where t.task_uuid between %(lowest)s::uuid and %(highest)s::uuid
  and (%(namespaces)s::text[] is null or t.namespace_id in (
    select n.namespace_id from tasker.task_namespaces n where n.name = any (%(namespaces)s)))
  and (%(tenants)s::text[] is null or t.tenant = any (%(tenants)s)) order by t.task_uuid desc limit %(limit)s

-- name: open_beside
-- The number of other open tasks: in the task's namespace, and in others.
select count(*) filter (where t.namespace_id = o.namespace_id),
  count(*) filter (where t.namespace_id <> o.namespace_id)
from tasker.tasks o join tasker.tasks t on t.task_uuid <> o.task_uuid
where o.task_uuid = %(task)s and not t.complete

-- name: list
-- These tasks, the newest first; `unserved` is the handler of the first step that waits because no worker
-- serves it, `paused` the oldest pause of a step that could run.
select t.task_uuid::text, ns.name as namespace, nt.name as template, nt.version, t.state as status,
  t.priority, t.total, t.done, t.failed, t.created_at, t.completed_at,
  case when not t.complete and t.active + t.held > 0 then (
    select tasker.served_by(ts) from tasker.workflow_steps s
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    where s.task_uuid = t.task_uuid and tasker.has_no_live_worker(s)
      and s.ordinal = any (array(select unnest(tasker.unserved_ordinals(ns.name, t.template_id))))
    order by s.workflow_step_uuid limit 1) end as unserved,
  case
    when not t.complete and exists (select from tasker.pauses p where p.namespace_id = t.namespace_id) then (
    select jsonb_build_object('namespace', ns.name, 'template', p.template, 'step', p.step,
      'task', p.task_uuid, 'actor', p.actor, 'reason', p.reason, 'paused_at', p.paused_at)
    from tasker.workflow_steps s
    cross join lateral tasker.pauses_of(s.namespace_id, s.template_id, s.ordinal, s.task_uuid) p
    where s.task_uuid = t.task_uuid and (s.state = 'enqueued' or (s.state = 'pending' and s.unmet = 0))
    order by p.pause_id limit 1) end as paused,
  case when t.waits then (select min(m.due_at) from tasker.timers m
      where m.subject between t.task_uuid and tasker.step_uuid(t.task_uuid, 16777215)
        and m.kind in ('r', 'b', 'w')) end as waits_until,
  case when t.suspended > 0 then tasker.waiting_for(t.task_uuid) else '{}' end as waiting_for,
  t.outcome
from tasker.tasks t
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
where t.task_uuid = any (%(tasks)s::uuid[]) order by t.task_uuid desc

-- name: own_pause
-- The pause of the task itself, even while it holds nothing back yet.
select jsonb_build_object('namespace', ns.name, 'template', null, 'step', null, 'task', p.task_uuid,
  'queue', null, 'actor', p.actor, 'reason', p.reason, 'paused_at', p.paused_at, 'held', null)
from tasker.tasks t join tasker.task_namespaces ns using (namespace_id)
join tasker.pauses p on (p.namespace_id, p.task_uuid) = (t.namespace_id, t.task_uuid)
where t.task_uuid = %(task)s::uuid

-- name: history
-- Every transition of a task and of its steps, in order. Transitions of one subject are ordered by their sort
-- keys, because clocks go back (after a failover) and a transaction that began earlier may commit later;
-- between subjects the time orders them.
select h.kind, h.step, h.from_state, h.to_state, h.created_at, h.sort_key, h.worker, h.attempt, h.metadata,
  h.execution_time_ms
from (
  select 'task' as kind, null as step, h.from_state, h.to_state, h.created_at, h.sort_key,
    h.processor_uuid::text as worker, null::int as attempt, h.metadata, null::bigint as execution_time_ms,
    max(h.created_at) over (order by h.sort_key) as after
  from tasker.task_transitions h where h.task_uuid = %(task)s
  union all
  select 'step', s.name, h.from_state, h.to_state, h.created_at, h.sort_key, h.worker_uuid::text,
    h.attempt, h.metadata,
    h.execution_time_ms, max(h.created_at) over (partition by s.workflow_step_uuid order by h.sort_key)
  from tasker.workflow_steps s
  join tasker.workflow_step_transitions h on h.workflow_step_uuid = s.workflow_step_uuid
  where s.task_uuid = %(task)s and h.task_uuid = %(task)s) h
order by h.after, h.kind desc, h.step, h.sort_key
limit %(limit)s offset %(offset)s

-- name: history_of_steps
-- The transitions of the task and of a page of its steps, in the order of their creation; each as `history`
-- has it.
select h.kind, h.step, h.from_state, h.to_state, h.created_at, h.sort_key, h.worker, h.attempt, h.metadata,
  h.execution_time_ms
from (
  select 'task' as kind, null as step, h.from_state, h.to_state, h.created_at, h.sort_key,
    h.processor_uuid::text as worker,
    null::int as attempt, h.metadata, null::bigint as execution_time_ms, null::uuid as uuid
  from tasker.task_transitions h where h.task_uuid = %(task)s::uuid
  union all
  select 'step', s.name, h.from_state, h.to_state, h.created_at, h.sort_key, h.worker_uuid::text,
    h.attempt, h.metadata, h.execution_time_ms, s.workflow_step_uuid
  from (
    select w.workflow_step_uuid, w.name from tasker.workflow_steps w
    where w.workflow_step_uuid between %(task)s::uuid and tasker.step_uuid(%(task)s::uuid, 16777215)
    order by w.workflow_step_uuid limit %(limit)s offset %(offset)s) s
  join tasker.workflow_step_transitions h on h.workflow_step_uuid = s.workflow_step_uuid
    and h.task_uuid = %(task)s::uuid) h
order by h.uuid nulls first, h.sort_key

-- name: events
-- The transitions of some tasks and their steps, each since a moment of its own (null: all), in the order of
-- `history`; the progress of a step is its last checkpoint. A repeated call passes a moment some seconds ago,
-- because a transaction may be committed late.
select w.task::text, h.kind, h.step, h.from_state, h.to_state, h.created_at, h.sort_key, h.worker, h.attempt,
  h.step_uuid::text, h.items, h.reported
from unnest(%(tasks)s::uuid[], %(since)s::timestamptz[]) w (task, since)
cross join lateral (
  select 'task' as kind, null::uuid as step_uuid, null as step, h.from_state, h.to_state, h.created_at,
    h.sort_key::bigint, h.processor_uuid::text as worker, null::int as attempt, null::jsonb as items,
    null::jsonb as reported, max(h.created_at) over (order by h.sort_key) as after
  from tasker.task_transitions h where h.task_uuid = w.task
  union all
  select 'step', s.workflow_step_uuid, s.name, h.from_state, h.to_state, h.created_at, h.sort_key,
    h.worker_uuid::text,
    h.attempt, null, null, max(h.created_at) over (partition by s.workflow_step_uuid order by h.sort_key)
  from tasker.workflow_steps s
  join tasker.workflow_step_transitions h on h.workflow_step_uuid = s.workflow_step_uuid
  where s.task_uuid = w.task and h.task_uuid = w.task and (w.since is null or s.updated_at >= w.since)
  union all
  select 'progress', s.workflow_step_uuid, s.name, null, s.state, k.updated_at,
    (extract(epoch from k.updated_at) * 1000000)::bigint, s.worker_uuid::text, s.attempts,
    k.checkpoint->'items_processed', null, k.updated_at
  from tasker.workflow_steps s join tasker.step_checkpoints k using (workflow_step_uuid)
  where s.task_uuid = w.task and s.state = 'in_progress' and k.checkpoint ? 'cursor'
  union all
  select 'progress', s.workflow_step_uuid, s.name, null, s.state, p.reported_at,
    (extract(epoch from p.reported_at) * 1000000)::bigint, s.worker_uuid::text, s.attempts, null,
    tasker.reported(p, s), p.reported_at
  from tasker.workflow_steps s join tasker.step_progress p using (workflow_step_uuid)
  where s.task_uuid = w.task and tasker.reported(p, s) is not null) h
where w.since is null or h.created_at >= w.since
order by w.task, h.after, h.kind desc, h.step, h.sort_key

-- name: kept
-- Further data of a step beside its result: the batch assigned to it, its checkpoint and the time of that,
-- each null if absent.
select i.inputs, nullif(k.checkpoint - '{events,again}'::text[], '{}'), k.updated_at
from tasker.workflow_steps s
left join tasker.step_inputs i using (workflow_step_uuid)
left join tasker.step_checkpoints k using (workflow_step_uuid)
where s.task_uuid = %(task)s and s.name = %(step)s

-- name: failures
-- The failed attempts of a task's steps.
select s.name as step, f.attempt, f.created_at, f.worker_uuid::text as worker, f.error
from tasker.step_failures f join tasker.workflow_steps s on s.workflow_step_uuid = f.workflow_step_uuid
where f.task_uuid = %(task)s order by f.failure_id

-- name: state
select t.state, t.complete from tasker.tasks t where t.task_uuid = %(task)s

-- name: dead_local_workers
-- Workers of this host with a live lease; the caller knows which of their processes are gone.
select w.worker_uuid::text, w.pid from tasker.workers w
where w.host = %(host)s and w.stopped_at is null and w.lease_until > tasker.now()

-- name: template_step
-- The template and ordinal that a step was created from.
select s.template_id, s.ordinal from tasker.workflow_steps s
where s.task_uuid = %(task)s::uuid and s.name = %(step)s

-- name: ended
-- Those of the tasks that are final (true), and those that do not exist (false).
select w.task::text, t.complete is not null from unnest(%(tasks)s::uuid[]) w (task)
left join tasker.tasks t on t.task_uuid = w.task where t.complete is not false

-- name: known
-- Those of the tasks that exist.
select t.task_uuid::text from tasker.tasks t where t.task_uuid = any (%(tasks)s::uuid[])

-- name: of_identity
-- The tasks with these identities, with the fields of a log line.
select d.identity_hash, d.task_uuid::text, d.correlation_id::text, d.trace from tasker.task_details d
where d.identity_hash = any (%(identities)s)

-- name: duplicated
-- The tasks with these identities, with their states and numbers of steps.
select d.identity_hash, t.task_uuid::text, t.state, t.total from tasker.task_details d
join tasker.tasks t on t.task_uuid = d.task_uuid where d.identity_hash = any (%(identities)s)

-- name: other_inputs
-- The inputs of the tasks with these identities, where they differ from the inputs passed with the
-- identities; with the number of the identity, from 1.
select given.number, d.context::text
from unnest(%(identities)s::text[], %(inputs)s::text[]) with ordinality as given (identity, input, number)
join tasker.task_details d on d.identity_hash = given.identity
where d.context <> given.input::jsonb

-- name: parked_for_long
-- Those of these steps that were parked so many milliseconds ago, counted from the end of a pause of the
-- queue; all of them if no orchestrator is alive.
select s.workflow_step_uuid::text from tasker.workflow_steps s
where s.workflow_step_uuid = any (%(steps)s::uuid[])
  and (greatest(s.hinted_at, tasker.queue_open_since(%(queue)s)) < tasker.now() - tasker.ms(%(ms)s::numeric)
    or not exists (select from tasker.workers w where w.kind = 'orchestrator'
      and w.lease_until > tasker.now()))

-- name: still_parked
-- Parked steps whose messages are known to exist; skips locked rows.
update tasker.workflow_steps s set hinted_at = tasker.now()
where s.workflow_step_uuid = any (array(
  select p.workflow_step_uuid from tasker.workflow_steps p
  where p.workflow_step_uuid = any (%(steps)s::uuid[])
    and tasker.step_is_parked(p.state)
  order by p.workflow_step_uuid for no key update skip locked))

-- name: refused
-- Messages that no component could use, the newest first.
select p.moved_at, p.queue_name, p.reason, p.message from tasker.poison_messages p
where %(queue)s::text is null or p.queue_name = %(queue)s order by p.id desc limit %(limit)s

-- name: to_rerun
-- The reusable data of a task that runs again: its template, its input, and the results of its finished steps
-- of these types, by name (null: resolved by an operator).
select t.template_id, t.priority, d.context, coalesce((
  select jsonb_object_agg(s.name, r.result)
  from tasker.template_steps ts
  join tasker.workflow_steps s on s.task_uuid = t.task_uuid and s.ordinal = ts.ordinal
  left join tasker.step_results r on r.task_uuid = s.task_uuid and r.ordinal = s.ordinal
    and r.workflow_step_uuid = s.workflow_step_uuid
  where ts.template_id = t.template_id and ts.step_type = any (%(types)s)
    and tasker.step_is_done(s.state)), '{}')
from tasker.tasks t join tasker.task_details d using (task_uuid)
where t.task_uuid = %(task)s

-- name: whose
-- The fields of log lines about these tasks.
select t.task_uuid::text, d.correlation_id::text, ns.name, d.trace
from tasker.tasks t join tasker.task_details d using (task_uuid)
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
where t.task_uuid = any (%(tasks)s::uuid[])

-- name: closed
-- The fields that an attempt of these tasks would report about them, and the times of their ends.
select t.task_uuid::text, ns.name as namespace, nt.name as template, d.correlation_id::text,
  coalesce(t.completed_at, t.updated_at) as ended_at, d.trace->>'traceparent' as traceparent,
  d.trace->>'tracestate' as tracestate
from tasker.tasks t
join tasker.task_details d using (task_uuid)
join tasker.named_tasks nt using (named_task_uuid)
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
where t.task_uuid = any (%(tasks)s::uuid[])

-- name: completed_by_claim
-- A row if this claim has completed its step; a transaction that is about to do so is waited for.
select 1 from (select x.state, x.claim_token from tasker.workflow_steps x
  where x.workflow_step_uuid = %(step)s for no key update) s
where s.claim_token = %(token)s and s.state = 'complete'
