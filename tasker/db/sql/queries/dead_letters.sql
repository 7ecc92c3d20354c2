-- Reading and updating dead letters. Each query has a name and takes its parameters as %(name)s.

-- name: list
-- Entries, the newest first; those after a given entry.
select e.dlq_entry_uuid::text, e.task_uuid::text, e.original_state, e.dlq_reason::text, e.dlq_timestamp,
  e.task_snapshot, e.fingerprints, e.resolution_status::text, e.resolution_notes, e.resolved_at,
  e.resolved_by, e.metadata, e.created_at,
  -- no join: the planner might start with all tasks
  e.updated_at, (select t.state from tasker.tasks t where t.task_uuid = e.task_uuid)
from tasker.tasks_dlq e
where (%(status)s::text is null or e.resolution_status = %(status)s::tasker.dlq_resolution_status)
  and (%(reason)s::text is null or e.dlq_reason = %(reason)s::tasker.dlq_reason)
  and (%(fingerprint)s::text is null or e.fingerprints @> array[%(fingerprint)s::text])
  and (%(namespace)s::text is null or e.namespace = %(namespace)s)
  and (%(namespaces)s::text[] is null or e.namespace = any (%(namespaces)s))
  and (%(template)s::text is null or e.template = %(template)s)
  and (%(entry)s::uuid is null or e.dlq_entry_uuid = %(entry)s)
  and (%(task)s::uuid is null or e.task_uuid = %(task)s)
  and e.dlq_timestamp <= coalesce((select a.dlq_timestamp from tasker.tasks_dlq a
      where a.dlq_entry_uuid = %(after)s::uuid),
    'infinity')
  and (%(after)s::uuid is null or (e.dlq_timestamp, e.dlq_entry_uuid)
    < (select a.dlq_timestamp, a.dlq_entry_uuid from tasker.tasks_dlq a
      where a.dlq_entry_uuid = %(after)s::uuid))
order by e.dlq_timestamp desc, e.dlq_entry_uuid desc limit %(limit)s offset %(offset)s

-- name: stats
-- One row for each reason that has entries.
select d.dlq_reason::text, d.total_entries, d.pending, d.manually_resolved, d.permanent_failures, d.cancelled,
  d.oldest_entry, d.newest_entry, d.avg_resolution_time_minutes
from tasker.v_dlq_dashboard d order by d.pending desc, d.dlq_reason

-- name: queue
-- Pending entries, the most urgent first. Of one reason an older entry is never less urgent, so that the
-- oldest of each reason are enough, which an index has in order.
select q.dlq_entry_uuid::text, q.task_uuid::text, q.dlq_reason::text, q.original_state, q.current_state,
  q.namespace_name,
  q.task_name, q.dlq_timestamp, q.minutes_in_dlq, q.priority_score, q.time_in_state_minutes, q.fingerprints
from unnest(enum_range(null::tasker.dlq_reason)) r (reason)
cross join lateral (select e.dlq_entry_uuid from tasker.tasks_dlq e
  where e.dlq_reason = r.reason and e.resolution_status = 'pending'
    and (%(namespaces)s::text[] is null or e.namespace = any (%(namespaces)s))
  order by e.dlq_timestamp, e.dlq_entry_uuid limit %(limit)s) o
join tasker.v_dlq_investigation_queue q on q.dlq_entry_uuid = o.dlq_entry_uuid
order by q.priority_score desc, q.dlq_timestamp, q.dlq_entry_uuid limit %(limit)s

-- name: staleness
-- Open tasks, those nearest to their limit first.
select m.task_uuid::text, m.namespace_name, m.task_name, m.current_state, m.time_in_state_minutes,
  m.staleness_threshold_minutes, m.health_status, m.priority, m.task_age_minutes, m.excuse
from tasker.v_task_staleness_monitoring m
where %(namespaces)s::text[] is null or m.namespace_name = any (%(namespaces)s)
order by m.share desc, m.task_uuid limit %(limit)s

-- name: groups
-- Pending entries by failure, the largest group first; an entry may be in several. Newest and oldest by their
-- time.
select g.fingerprint, g.entries, g.oldest, g.newest, g.namespaces, l.error->>'error_type',
  l.error->>'message', l.name
from (
  select q.fingerprint, sum(q.entries)::bigint as entries, min(q.oldest) as oldest, max(q.newest) as newest,
    array_agg(q.namespace order by q.namespace) as namespaces
  from (
    select f.fingerprint, f.namespace, count(*) as entries, min(f.dlq_timestamp) as oldest,
      max(f.dlq_timestamp) as newest
    from (select unnest(e.fingerprints) as fingerprint, e.namespace, e.dlq_timestamp from tasker.tasks_dlq e
      where e.resolution_status = 'pending'
        and (%(namespaces)s::text[] is null or e.namespace = any (%(namespaces)s))) f
    group by f.fingerprint, f.namespace) q
  group by q.fingerprint
  order by 2 desc, 4 desc limit %(limit)s) g
