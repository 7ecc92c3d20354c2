-- Moves steps whose time has come: retries become pending -> enqueued, delayed steps begin; both may be
-- handed off to the caller. Ends waits of suspended steps (tasker.results_of_waits). Cancels tasks that have
-- expired (tasker.expire_tasks), those that give way under a limit, and children for whose end no step waits
-- any more (tasker.cancel_tasks); fails those whose deadline has passed (tasker.fail_overdue_tasks). Reminds
-- of approvals, and escalates them (tasker.remind_approvals).
-- Takes the longest due ones of the tasks that it can lock (SKIP LOCKED), so any number of processes may run
-- it, and a locked task delays only its own steps. With `turn_ms` one of them is the timekeeper
-- (tasker.keep_time): it moves what is due, the others only what has been due for `late_ms`, so a hundred
-- processes need not watch the same timers, and those of a dead timekeeper are late by little.
-- Grants permits of noted keys (tasker.grant_noted). Schedules that are due are only named: a process
-- computes what follows (tasker.fire_schedule_v1).
-- Locks: tasks (skips), then as advance_v1, then as grant_noted.
-- p_args: as advance_v1 without items, limit, turn_ms, late_ms.
-- Returns: as advance_v1, with promoted, keeper (whether the caller is the timekeeper), next_due_ms (null:
--   nothing waits, or another process is the timekeeper; 0: more may be due) and passed_over (true: steps of
--   tasks locked by other transactions are due), schedules (identifiers of those that are due), unplanned
--   (failures that the caller has to plan, as items of advance_v1), unmatched (true: events or waits have
--   not looked for each other, see unmatched_v1), and children (true: see child_work_v1).
create or replace function tasker.due_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_limit constant int not null := (p_args->>'limit')::int;
  v_keeper constant boolean := coalesce(tasker.keep_time((p_args->>'worker')::uuid,
      (p_args->>'turn_ms')::numeric), true);
  v_until constant timestamptz := v_now - case when v_keeper then interval '0'
    else tasker.ms(coalesce((p_args->>'late_ms')::numeric, 0)) end;
  v_items jsonb;
  v_expired uuid[];
  v_overdue uuid[];
  v_giving_way uuid[];
  v_orphaned uuid[];
  v_cancelled uuid[];
  v_reminders jsonb;
  v_found int;
  v_answer jsonb := '{}';
  v_failed jsonb;
  v_next timestamptz;
  v_passed_over boolean;
  v_schedules jsonb;
  v_unplanned jsonb;
  v_granted jsonb;
