-- Updates the backlog, the timers and the lines of limits after a write: steps that moved leave them, steps
-- that found no room or wait for a time or a permit enter. A step that ran before (a retry) keeps the age
-- of its task, as every step does whose template says so; one that waited for its time begins its age now.
-- Returns the task of each step that was backlogged and left.
-- Locks: backlog. As every function that locks several of these rows. A timer changes only under the lock of
--   its task.
create or replace function tasker.write_backlog_rows(p_judged tasker.judged_change[],
  p_placed tasker.placed_step[], p_now timestamptz) returns uuid[]
language plpgsql as $$
declare
  v_left uuid[];
  v_begun uuid[];
begin
  with leaving as materialized (
    select b.workflow_step_uuid from tasker.ready_backlog b
    where b.workflow_step_uuid = any (array(select j.step_uuid from unnest(p_judged) j
        where j.from_state = 'pending'))
    order by b.workflow_step_uuid for update
  ), gone as (
    delete from tasker.ready_backlog b   -- not a join: one planned for an empty backlog reads all of it
    where b.workflow_step_uuid = any (array(select l.workflow_step_uuid from leaving l))
    returning b.task_uuid
  ), over as (   -- backlogged steps have no timer
    delete from tasker.timers m
    where m.subject = any (array(select j.step_uuid from unnest(p_judged) j
      where tasker.step_is_timed(j.from_state)
      and j.step_uuid <> all (array(select l.workflow_step_uuid from leaving l))))
    returning m.subject, m.task_uuid, m.kind
  ), unlined as (
    delete from tasker.limit_waiters w
    where w.workflow_step_uuid = any (array(select x.workflow_step_uuid from unnest(p_judged) j
        cross join lateral (select w.workflow_step_uuid from tasker.limit_waiters w
          where w.workflow_step_uuid = j.step_uuid offset 0) x   -- mostly none
        where j.from_state = 'pending'))
    returning w.task_uuid
  )
  select array_agg(q.task_uuid), coalesce(array_agg(q.subject) filter (where q.subject is not null), '{}')
  into v_left, v_begun
  from (select null::uuid as subject, g.task_uuid from gone g
    union all select o.subject, o.task_uuid from over o where o.kind = 'b'
    union all select null, u.task_uuid from unlined u) q;

  with timed as (
    insert into tasker.timers as m (subject, kind, due_at, task_uuid, token)
    select j.step_uuid, 'r', p_now + tasker.ms(j.delay_ms), j.task_uuid, j.token
    from unnest(p_judged) j where j.to_state = 'waiting_for_retry'
    union all
    select p.step_uuid, 'b', p.begins_at, p.task_uuid, p.token from unnest(p_placed) p
    where p.begins_at is not null and p.place = 'hold'
    on conflict (subject, kind) do update set due_at = excluded.due_at, token = excluded.token
  )
  insert into tasker.ready_backlog (workflow_step_uuid, task_uuid, namespace_id, rank, paused, priority,
    flow)
  select p.step_uuid, p.task_uuid, p.namespace_id,
    tasker.backlog_rank(case when p.moved and p.step_uuid <> all (v_begun) or t.gates & 2 <> 0
        then t.created_at else p_now end,
      p.priority, p.held_rank), p.paused, case when n.ordered then p.priority end,
    case when n.fair_default is not null
      then tasker.flow_of(p.namespace_id, p.task_uuid, p.template_id) end
  from unnest(p_placed) p join tasker.tasks t on t.task_uuid = p.task_uuid
  join tasker.task_namespaces n on n.namespace_id = p.namespace_id
  where p.place = 'hold' and p.begins_at is null and not p.limited;
  if exists (select from unnest(p_placed) p where p.limited) then
    insert into tasker.limit_waiters (workflow_step_uuid, task_uuid, rule_id, value, rank, several)
    select p.step_uuid, p.task_uuid, l.rule_id, l.value,
      tasker.backlog_rank(case when p.moved and p.step_uuid <> all (v_begun) then t.created_at else p_now end,
        p.priority, p.held_rank),
      l.number > 1
    from unnest(p_placed) p join tasker.tasks t on t.task_uuid = p.task_uuid
    cross join lateral (select x.rule_id, x.value, count(*) over () as number
      from tasker.limits_of(p.step_uuid, p.template_id, p.ordinal) x
      where not exists (select from tasker.limit_permits m where m.subject = x.subject
        and m.rule_id = x.rule_id)
      order by x.nth limit 1) l
    where p.limited;
  end if;
  return v_left;
end
$$;

-- The rank of a backlogged step; the lowest is released first. It combines priority with ageing (a point of
-- priority is worth ten minutes of waiting) and rotation over tasks: the n-th backlogged step of one write
-- ranks n/20 s later, so one fan-out of 100,000 steps shares the queue with other ready steps. All steps age
-- at the same rate, so a rank never changes.
create or replace function tasker.backlog_rank(p_now timestamptz, p_priority int, p_nth int)
returns float8 language sql immutable parallel safe as $$
  select extract(epoch from p_now)::float8 - p_priority * 600.0::float8 + p_nth * 0.05
$$;