left join lateral (select s->'last_error' as error, s->>'name' as name
  from (select e.task_snapshot from tasker.tasks_dlq e
    where e.dlq_timestamp = g.newest and e.resolution_status = 'pending' and e.namespace = any (g.namespaces)
      and g.fingerprint = any (e.fingerprints) limit 1) e
  cross join lateral jsonb_array_elements(e.task_snapshot->'workflow_steps') s
  where s->'last_error'->>'fingerprint' = g.fingerprint limit 1) l on true
order by g.entries desc, g.newest desc

-- name: trend
-- The number of entries with each of these fingerprints in each slice of the last seconds; no row for zero.
select f.fingerprint, f.slice, count(*)::int
from (
  select unnest(e.fingerprints) as fingerprint, e.slice
  from (
    select e.fingerprints, width_bucket(e.dlq_timestamp, w.starts) - 1 as slice
    from (select array_agg(tasker.now() - (%(slices)s::int - n)::double precision / %(slices)s::int
        * %(seconds)s::double precision * interval '1 second' order by n) as starts
      from generate_series(0, %(slices)s::int - 1) n) w
    join tasker.tasks_dlq e on e.dlq_timestamp >= w.starts[1] and e.dlq_timestamp <= tasker.now()
    where %(namespaces)s::text[] is null or e.namespace = any (%(namespaces)s)) e) f
where f.fingerprint = any (%(fingerprints)s::text[])
group by 1, 2

-- name: open
-- Adds a task to the list as an operator action. No row if there is no such task, or if it has a pending
-- entry.
insert into tasker.tasks_dlq (task_uuid, original_state, dlq_reason, task_snapshot, fingerprints,
  resolution_notes, metadata)
select t.task_uuid, t.state, %(reason)s::tasker.dlq_reason, tasker.dlq_snapshot(t.task_uuid),
  (tasker.dlq_fingerprints(t.task_uuid)).fingerprints, %(notes)s,
  coalesce(%(metadata)s::jsonb, '{}') || jsonb_build_object('opened_by', %(actor)s::text)
from tasker.tasks t where t.task_uuid = %(task)s::uuid for key share
on conflict (task_uuid) where resolution_status = 'pending' do nothing
returning dlq_entry_uuid::text

-- name: update
-- Stores findings and the resolution; a null value changes nothing. Metadata are merged. No row if there is
-- no such entry.
update tasker.tasks_dlq e set
  resolution_status = coalesce(%(status)s::tasker.dlq_resolution_status, e.resolution_status),
  resolution_notes = coalesce(%(notes)s, e.resolution_notes), resolved_by = coalesce(%(by)s, e.resolved_by),
  metadata = case when %(metadata)s::jsonb is null then e.metadata
    else coalesce(e.metadata, '{}') || %(metadata)s::jsonb end,
  resolved_at = case coalesce(%(status)s::tasker.dlq_resolution_status, e.resolution_status)
    when 'pending' then null
    else coalesce(e.resolved_at, tasker.now()) end,
  updated_at = tasker.now()
where e.dlq_entry_uuid = %(entry)s::uuid returning e.dlq_entry_uuid::text

-- name: replays
-- Replays, the newest first.
select r.replay_uuid::text, r.state, r.fingerprint, r.filter, r.rate_per_second, r.actor, r.reason,
  r.total, r.replayed, r.skipped, r.created_at, r.finished_at
from tasker.dlq_replays r where %(replay)s::uuid is null or r.replay_uuid = %(replay)s
order by r.created_at desc, r.replay_uuid desc limit %(limit)s

-- name: skipped
-- Tasks of a replay with nothing left to reset, in their order.
select i.task_uuid::text, i.detail from tasker.dlq_replay_items i
where i.replay_uuid = %(replay)s::uuid and i.outcome = 'skipped' order by i.position limit %(limit)s

-- name: steer_replay
-- Pauses, resumes or cancels a replay that has not ended. After a pause the replay continues at its rate; it
-- does not catch up.
update tasker.dlq_replays r set state = %(state)s,
  finished_at = case when %(state)s = 'cancelled' then tasker.now() end,
  paced_at = case when %(state)s = 'running'
    then greatest(r.paced_at, tasker.now() - interval '1 second' / r.rate_per_second)
    else r.paced_at end
where r.replay_uuid = %(replay)s::uuid and r.state in ('running', 'paused') returning r.replay_uuid::text
