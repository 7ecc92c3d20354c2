-- Creates the steps of a phase of tasks that have come to rest, and makes them ready in this transaction:
-- compensations of complete steps (phases c and k), or the steps of `finally` (f and x). A phase in which
-- nothing is to be done ends at once.
-- Locks: as advance_v1. The caller has locked the tasks; the steps are new.
-- p_phases: {task: phase}. p_args: worker, note, on_blocked, dead_letters, window, timeout_ms, grace_ms as
--   advance_v1.
-- Returns: {send, begins_in_ms, finished, at, waiters} as advance_v1, without those that are null.
create or replace function tasker.begin_phase(p_phases jsonb, p_args jsonb, p_now timestamptz) returns jsonb
language plpgsql as $$
declare
  v_args constant jsonb := jsonb_strip_nulls(jsonb_build_object('worker', p_args->'worker',
    'note', p_args->'note', 'on_blocked', p_args->'on_blocked', 'dead_letters', p_args->'dead_letters',
    'window', p_args->'window', 'timeout_ms', p_args->'timeout_ms', 'grace_ms', p_args->'grace_ms'));
  v_task uuid;
  v_phase "char";
  v_steps jsonb;
  v_items jsonb;
  v_idle tasker.task_change[] := '{}';   -- tasks whose phase has no step
  v_answer jsonb := '{}';
begin
  for v_task, v_phase in select p.key, p.value from jsonb_each_text(p_phases) p order by p.key loop
    if v_phase in ('c', 'k') then
      update tasker.tasks t set phase = v_phase, outcome = 'compensating' where t.task_uuid = v_task;
      v_steps := tasker.compensations_of(v_task);
    else
      update tasker.tasks t set phase = v_phase where t.task_uuid = v_task;
      v_steps := tasker.last_steps_of(v_task, p_now);
    end if;
    if v_steps is null then
      v_idle := v_idle || row(v_task, 0, 0, 0, 0, 0, 0, 0, 0)::tasker.task_change;
    else
      perform tasker.expand_step(v_task, v_steps, p_now);
      v_items := coalesce(v_items, '[]') || (
        select jsonb_agg(jsonb_build_object('s', s.workflow_step_uuid, 't', s.task_uuid, 'kind', 'unhold'))
        from jsonb_array_elements(v_steps) x
        cross join lateral (select w.workflow_step_uuid, w.task_uuid, w.unmet from tasker.workflow_steps w
          where w.task_uuid = v_task and w.name = x->>'name' offset 0) s
        where s.unmet = 0);
    end if;
  end loop;
  if v_items is not null then
    v_answer := jsonb_strip_nulls(tasker.advance_v1(v_args || jsonb_build_object('grants', false,
      'items', v_items)) - '{verdicts,claims}'::text[]);
  end if;
  if v_idle <> '{}' then
    v_answer := tasker.merged_ends(v_answer, coalesce(tasker.evaluate_tasks(v_idle, v_args, p_now), '{}'));
  end if;
  return v_answer;
end
$$;

-- The steps of `finally` of a task, as expand_step needs them. A task that an operator continued comes to
-- rest again: they run again, as new steps (`report.2`), and those that failed before do not count any
-- more.
-- Locks: steps, tasks. The caller has locked the task.
create or replace function tasker.last_steps_of(p_task uuid, p_now timestamptz) returns jsonb
language plpgsql as $$
declare
  v_failed int;
begin
  with failed as (
    update tasker.workflow_steps s set settled = 'o', updated_at = p_now from tasker.template_steps ts
    where s.task_uuid = p_task and s.state = 'error' and s.settled is null
      and ts.template_id = s.template_id and ts.ordinal = s.ordinal and ts.gates & 4096 <> 0
    returning 1
  )
  select count(*) into v_failed from failed;
  update tasker.tasks t set failed = t.failed - v_failed, done = t.done + v_failed
  where t.task_uuid = p_task and v_failed > 0;
  return (select jsonb_agg(jsonb_build_object('name', ts.name || coalesce('.' || nullif(r.runs, 1), ''),
      'ordinal', ts.ordinal, 'parents', '[]'::jsonb) order by ts.ordinal)
    from tasker.tasks t
    join tasker.template_steps ts on ts.template_id = t.template_id and ts.gates & 4096 <> 0
    cross join lateral (select 1 + count(*) from tasker.workflow_steps s
      where s.task_uuid = t.task_uuid and s.ordinal = ts.ordinal) as r (runs)
    where t.task_uuid = p_task);
end
$$;

-- The compensations of the complete steps of a task, as expand_step needs them: each waits for those of the
-- nearest steps below, also through steps without one. Where many steps meet in one without a compensation,
-- the edges would be the product of those above and below. If they are more than `p_most`, those above wait
-- for one of those below (their gate, the first in the graph), which waits for the others. Steps with the
-- same children are followed once. Mirrors tasker.engine.expansion.compensations; a test compares both.
create or replace function tasker.compensations_of(p_task uuid, p_most int default 10000) returns jsonb
language sql stable
set enable_hashjoin to on
set enable_nestloop to off
as $$
  with recursive undone as materialized (
    select s.workflow_step_uuid as step, s.name, s.ordinal, u.name as undo, u.ordinal as undo_ordinal
    from tasker.workflow_steps s
    join tasker.template_steps u on u.template_id = s.template_id and u.undoes = s.ordinal
    where s.task_uuid = p_task and s.state = 'complete'
  ), edges as materialized (
    select e.from_step_uuid as up, e.to_step_uuid as down from tasker.workflow_step_edges e
    where e.task_uuid = p_task
  ), alike as materialized (
    select row_number() over () as number, c.children, array_agg(c.undo) as undos
    from (select u.undo, array_agg(e.down order by e.down) as children
      from undone u join edges e on e.up = u.step group by u.undo) c
    group by c.children
  ), ways (number, step) as (
    select a.number, c from alike a cross join lateral unnest(a.children) c
    union
    select w.number, e.down from ways w join edges e on e.up = w.step
    where w.step not in (select u.step from undone u)
  ), waiting as (
    select n.undo, q.below from (
      select w.number, array_agg(b.undo order by b.ordinal) as below
      from ways w join undone b on b.step = w.step group by w.number) q
    join alike a on a.number = q.number cross join lateral unnest(a.undos) n (undo)
  ), crowds as materialized (
    select w.below, array_agg(w.undo) as undos,
      count(*) > 1 and count(*) * cardinality(w.below) > p_most as gated
    from waiting w group by w.below
  ), parents as (
    select n as undo, jsonb_agg(p) as names from (
      select distinct n, p from crowds c cross join lateral unnest(c.undos) n
      cross join lateral unnest(case when c.gated then c.below[:1] else c.below end) p
      union
      select c.below[1], p from crowds c cross join lateral unnest(c.below[2:]) p where c.gated) d
    group by n
  )
  select jsonb_agg(jsonb_build_object('name', u.undo, 'ordinal', u.undo_ordinal,
    'parents', jsonb_build_array(u.name) || coalesce(p.names, '[]')) order by u.ordinal desc)
  from undone u left join parents p on p.undo = u.undo
$$;
