-- The reasons for which the unfinished steps of a task do not run now, as values; the sentences are in Python
-- (tasker/services/tasks). Reads only, in one statement, so all reasons were true at one moment.
-- Steps with the same reason and values form one group, described by the first of them to move. The cost
-- grows with the unfinished steps and the edges of the task, independent of the rest of the database: one row
-- for each step, and its last failure for each failed one; data of a template step, a worker or a group is
-- read once. A `limit 1` keeps an index probe from becoming a join with a whole table, whatever the planner
-- estimates.
-- p_args: {task, step: only this one, or the instances of this batch worker, ended or not; results_queue,
--   groups and names of steps in each: maximum numbers}
-- Returns: {} if there is no such task; else {task_uuid, namespace, template, status, finished, at, alive:
--   number of live processes anywhere, groups: [{reason, count, steps: [names], of: [their names in the
--   template], values}], known: with `step`, the first names of the template's steps, more: number of groups
--   left out}
create or replace function tasker.explain_v1(p_args jsonb) returns jsonb
language sql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
  with task as materialized (
    select t.*, ns.name as namespace, nt.name as template, p_args->>'step' as step, w.ordinal as wanted,
      w.is_static is false as of_many, tasker.required(p_args, 'names')::int as names,
      -- the ordinals to explain
      case when p_args->>'step' is null then 0 else coalesce(w.ordinal, -1) end as lowest,
      case when p_args->>'step' is null then 2147483647 else coalesce(w.ordinal, -1) end as highest
    from tasker.tasks t
    join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
    join tasker.named_tasks nt on nt.named_task_uuid = t.named_task_uuid
    left join lateral (   -- by the task's step of that name, if it has one: the template may be wide
      select ts.ordinal, ts.is_static from tasker.workflow_steps s
      join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
        and ts.name = s.name
      where s.task_uuid = t.task_uuid and s.name = p_args->>'step'
      union all
      select ts.ordinal, ts.is_static from tasker.template_steps ts
      where ts.template_id = t.template_id and ts.name = p_args->>'step'
      limit 1) w on true
    where t.task_uuid = (p_args->>'task')::uuid
  ), chosen as materialized (   -- the steps to explain; one step by its name, whatever else the task has
    select s.* from task t join tasker.workflow_steps s on s.task_uuid = t.task_uuid and s.name = t.step
    union all
    select s.* from task t join tasker.workflow_steps s on s.task_uuid = t.task_uuid and s.ordinal = t.wanted
    where t.of_many and s.name <> t.step
    union all
    select s.* from task t join tasker.workflow_steps s on s.task_uuid = t.task_uuid
    where t.step is null and not tasker.step_satisfies(s.state, s.settled)
      and s.state <> 'cancelled'
  ), alive as materialized (
    select w.*, tasker.worker_label(w.worker_uuid, w.name) as label,
      greatest(w.concurrency - w.in_hand, 0) as free,
      w.kind = 'worker' and t.namespace = any (w.namespaces) as serves
    from task t cross join tasker.workers w where w.stopped_at is null and w.lease_until > tasker.now()
  ), fact as materialized (   -- once for the task
    select count(*) as alive, count(*) filter (where w.kind = 'orchestrator') as orchestrators,
      (select coalesce(sum(c.enqueued), 0) from tasker.enqueue_counters c
        join task t using (namespace_id)) as enqueued,
      (select jsonb_build_object('queue', p.queue, 'actor', p.actor, 'reason', p.reason,
          'paused_at', p.paused_at)
        from tasker.pauses p where p.queue = p_args->>'results_queue') as results_pause,
      (select tasker.live_workers_for(t.namespace, t.template_id, null) from task t) as takers
    from alive w
  ), takers as materialized (   -- the possible workers of steps that a worker has refused, by ordinal
    select coalesce(jsonb_object_agg(r.ordinal,
          tasker.live_workers_for(r.namespace, r.template_id, r.ordinal)), '{}') as of_ordinal from (
      select distinct t.namespace, t.template_id, split_part(k.key, ':', 2)::int as ordinal
      from task t cross join alive w cross join unnest(w.unserved) as k (key)
      where w.serves and split_part(k.key, ':', 1) = t.template_id::text) r
  ), pause as materialized (   -- the oldest pause of ready steps, by ordinal
    select coalesce(jsonb_object_agg(o.ordinal, p.pause), '{}') as of_ordinal from (
      select distinct t.namespace, s.namespace_id, s.template_id, s.ordinal, s.task_uuid
      from task t cross join chosen s
      where tasker.step_is_to_run(s.state) and s.unmet = 0
        and exists (select from tasker.pauses p where p.namespace_id = t.namespace_id)) o
    cross join lateral (select jsonb_build_object('namespace', o.namespace, 'template', p.template,
        'step', p.step, 'task', p.task_uuid,
        'actor', p.actor, 'reason', p.reason, 'paused_at', p.paused_at) as pause
      from tasker.pauses_of(o.namespace_id, o.template_id, o.ordinal, o.task_uuid) p
      order by p.pause_id limit 1) p
  ), edge as materialized (
    select e.from_step_uuid as parent, e.to_step_uuid as child from task t
    join tasker.dynamic_edges e on e.task_uuid = t.task_uuid
    where t.step is null or t.of_many
      or e.to_step_uuid = (select c.workflow_step_uuid from chosen c where t.wanted is null)
    union all
    select tasker.step_uuid(c.task_uuid, p.ordinal + 1), c.workflow_step_uuid
    from chosen c join tasker.template_steps ts on ts.template_id = c.template_id and ts.ordinal = c.ordinal
      and ts.is_static
    cross join lateral unnest(ts.parents) as p (ordinal) where c.state = 'pending'
  ), parent as materialized (   -- the unfinished parents of each step
    select coalesce(jsonb_object_agg(e.step, e.parents), '{}') as of_step from (
      select e.child as step, jsonb_build_object('left', count(*),
        'parents', to_jsonb((array_agg(p.name order by p.ordinal, p.workflow_step_uuid))[1:5]),
        'failed', to_jsonb((array_agg(p.name order by p.ordinal, p.workflow_step_uuid)
          filter (where tasker.step_is_ended(p.state)))[1:5]),
        'key', md5(string_agg(p.workflow_step_uuid::text, ',' order by p.workflow_step_uuid))) as parents
      from edge e
      cross join lateral (select from tasker.workflow_steps x
        where x.workflow_step_uuid = e.child and x.state = 'pending' limit 1) c
      cross join lateral (select x.* from tasker.workflow_steps x where x.workflow_step_uuid = e.parent
        and not tasker.step_satisfies(x.state, x.settled) limit 1) p
      group by e.child) e
  ), open as materialized (
    select s.*, coalesce(b.rank, l.rank) as rank, b.paused, l.rule_id, l.value,
      f.error, m.metadata->>'reason' as deferred, m.metadata ? 'again' as snoozed,
      w.lease_until > tasker.now() as held, (select pause.of_ordinal from pause)->s.ordinal::text as pause,
      coalesce((select takers.of_ordinal from takers)->s.ordinal::text,
        (select fact.takers from fact)) as takers,
      (select takers.of_ordinal from takers) ? s.ordinal::text as refused, n.kind as wait,
      case when s.state = 'pending'
        then (select parent.of_step from parent)->s.workflow_step_uuid::text end as parents
    from chosen s
    left join lateral (select x.rank, x.paused from tasker.ready_backlog x
      where s.state = 'pending' and x.workflow_step_uuid = s.workflow_step_uuid limit 1) b on true
    left join lateral (select x.rank, x.rule_id, x.value from tasker.limit_waiters x
      where s.state = 'pending' and x.workflow_step_uuid = s.workflow_step_uuid limit 1) l on true
    left join lateral (select x.lease_until from tasker.workers x
      where s.state = 'in_progress' and x.worker_uuid = s.worker_uuid limit 1) w on true
    left join lateral (select x.kind from tasker.step_waits x
      where tasker.is_suspended(s.state, s.worker_uuid) and x.workflow_step_uuid = s.workflow_step_uuid
        and x.token = s.claim_token and x.ended_at is null limit 1) n on true
    left join lateral (select x.error from tasker.step_failures x where tasker.step_is_failed(s.state)
      and x.task_uuid = s.task_uuid and x.workflow_step_uuid = s.workflow_step_uuid
      order by x.failure_id desc limit 1) f on true
    left join lateral (select x.metadata from tasker.step_moves x where s.state = 'waiting_for_retry'
      and x.workflow_step_uuid = s.workflow_step_uuid and x.sort_key = s.sort_key
      and x.path = tasker.step_path('in_progress', 'defer') limit 1) m on true   -- as of a snooze
  ), judged as materialized (
    select o.*, case
      when o.settled = 's' then 'skipped' when o.settled is not null then 'tolerated'
      when tasker.step_is_done(o.state) or o.state = 'cancelled' then 'ended'
      when (select t.outcome from task t) in ('compensating', 'compensated', 'compensation_failed')
        and not tasker.is_late(o.template_id, o.ordinal) then 'undone'
      when o.state = 'error' then
        case when o.error->>'error_type' = 'outcome_unknown' then 'unknown' else 'failed' end
      when o.parents->'failed' <> 'null' then 'blocked'
      when o.unmet > 0 then 'waits'
      when tasker.step_is_parked(o.state) then case
        when (select results_pause from fact) is not null then 'result_paused'
        when (select orchestrators from fact) = 0 then 'parked_alone' else 'parked' end
      when tasker.is_suspended(o.state, o.worker_uuid) then
        case when o.wait is null then 'not_waiting' when o.due_at <= tasker.now() then 'wait_over'
          else 'waits_' || tasker.wait_word(o.wait) end
      when o.state = 'in_progress' then case when o.held is not true then 'lost'
        when o.deadline_at < tasker.now() then 'overrun' else 'running' end
      when o.state = 'waiting_for_retry' then case
        when o.due_at is null or o.due_at <= tasker.now() then 'overdue'
        when o.snoozed then 'snoozed' when o.deferred is not null then 'deferred' else 'retry' end
      when o.state = 'pending' and o.due_at is not null then case when o.due_at <= tasker.now() then 'late'
        when o.due_at = (select t.run_at from task t) then case
          when exists (select from tasker.debounces b where b.task_uuid = o.task_uuid) then 'debounced'
          else 'scheduled' end else 'delayed' end
      when o.pause is not null then 'paused'
      when o.rule_id is not null then case when tasker.lacks_tokens(o.rule_id, o.value) then 'rated'
        else 'limited' end
      when o.takers->>'takers' = '0' then case when o.takers->'refused_by' = '[]' then 'nobody'
        when o.takers->'refused' = o.takers->'unreadable' then 'unreadable'
        when (select tasker.missing_tags(t.namespace, t.template_id, o.ordinal) from task t) is not null
        then 'untagged'
        when (select tasker.too_few_slots(t.namespace, t.template_id, o.ordinal) from task t) is not null
        then 'oversized' else 'unserved' end
      when o.state = 'pending' then case when o.rank is null then 'not_queued' when o.paused then 'pause_over'
        when exists (select from tasker.task_namespaces n where n.namespace_id = o.namespace_id and n.ordered)
          then 'outranked' else 'held' end
      when (o.takers->>'free')::int = 0 then 'no_slots' when (o.takers->>'awake')::int = 0 then 'asleep'
      else 'queued' end as reason
    from open o
  ), told as (   -- the values that distinguish groups, and details beyond those of the first step
    select j.*, case
      when j.reason in ('waits', 'blocked') then coalesce(j.parents, jsonb_build_object('left', j.unmet))
      when j.reason = 'skipped' then jsonb_build_object('failed', (
        select jsonb_build_array(x.metadata->>'because') from tasker.step_moves x
        where x.workflow_step_uuid = j.workflow_step_uuid and x.sort_key = j.sort_key))
      when j.reason in ('retry', 'failed', 'unknown', 'overdue', 'tolerated')
        then jsonb_build_object('error_type', j.error->>'error_type',
        'message', j.error->>'message', 'final', j.error->>'final', 'attempt', j.attempts,
        'max_attempts', j.max_attempts)
      when j.reason in ('running', 'overrun', 'lost')
        then jsonb_build_object('worker_uuid', j.worker_uuid, 'attempt', j.attempts)
      when j.reason = 'debounced' then (select jsonb_build_object('submits', b.submits,
          'latest_at', b.latest_at)
        from tasker.debounces b where b.task_uuid = j.task_uuid)
      when j.reason in ('deferred', 'snoozed') then jsonb_build_object('why', j.deferred)
      when j.reason = 'paused' then jsonb_build_object('pause', j.pause)
      when j.reason = 'ended' then jsonb_build_object('state', j.state)
      when j.reason in ('limited', 'rated') then jsonb_build_object('key', j.rule_id || ' ' || j.value)
      when j.reason in ('unserved', 'unreadable', 'untagged', 'oversized')
        or j.refused then jsonb_build_object('ordinal', j.ordinal)
      else '{}' end as extra
    from judged j
  ), grouped as (
    select j.reason, count(*) as count, min(j.updated_at) as since, (array_agg(j.extra))[1] as extra,
      (array_agg(j.workflow_step_uuid
          order by coalesce(j.due_at, j.started_at, j.updated_at), j.rank, j.workflow_step_uuid))[1] as first,
      (array_agg(j.name order by j.ordinal, j.workflow_step_uuid))[1:(select t.names from task t)] as steps,
      (array_agg(j.ordinal
          order by j.ordinal, j.workflow_step_uuid))[1:(select t.names from task t)] as ordinals
    from told j group by j.reason, coalesce(j.extra->>'key', j.extra::text)
  ), refused as (   -- results that came for a step that has not ended, and were not accepted
    select 'refused' as reason, 1 as count, r.created_at as since, array[s.name] as steps,
      array[s.ordinal] as ordinals,
      jsonb_build_object('verdict', r.verdict, 'at', r.created_at,
        'worker', tasker.worker_label(r.worker_uuid, w.name)) as extra
    from task t
    cross join lateral (select distinct on (r.workflow_step_uuid) r.* from (
      select x.* from tasker.refused_results x where x.task_uuid = t.task_uuid order by x.id desc limit 100) r
      order by r.workflow_step_uuid, r.id desc) r
    join tasker.workflow_steps s on s.workflow_step_uuid = r.workflow_step_uuid
    left join tasker.workers w on w.worker_uuid = r.worker_uuid
    where not tasker.step_is_ended(s.state) and (t.step is null or s.name = t.step or s.ordinal = t.wanted)
  ), absent as (   -- steps of the template that the task does not have, or not yet
    select case when tasker.is_late(t.template_id, ts.ordinal) then 'at_rest'
        when x.after_failure then 'not_failed'
      when t.complete or x.decided then 'not_chosen' else 'not_created' end as reason,
      ts.name,
      ts.ordinal, x.parents
    from task t
    join lateral (select e.ordinal from tasker.template_steps e
        where e.template_id = t.template_id and not e.is_static
        and e.ordinal between t.lowest and t.highest
      except select s.ordinal from tasker.workflow_steps s
      where s.task_uuid = t.task_uuid and (t.step is null or t.of_many)) a on true
    join tasker.template_steps ts on ts.template_id = t.template_id and ts.ordinal = a.ordinal
    cross join lateral (
      select jsonb_agg(p.name order by p.ordinal) as parents,
        bool_or(tasker.creates_steps(p.step_type) and tasker.step_is_done(s.state)) as decided,
        bool_or(s.state is not null) as reached,
        bool_and(p.is_static and not tasker.creates_steps(p.step_type)) as after_failure
      from unnest(ts.parents) as o (ordinal)
      join tasker.template_steps p on p.template_id = t.template_id and p.ordinal = o.ordinal
      left join tasker.workflow_steps s on s.task_uuid = t.task_uuid and s.name = p.name) x
    where case when t.step is not null then ts.ordinal = t.wanted
      else not t.complete and x.reached and x.decided is not true and not x.after_failure end
  ), every as (
    select g.reason, g.count, g.since, g.steps, g.ordinals, g.extra - '{key,ordinal}'::text[] || case
      when g.reason = 'result_paused' then jsonb_build_object('pause', f.results_pause)
      when g.reason in ('queued', 'no_slots', 'asleep', 'nobody', 'unserved', 'unreadable',
          'untagged', 'oversized', 'held', 'outranked') then
        coalesce((select takers.of_ordinal from takers)->(g.ordinals[1])::text, f.takers)
        || jsonb_build_object('enqueued', f.enqueued, 'namespace', t.namespace,
          'handlers', case when g.reason in ('nobody', 'unserved') then (
          select jsonb_agg(distinct ts.handler) from unnest(g.ordinals) as o (ordinal)
          join tasker.template_steps ts on ts.template_id = t.template_id and ts.ordinal = o.ordinal) end,
          'lacking', case when g.reason = 'unserved' then (   -- resources that workers with it lack
          select jsonb_agg(distinct split_part(l.pair, ' ', 2)) from unnest(g.ordinals) as o (ordinal)
          join tasker.template_steps ts on ts.template_id = t.template_id and ts.ordinal = o.ordinal
          join alive w on w.serves
          join tasker.worker_callables c on c.worker_uuid = w.worker_uuid
          cross join unnest(c.lacking) as l (pair) where split_part(l.pair, ' ', 1) = ts.handler) end,
          'tags', case when g.reason = 'untagged' then
          to_jsonb(tasker.missing_tags(t.namespace, t.template_id, g.ordinals[1])) end,
          'most', case when g.reason = 'oversized' then
          tasker.too_few_slots(t.namespace, t.template_id, g.ordinals[1]) end,
          'needed', case when g.reason = 'oversized' then (select ts.slots from tasker.template_steps ts
            where ts.template_id = t.template_id and ts.ordinal = g.ordinals[1]) end)
        else '{}' end as extra, g.first
    from grouped g cross join fact f cross join task t
    union all
    select r.reason, r.count, r.since, r.steps, r.ordinals, r.extra, null from refused r
    union all
    select a.reason, 1, null, array[a.name], array[a.ordinal], jsonb_build_object('parents', a.parents),
      null from absent a
    union all
    select 'unevaluated', 0, t.updated_at, '{}', '{}', '{}', null from task t
    where not t.complete and t.step is null and not exists (select from open)
    union all
    select 'dated', 0, null, '{}', '{}', jsonb_build_object('ends_at', m.due_at), null
    from task t join tasker.timers m on m.subject = t.task_uuid and m.kind = 'd'
    where t.gates & 256 <> 0 and t.step is null
  ), numbered as (
    select e.*, row_number() over (order by array_position(array['failed', 'unknown', 'blocked', 'lost',
        'overrun', 'unserved', 'untagged', 'oversized', 'unreadable', 'nobody',
        'paused', 'result_paused', 'parked_alone', 'retry', 'deferred', 'snoozed', 'overdue', 'not_waiting',
        'wait_over', 'waits_event', 'waits_person', 'waits_task', 'waits_time', 'scheduled',
        'debounced', 'delayed', 'late', 'limited', 'rated'], e.reason), e.ordinals, e.reason = 'refused',
      e.reason) as nth
    from every e
  )
  select coalesce((select jsonb_build_object('task_uuid', t.task_uuid, 'namespace', t.namespace,
    'template', t.template,
    'status', t.state, 'finished', t.complete, 'at', tasker.now(),
    'alive', (select alive from fact), 'groups', (
      select coalesce(jsonb_agg(jsonb_build_object('reason', n.reason, 'count', n.count, 'since', n.since,
        'steps', n.steps,
        'of', (select jsonb_agg(ts.name order by o.nth)
          from unnest(n.ordinals) with ordinality as o (ordinal, nth)
          join tasker.template_steps ts on ts.template_id = t.template_id and ts.ordinal = o.ordinal),
        'values', jsonb_strip_nulls(coalesce(tasker.explained_values(n.first, n.reason), '{}') || n.extra))
      order by n.nth), '[]')
      from numbered n where n.nth <= tasker.required(p_args, 'groups')::int),
    'known', case when t.step is not null then (select jsonb_agg(ts.name order by ts.ordinal) from (
      select ts.name, ts.ordinal from tasker.template_steps ts where ts.template_id = t.template_id
      order by ts.ordinal limit 50) ts) end,
    'more', greatest(0, (select count(*) from numbered) - tasker.required(p_args, 'groups')::int))
  from task t), '{}')
$$;
