-- The invariants of the engine as a query: every row is a violation, an empty answer means that the engine is
-- healthy. Run by the tests after every step, and by operators who check a database. Each row of the history
-- is read once; of the paths, few of which differ, each is judged once; and the newest rows of the history
-- come from one sorted pass (a `limit 1` for each subject tempts the planner to walk the primary key
-- backwards each time). The tasks are a variable and the plan is made for each call, so the planner knows
-- their number.
-- p_args: {tasks: [uuid...]}, some hundreds at a time, or {} for all tasks and the invariants of no task
--   (fleet_violations).
create or replace function tasker.violations_v1(p_args jsonb)
returns table (rule text, subject uuid, detail text)
language plpgsql stable
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_custom_plan
set jit to off
as $$
#variable_conflict use_column
declare
  v_all constant boolean := p_args->'tasks' is null;
  v_tasks constant uuid[] := array(select jsonb_array_elements_text(p_args->'tasks')::uuid);
begin
  return query
  with tasks as materialized (
    select t.* from tasker.tasks t where v_all or t.task_uuid = any (v_tasks)
  ), steps as materialized (
    select s.*, t.complete as of_complete, t.state as of_state
    from tasks t join tasker.workflow_steps s on s.task_uuid = t.task_uuid
  ), counted as (
    select s.task_uuid, count(*) as total,
      count(*) filter (where tasker.step_satisfies(s.state, s.settled)) as done,
      count(*) filter (where s.state = 'error' and s.settled is null) as failed,
      count(*) filter (where s.state = 'cancelled' and s.settled is null) as cancelled,
      count(*) filter (where tasker.step_is_active(s.state)) as active,
      count(*) filter (where s.state = 'waiting_for_retry') as retrying,
      count(b.workflow_step_uuid) + count(m.subject) + count(w.workflow_step_uuid) as held,
      count(*) filter (where tasker.is_suspended(s.state, s.worker_uuid)) as suspended
    from steps s left join tasker.ready_backlog b on b.workflow_step_uuid = s.workflow_step_uuid
    left join tasker.timers m on m.subject = s.workflow_step_uuid and m.kind = 'b'
    left join tasker.limit_waiters w on w.workflow_step_uuid = s.workflow_step_uuid group by s.task_uuid
  ), step_log as materialized (
    select s.task_uuid, l.workflow_step_uuid, l.path as code, tasker.path_text(l.path) as path, l.sort_key,
      l.metadata, l.created_at
    from steps s join tasker.step_moves l on l.workflow_step_uuid = s.workflow_step_uuid
  ), task_log as materialized (
    select l.task_uuid, tasker.path_text(l.path) as path, l.sort_key
    from tasks t join tasker.task_moves l on l.task_uuid = t.task_uuid
  ), history as not materialized (
    select 'step' as kind, l.workflow_step_uuid as subject, l.path from step_log l
    union all
    select 'task', l.task_uuid, l.path from task_log l
  ), edges as (   -- separate: the view of both would read the edges of every task
    select d.from_step_uuid, d.to_step_uuid from tasks t
    join tasker.dynamic_edges d on d.task_uuid = t.task_uuid
    union all
    select f.workflow_step_uuid, tasker.step_uuid(f.task_uuid, e.to_ordinal + 1)
    from steps f join tasker.template_edges e on e.template_id = f.template_id and e.from_ordinal = f.ordinal
    where f.workflow_step_uuid = tasker.step_uuid(f.task_uuid, f.ordinal + 1)
  )
  select 'counters differ from the rows', t.task_uuid, format('row %s, counted %s',
    array[t.total, t.done, t.failed, t.cancelled, t.active, t.retrying, t.held, t.suspended],
    array[c.total, c.done, c.failed, c.cancelled, c.active, c.retrying, c.held, c.suspended])
  from tasks t join counted c using (task_uuid)
  where (t.total, t.done, t.failed, t.cancelled, t.active, t.retrying, t.held, t.suspended)
    is distinct from (c.total, c.done, c.failed, c.cancelled, c.active, c.retrying, c.held, c.suspended)
  union all
  select 'unmet differs from the parents', u.step,
    format('%s: row %s, counted %s', max(u.name), sum(u.unmet), sum(u.counted))
  from (
    select s.workflow_step_uuid as step, s.name, s.unmet, 0 as counted from steps s
    union all   -- not a join with the steps, which the planner without statistics might do row by row
    select e.to_step_uuid, null, 0, 1 from edges e join steps f on f.workflow_step_uuid = e.from_step_uuid
    where not tasker.step_satisfies(f.state, f.settled)) u
  group by u.step having sum(u.unmet) <> sum(u.counted)
  union all
  select 'started before its parents', s.workflow_step_uuid, s.name from steps s
  where s.unmet > 0 and tasker.step_is_under_way(s.state)
  union all
  select 'final task with open steps', s.task_uuid, s.name || ' ' || s.state from steps s
  where s.of_complete and tasker.step_is_under_way(s.state)
  union all
  select 'complete task with unfinished steps', s.task_uuid, s.name || ' ' || s.state from steps s
  where s.of_state = 'complete' and not tasker.step_satisfies(s.state, s.settled)
  union all
  select 'settled in another state', s.workflow_step_uuid, format('%s %s %s', s.name, s.settled, s.state)
  from steps s where s.state <> case s.settled when 's' then 'cancelled' else 'error' end
    and s.settled is not null
  union all
  select 'outcome differs from the steps', t.task_uuid, t.outcome from tasks t
  where (t.outcome in ('compensating', 'compensated', 'compensation_failed')) is not true
    and t.outcome is distinct from case when t.state = 'complete' then tasker.outcome_of(t.task_uuid) end
  union all
  select v.* from tasker.phase_violations(array(select t.task_uuid from tasks t)) v
  union all
  select 'flag complete differs from the state', t.task_uuid, t.state from tasks t
  where t.complete <> tasker.task_is_final(t.state)
  union all
  select 'ready, but neither enqueued nor in the backlog', s.workflow_step_uuid, s.name from steps s
  where not s.of_complete and s.state = 'pending' and s.unmet = 0
    and not exists (select from tasker.ready_backlog b where b.workflow_step_uuid = s.workflow_step_uuid)
    and not exists (select from tasker.limit_waiters w where w.workflow_step_uuid = s.workflow_step_uuid)
    and not exists (select from tasker.timers m where m.subject = s.workflow_step_uuid and m.kind = 'b')
  union all
  select 'waits for a time without a timer', s.workflow_step_uuid, s.name from steps s
  where s.state = 'waiting_for_retry'
    and not exists (select from tasker.timers m where m.subject = s.workflow_step_uuid and m.kind = 'r'
      and m.token = s.claim_token and m.due_at = s.due_at)
  union all
  select 'timer of a step that waits for no time', s.workflow_step_uuid,
    format('%s %s, timer %s', s.name, s.state, m.kind)
  from steps s join tasker.timers m on m.subject = s.workflow_step_uuid
  where case m.kind when 'r' then s.state <> 'waiting_for_retry'
    when 'w' then not tasker.is_suspended(s.state, s.worker_uuid) or m.token <> s.claim_token
    when 'm' then not tasker.is_suspended(s.state, s.worker_uuid) or m.token <> s.claim_token
    when 'e' then not tasker.is_suspended(s.state, s.worker_uuid) or m.token <> s.claim_token
    else s.state <> 'pending' or s.unmet > 0
    or s.of_complete
    or m.due_at <> s.due_at
    or exists (select from tasker.ready_backlog b where b.workflow_step_uuid = s.workflow_step_uuid) end
  union all
  select 'suspended without a wait of its token', s.workflow_step_uuid, s.name from steps s
  where tasker.is_suspended(s.state, s.worker_uuid)
    and not exists (select from tasker.step_waits w where w.workflow_step_uuid = s.workflow_step_uuid
      and w.token = s.claim_token and w.ended_at is null)
  union all
  select 'open wait of a step that is not suspended with its token', w.workflow_step_uuid,
    format('%s: token %s, wait %s %s', s.state, s.claim_token, w.kind, w.token)
  from tasks t join tasker.step_waits w on w.task_uuid = t.task_uuid and w.ended_at is null
  left join steps s on s.workflow_step_uuid = w.workflow_step_uuid
  where (tasker.is_suspended(s.state, s.worker_uuid) and w.token = s.claim_token) is not true
  union all
  select 'open wait of a task that is not marked as one with waits', w.workflow_step_uuid, w.kind::text
  from tasks t join tasker.step_waits w on w.task_uuid = t.task_uuid and w.ended_at is null
  where t.gates & 8 = 0
  union all
  select 'wait until a time without its timer', w.workflow_step_uuid, format('until %s', w.until)
  from tasks t join tasker.step_waits w on w.task_uuid = t.task_uuid and w.ended_at is null
  where w.until is not null and not exists (select from tasker.timers m
    where m.subject = w.workflow_step_uuid and m.kind = 'w' and m.token = w.token and m.due_at <= w.until)
  union all
  select v.* from tasks t cross join lateral tasker.fan_out_violations(t.task_uuid) v
  where t.gates & 1024 <> 0
  union all
  select 'open approval with enough votes', w.workflow_step_uuid, format('%s approved', count(*))
  from tasks t join tasker.step_waits w on w.task_uuid = t.task_uuid and w.ended_at is null and w.kind = 'a'
  join steps s on s.workflow_step_uuid = w.workflow_step_uuid
  join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
  join tasker.approval_votes v on v.workflow_step_uuid = w.workflow_step_uuid and v.token = w.token
    and v.decision = 'approved'
  group by w.workflow_step_uuid, ts.wait having count(*) >= (ts.wait->>'quorum')::int
  union all
  select 'decided without the votes for it', w.workflow_step_uuid, w.outcome
  from tasks t join tasker.step_waits w on w.task_uuid = t.task_uuid and w.outcome in ('approved', 'rejected')
  where not exists (select from tasker.approval_votes v where v.workflow_step_uuid = w.workflow_step_uuid
    and v.token = w.token and v.decision = w.outcome)
  union all
  select 'deadline without a timer', t.task_uuid, t.state
  from tasks t join tasker.task_details d on d.task_uuid = t.task_uuid
  where not t.complete and t.phase is null and d.deadline_at > tasker.now() and not exists (
    select from tasker.timers m where m.subject = t.task_uuid and m.kind = 'd' and m.due_at >= d.deadline_at)
  union all
  select 'waits for a permit, but is not ready', s.workflow_step_uuid, s.name || ' ' || s.state
  from steps s join tasker.limit_waiters w on w.workflow_step_uuid = s.workflow_step_uuid
  where s.state <> 'pending' or s.unmet > 0 or s.of_complete
    or exists (select from tasker.ready_backlog b where b.workflow_step_uuid = s.workflow_step_uuid)
    or exists (select from tasker.timers m where m.subject = s.workflow_step_uuid)
  union all
  select 'permit of a step that does not run', s.workflow_step_uuid, s.name || ' ' || s.state
  from steps s join tasker.limit_permits p on p.subject = s.workflow_step_uuid
  where not tasker.step_is_active(s.state) and not exists (
    select from tasker.ready_backlog b where b.workflow_step_uuid = s.workflow_step_uuid)
  union all
  select 'runs without a permit', s.workflow_step_uuid, s.name || ' ' || s.state
  from tasks t join steps s on s.task_uuid = t.task_uuid
  -- a permit of a rate ends with the claim
  where t.gates & 1 <> 0 and tasker.step_is_active(s.state) and not exists (
    -- a handler that waits has none
    select from tasker.step_waits w where w.workflow_step_uuid = s.workflow_step_uuid and w.kind = 'h'
      and w.ended_at is null)
    and exists (
    select from tasker.template_limits l join tasker.limit_rules r using (rule_id)
    where l.template_id = s.template_id and l.ordinal in (-1, s.ordinal)
      and (r.rate is null or s.state = 'enqueued' and s.attempts = 0
        -- a number that a rate got later counts what begins from then on
        or r.max_running is not null and s.started_at > r.changed_at)
      and not exists (select from tasker.limit_permits p where p.rule_id = l.rule_id
        and p.subject = case when l.ordinal < 0 then s.task_uuid else s.workflow_step_uuid end))
  union all
  select 'marked as paused, but no pause applies', s.workflow_step_uuid, s.name from steps s
  join tasker.ready_backlog b on b.workflow_step_uuid = s.workflow_step_uuid
  where b.paused and not tasker.narrowly_paused(s.namespace_id, s.template_id, s.ordinal, s.task_uuid)
    and not exists (select from tasker.task_namespaces n where n.namespace_id = b.namespace_id
      and n.marks_after is not null)
  union all
  select 'in the backlog, but not ready', s.workflow_step_uuid, s.name || ' ' || s.state
  from steps s join tasker.ready_backlog b on b.workflow_step_uuid = s.workflow_step_uuid
  where s.state <> 'pending' or s.unmet > 0 or s.of_complete
  union all
  select 'open task that nothing will move', t.task_uuid, t.state from tasks t
  where not t.complete and t.active = 0 and t.retrying = 0 and t.held = 0 and t.state <> 'blocked_by_failures'
  union all
  select 'history does not end in the state', s.workflow_step_uuid, format('%s, history %s', s.state, l.path)
  from steps s join (select distinct on (l.workflow_step_uuid) l.workflow_step_uuid, l.path, l.sort_key
    from step_log l order by l.workflow_step_uuid, l.sort_key desc) l
    on l.workflow_step_uuid = s.workflow_step_uuid
  where split_part(l.path, '>', -1) <> s.state or l.sort_key <> s.sort_key
  union all
  select 'history of the task does not end in its state', t.task_uuid,
    format('%s, history %s', t.state, l.path)
  from tasks t join (select distinct on (l.task_uuid) l.task_uuid, l.path, l.sort_key
    from task_log l order by l.task_uuid, l.sort_key desc) l
    on l.task_uuid = t.task_uuid
  where split_part(l.path, '>', -1) <> t.state or l.sort_key <> t.sort_key
  union all
  select 'gap in the history', l.workflow_step_uuid, format('%s then %s', l.before, l.path) from (
    select l.workflow_step_uuid, l.path, l.sort_key, lag(l.path) over w as before,
      lag(l.sort_key) over w as key_before
    from step_log l
    window w as (partition by l.workflow_step_uuid order by l.sort_key)) l
  where split_part(coalesce(l.before, 'pending'), '>', -1) <> split_part(l.path, '>', 1)
    or l.sort_key <> coalesce(l.key_before, 1) + cardinality(string_to_array(l.path, '>')) - 1
  union all
  select 'illegal transition of the ' || h.kind, h.subject, h.path
  -- offset: judge each path once
  from (select p.kind, p.path from (select distinct h.kind, h.path from history h offset 0) p
    where not tasker.path_is_legal(p.kind, p.path)) p
  join history h using (kind, path)
  union all
  select 'complete without exactly one accepted result', s.workflow_step_uuid, s.name
  from steps s left join (select l.workflow_step_uuid, count(*) as accepted
    from step_log l where split_part(l.path, '>', -1) = 'complete'
    group by l.workflow_step_uuid) l on l.workflow_step_uuid = s.workflow_step_uuid
  where s.state = 'complete' and l.accepted is distinct from 1
  union all   -- the ends of attempts in the history, compared with the events of each
  select 'accepted result without its event', m.step, format('%s: %s', m.name, e.name)
  from (
    select s.workflow_step_uuid as step, s.name, s.template_id, s.ordinal, l.sort_key, l.created_at,
      tasker.outcome_of_path(l.code) as outcome
    from steps s join step_log l on l.workflow_step_uuid = s.workflow_step_uuid
    where l.metadata->'reused_from' is null   -- a rerun: the task that it reuses published the event
      and exists (select from tasker.template_events e where e.template_id = s.template_id
        and e.ordinal = s.ordinal)) m
  join tasker.template_events e on e.template_id = m.template_id and e.ordinal = m.ordinal
    and tasker.event_fires(e.condition, m.outcome)
  where m.created_at >= coalesce((select max(p.before) from tasker.domain_events_pruned p), '-infinity')
    and not exists (select from tasker.domain_events d
      where d.workflow_step_uuid = m.step and d.sort_key = m.sort_key and d.number = e.number)
  union all
  select 'events that a handler published are missing', d.workflow_step_uuid,
    format('%s of %s', count(*), max(d.published_with))
  from tasks t join tasker.domain_events d on d.task_uuid = t.task_uuid
  where d.published_with is not null
    and d.created_at >= coalesce((select max(p.before) from tasker.domain_events_pruned p), '-infinity')
  group by d.workflow_step_uuid, d.sort_key having count(*) <> max(d.published_with)
  union all
  select 'event that nobody published', d.workflow_step_uuid, d.name
  from tasks t join tasker.domain_events d on d.task_uuid = t.task_uuid
  join steps s on s.workflow_step_uuid = d.workflow_step_uuid
  where d.published_with is null and not tasker.is_of_approval(d)
    and not exists (select from tasker.template_events e where e.template_id = s.template_id
    and e.ordinal = s.ordinal and e.number = d.number and e.name = d.name)
  union all
  select 'event of what was not accepted', d.workflow_step_uuid, d.name
  from tasks t join tasker.domain_events d on d.task_uuid = t.task_uuid
  where d.workflow_step_uuid <> d.task_uuid and not tasker.is_of_approval(d)
    and not exists (select from step_log l where l.workflow_step_uuid = d.workflow_step_uuid
    and l.sort_key = d.sort_key and tasker.outcome_of_path(l.code) = d.outcome)
  union all
  select 'ended task without its event, or the reverse', t.task_uuid, t.state from tasks t
  where t.gates & 512 <> 0
    and t.completed_at >= coalesce((select max(p.before) from tasker.domain_events_pruned p), '-infinity')
    and t.complete <> exists (select from tasker.domain_events d where d.workflow_step_uuid = t.task_uuid
      and d.sort_key = t.sort_key
      and d.name = tasker.task_event(t.state))
  union all
  select 'depth of a task differs from that of its parent', t.task_uuid,
    format('%s below %s', l.depth, p.depth)
  from tasks t join tasker.task_links l on l.child_uuid = t.task_uuid
  left join tasker.task_links p on p.child_uuid = l.parent_task
  where l.depth < 1 or l.depth <> p.depth + 1
  union all
  select v.* from tasker.fleet_violations() v where v_all;
end
$$;
