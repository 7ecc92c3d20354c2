-- The rest of a write, from its moves: the backlog of held steps, the counters and states of the tasks, the counters of
-- enqueued steps (these last: see count_enqueued). Answers as evaluate_tasks.
create or replace function tasker.settle_tasks(p_judged tasker.judged_change[], p_placed tasker.placed_step[], p_args jsonb,
  p_now timestamptz) returns jsonb
language plpgsql as $$
declare
  v_unheld uuid[];
  v_ended jsonb;
begin
  if exists (select from unnest(p_judged) j where j.from_state = 'pending')
     or exists (select from unnest(p_placed) p where p.place = 'hold') then
    v_unheld := tasker.keep_backlog(p_judged, p_placed, coalesce((p_args->>'ageing_s')::float8, 600), p_now);
  end if;

  -- a release alone changes no counter and no task
  select tasker.evaluate_tasks(array_agg(n.task_uuid), array_agg(n.done), array_agg(n.failed), array_agg(n.cancelled),
    array_agg(n.active), array_agg(n.retrying), array_agg(n.held), array_agg(n.started),
    coalesce(p_args->>'on_blocked', 'give_up'), (p_args->>'worker')::uuid, p_args->'note', p_now)
  into v_ended
  from (
    select m.task_uuid, sum(m.done)::int as done, sum(m.failed)::int as failed, sum(m.cancelled)::int as cancelled,
      sum(m.active)::int as active, sum(m.retrying)::int as retrying, sum(m.held)::int as held, sum(m.started)::int as started
    from (
      select j.task_uuid, tasker.step_is_done(j.to_state)::int as done,
        (j.to_state = 'error')::int - (j.from_state = 'error')::int as failed, (j.to_state = 'cancelled')::int as cancelled,
        -tasker.step_is_active(j.from_state)::int as active,
        (j.to_state = 'waiting_for_retry')::int - (j.from_state = 'waiting_for_retry')::int as retrying, 0 as held,
        0 as started
      from unnest(p_judged) j where not tasker.kind_leaves_task(j.kind)
      union all
      select p.task_uuid, 0, 0, 0, (p.place <> 'hold')::int, 0, (p.place = 'hold')::int, (p.place <> 'hold')::int
      from unnest(p_placed) p where p.place in ('claim', 'enqueue', 'hold') and p.from_state <> 'in_progress'
      union all
      select u, 0, 0, 0, 0, 0, -1, 0 from unnest(v_unheld) u
    ) m group by m.task_uuid
  ) n;

  perform tasker.count_enqueued(array_agg(m.namespace_id), array_agg(m.delta))
  from (
    select j.namespace_id, -1 as delta from unnest(p_judged) j where j.from_state = 'enqueued'
    union all
    select p.namespace_id, 1 from unnest(p_placed) p where p.place = 'enqueue'
  ) m having count(*) > 0;
  return v_ended;
end
$$;