begin
  select jsonb_agg(jsonb_build_object('s', q.subject, 't', q.task_uuid,
    'kind', case q.kind when 'r' then 'promote' when 'b' then 'unhold' else 'ok' end,
    'k', q.token) || case q.kind
      when 'b' then jsonb_build_object('n', jsonb_build_object('waited_until', q.due_at)) else '{}' end)
      filter (where q.kind in ('r', 'b', 'w')), array_agg(q.subject) filter (where q.kind = 'x'),
    array_agg(q.subject) filter (where q.kind = 'd'),
    array_agg(q.subject) filter (where q.kind = 'c'),
    jsonb_agg(jsonb_build_object('s', q.subject, 'k', q.token, 'kind', q.kind))
      filter (where q.kind in ('m', 'e')),
    array_agg(q.subject) filter (where q.kind = 'p'), count(*)
  -- the token: a later failure of the same step is not due yet
  into v_items, v_expired, v_overdue, v_giving_way, v_reminders, v_orphaned, v_found
  -- not a join: one planned while there were few tasks compares each timer with all of them. The timers are
  -- in their order before a task is locked, and no more tasks are than the limit lets through.
  from (select m.* from (select x.subject, x.task_uuid, x.token, x.kind, x.due_at from tasker.timers x
          where x.due_at <= v_until order by x.due_at offset 0) m
        cross join lateral (select from tasker.tasks t where t.task_uuid = m.task_uuid
          for no key update skip locked) t
        limit v_limit) q;
  if v_overdue is not null then   -- first: no step of these is to begin
    v_answer := tasker.fail_overdue_tasks(v_overdue, p_args, v_answer);
  end if;
  v_items := tasker.results_of_waits(tasker.fail_unstartable_steps(v_items));
  if v_items is not null then
    v_failed := v_answer;
    v_answer := tasker.advance_v1(p_args
      || jsonb_build_object('items', v_items, 'wait', false, 'grants', false)
      || case when jsonb_path_exists(v_items, '$[*] ? (@.kind == "ok")') then '{"events": true}'
        else '{}'::jsonb end);
    v_answer := v_answer || jsonb_build_object(
      'promoted', coalesce((v_failed->>'promoted')::int, 0) + jsonb_array_length(v_items)
      - (select count(*) from jsonb_object_keys(coalesce(nullif(v_answer->'verdicts', 'null'), '{}'))));
    if v_overdue is not null then
      v_answer := tasker.merged_ends(v_failed, v_answer);
    end if;
    select jsonb_agg(i) into v_unplanned from jsonb_array_elements(v_items) i
    where v_answer->'verdicts'->>(i->>'s') = 'replan';
    -- of a step that waits no more
    delete from tasker.timers m using jsonb_to_recordset(v_items) as i (s uuid, k bigint)
    where m.subject = i.s and m.token = i.k and v_answer->'verdicts'->>i.s::text in ('stale', 'cancelled');
  end if;
  if v_reminders is not null then   -- last of an approval that ends at the same time
    perform tasker.remind_approvals(v_reminders, v_now);
  end if;
  if v_expired is not null then
    v_answer := tasker.expire_tasks(v_expired, p_args, v_answer);
  end if;
  if v_giving_way is not null then
    v_answer := tasker.cancel_tasks(v_giving_way, 'limit', p_args, v_answer);
    delete from tasker.timers m where m.subject = any (v_giving_way) and m.kind = 'c';
  end if;
  if v_orphaned is not null then
    -- one whose other steps are at rest ends by itself: a cancel would leave its cleaning up undone
    v_cancelled := array(select t.task_uuid from tasker.tasks t
      where t.task_uuid = any (v_orphaned) and t.phase is null);
    v_answer := tasker.cancel_tasks(v_cancelled, 'parent_ended', p_args, v_answer);
    v_answer := v_answer || jsonb_build_object('promoted', (v_answer->>'promoted')::int
      + cardinality(v_orphaned) - cardinality(v_cancelled));
    delete from tasker.timers m where m.subject = any (v_orphaned) and m.kind = 'p';
  end if;
  select bool_or(q.kind <> 's'), jsonb_agg(q.subject order by q.due_at) filter (where q.kind = 's')
  into v_passed_over, v_schedules
  from (select m.kind, m.subject, m.due_at from tasker.timers m where m.due_at <= v_until and (m.kind = 's'
      -- offset: a look-up for each; else the planner may hash all tasks that there are
      or exists (select from tasker.tasks t where t.task_uuid = m.task_uuid offset 0))
    order by m.due_at limit v_limit) q;
  v_granted := tasker.grant_noted(p_args || jsonb_build_object('slots',   -- also for the steps above
    greatest(0, coalesce((p_args->>'slots')::int, 0)
      - coalesce(jsonb_array_length(nullif(v_answer->'claims', 'null')), 0))), v_until);
  if v_granted <> '{}' then
    v_answer := v_answer || jsonb_build_object(
      'claims', nullif(coalesce(nullif(v_answer->'claims', 'null'), '[]')
        || coalesce(v_granted->'claims', '[]'), '[]'),
      'send', nullif(coalesce(nullif(v_answer->'send', 'null'), '[]')
        || coalesce(v_granted->'send', '[]'), '[]'),
      'promoted', coalesce((v_answer->>'promoted')::int, 0) + coalesce((v_granted->>'granted')::int, 0));
  end if;
  if v_found = v_limit then
    v_next := v_now;
  else
    if v_keeper then
      v_next := least((select m.due_at from tasker.timers m where m.due_at > v_now order by m.due_at limit 1),
        (select n.due_at from tasker.limit_notes n where n.due_at > v_now order by n.due_at limit 1));
    end if;
    if v_passed_over or exists (select from tasker.limit_notes n where n.due_at <= v_until) then
      v_answer := v_answer || '{"passed_over": true}';
    end if;
  end if;
  if v_unplanned is not null then
    v_answer := v_answer || jsonb_build_object('unplanned', v_unplanned);
  end if;
  if exists (select from tasker.incoming_events e where e.routed_at is null)
      or exists (select from tasker.step_waits w where w.kind <> 'c' and not w.probed and w.ended_at is null)
      then
    v_answer := v_answer || '{"unmatched": true}';
  end if;
  if exists (select from tasker.step_waits w where w.kind = 'c' and not w.probed and w.ended_at is null)
      or exists (select from tasker.fan_outs f where f.due and f.look_at <= v_now)
      or exists (select from tasker.child_ends) then
    v_answer := v_answer || '{"children": true}';
  end if;
  if v_schedules is not null then
    v_answer := v_answer || jsonb_build_object('schedules', v_schedules);
  end if;
  return (v_answer - 'verdicts') || jsonb_build_object('keeper', v_keeper)
    || case when v_next is null then '{}' else jsonb_build_object('next_due_ms',
    greatest(0, ceil(extract(epoch from v_next - v_now) * 1000))) end;
end
$$;
