-- Writes what a process decided for a schedule that was due, or what an operator triggered: submits the
-- tasks, records each fire time, and sets the next timer, in one transaction. A decision that was made from
-- an earlier state of the schedule is refused (`revision`), so any number of processes may decide at the same
-- moment; and a fire time that has a task, or an outcome, gets no other one (the key of schedule_fires, and
-- the identity of the task).
-- Locks: schedule, then as submit_v1.
-- p_args: as submit_v1 without tasks and announce, and {schedule, revision, anchor_at, next_at, due_at
--   (absent: it has no timer), fires: [{fire_at, kind, outcome, detail, task: as in submit_v1, with outcome
--   `fired`}], keep_days, keep_fires}. With `trigger` only the tasks are submitted and recorded: anchor, next
--   fire time and timer stay.
-- Returns: as submit_v1, with {moved: true} if the schedule changed meanwhile (nothing is written), or
--   {due_ms: until its timer}.
create or replace function tasker.fire_schedule_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_id constant uuid := (p_args->>'schedule')::uuid;
  v_trigger constant boolean := coalesce((p_args->>'trigger')::boolean, false);
  v_due constant timestamptz := (p_args->>'due_at')::timestamptz;
  v_keep_days constant int not null := (p_args->>'keep_days')::int;
  v_keep_fires constant int not null := (p_args->>'keep_fires')::int;
  v_tasks jsonb;
  v_answer jsonb := '{}';
begin
  perform tasker.require_read_committed();
  perform from tasker.schedules h
  where h.schedule_uuid = v_id and h.revision = (p_args->>'revision')::bigint for update;
  if not found or v_trigger
    and exists (select from tasker.schedule_fires f, jsonb_array_elements(p_args->'fires') as g (fire)
      where f.schedule_uuid = v_id and f.fire_at = (g.fire->>'fire_at')::timestamptz) then
    return '{"moved": true}';
  end if;

  select jsonb_agg(g.fire->'task' order by g.n) into v_tasks
  from jsonb_array_elements(p_args->'fires') with ordinality as g (fire, n)
  where g.fire ? 'task' and not exists (select from tasker.schedule_fires f
    where f.schedule_uuid = v_id and f.fire_at = (g.fire->>'fire_at')::timestamptz and f.outcome <> 'queued');
  if v_tasks is not null then
    v_answer := tasker.submit_v1((p_args - array['fires', 'schedule'])
      || jsonb_build_object('tasks', v_tasks, 'announce', true));
    if v_answer ? 'forgotten' then
      return v_answer;
    end if;
  end if;

  with given as (
    -- one whose task was not created because another of its unique key runs is skipped
    select f.fire_at, f.kind, case when r.skipped then 'skipped' else f.outcome end as outcome,
      case when r.skipped then coalesce(f.detail, '{}')
        || jsonb_build_object('running', v_answer->'running'->(f.task->>'id')->0) else f.detail end as detail,
      case when f.outcome = 'fired' and not r.skipped then coalesce(
      (select t.task_uuid from tasker.tasks t where t.task_uuid = (f.task->>'id')::uuid),
      (select d.task_uuid from tasker.task_details d
        where d.identity_hash = f.task->>'identity')) end as task_uuid
    from jsonb_to_recordset(p_args->'fires') as f (fire_at timestamptz, kind text, outcome text,
      detail jsonb, task jsonb)
    cross join lateral (select (v_answer->'running' ? (f.task->>'id')) is true as skipped) r
  ), recorded as (
    insert into tasker.schedule_fires as f (schedule_uuid, fire_at, kind, outcome, task_uuid,
      decided_at, detail)
    select v_id, g.fire_at, g.kind, g.outcome, g.task_uuid, v_now, g.detail from given g order by g.fire_at
    on conflict (schedule_uuid, fire_at) do update set outcome = excluded.outcome,
      task_uuid = excluded.task_uuid,
      decided_at = excluded.decided_at, detail = coalesce(excluded.detail, f.detail)
      where f.outcome = 'queued'
    returning f.kind, f.fire_at, f.task_uuid
  ), submitted as (
    select max(r.fire_at) as newest,
      array_agg(r.task_uuid) filter (where r.kind in ('schedule', 'trigger')) as running,
      array_agg(r.task_uuid) filter (where r.kind in ('missed', 'backfill')) as catching_up
    from recorded r where r.task_uuid is not null
  )
  update tasker.schedules h set revision = h.revision + 1, updated_at = v_now,
    anchor_at = case when v_trigger then h.anchor_at else (p_args->>'anchor_at')::timestamptz end,
    next_at = case when v_trigger then h.next_at else (p_args->>'next_at')::timestamptz end,
    running = tasker.open_tasks(h.running, s.running),
    catching_up = tasker.open_tasks(h.catching_up, s.catching_up),
    last_fire_at = greatest(h.last_fire_at, s.newest),
    last_fired_at = case when s.newest is null then h.last_fired_at else v_now end
  from submitted s where h.schedule_uuid = v_id;
  if not v_trigger then
    perform tasker.set_schedule_timer(v_id, v_due);
  end if;

  delete from tasker.schedule_fires f where f.schedule_uuid = v_id and f.fire_at in (
    select o.fire_at from tasker.schedule_fires o
    where o.schedule_uuid = v_id and o.outcome <> 'queued'
      and o.decided_at < v_now - make_interval(days => v_keep_days)
      and o.fire_at < (select k.fire_at from tasker.schedule_fires k where k.schedule_uuid = v_id
        order by k.fire_at desc offset v_keep_fires - 1 limit 1)
    order by o.fire_at limit 20);
  return v_answer || case when v_trigger or v_due is null then '{}' else jsonb_build_object('due_ms',
    greatest(0, ceil(extract(epoch from v_due - v_now) * 1000))) end;
end
$$;

-- The tasks among both lists that are open: at most the last 100, which is more than any policy but `allow`
-- needs.
create or replace function tasker.open_tasks(p_before uuid[], p_new uuid[]) returns uuid[]
language sql stable as $$
  select coalesce((array_agg(q.task_uuid order by q.n))[greatest(1, count(*) - 99)::int:], '{}')
  from (select t.task_uuid, u.n from unnest(p_before || coalesce(p_new, '{}')) with ordinality as u (task, n)
    join tasker.tasks t on t.task_uuid = u.task where not t.complete) q
$$;
