-- Continues one running replay as far as its rate allows: resets the failed steps of the next tasks through
-- the ordinary queues, closes their entries, and stores the progress, all in this transaction. Any process
-- may call it: a command that follows the replay, or a sweep. If several replays run, the one that was
-- continued longest ago is next. A replay that another transaction has locked is skipped; a locked task is
-- replayed when it is free; unused time is made up for by at most five seconds. A call resets about `steps`
-- steps, and at least those of one task.
-- Locks: replay (skips), tasks (skips), then as advance_v1, then its items, dead letters.
-- p_args: {replay (null: any), steps, window, ...}.
-- Returns: as advance_v1, with {replay, done, left} ({} if there is no replay to continue).
create or replace function tasker.replay_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_most constant int := 100;
  v_steps constant int not null := (p_args->>'steps')::int;
  v_replay tasker.dlq_replays;
  v_from timestamptz;
  v_due int;
  v_positions int[];   -- of the next items: later ones are not read
  v_locked uuid[];
  v_items jsonb;
  v_answer jsonb := '{}';
  v_replayed int;
  v_skipped int;
begin
  perform tasker.require_read_committed();
  select * into v_replay from tasker.dlq_replays r
  where r.state = 'running' and (p_args->>'replay' is null or r.replay_uuid = (p_args->>'replay')::uuid)
    and r.paced_at + interval '1 second' / r.rate_per_second <= v_now
  order by r.looked_at, r.created_at limit 1 for update skip locked;
  if v_replay.replay_uuid is null then
    return '{}';
  end if;

  v_from := greatest(v_replay.paced_at,
    v_now - greatest(interval '5 seconds', interval '1 second' / v_replay.rate_per_second));
  v_due := least(v_most, floor(extract(epoch from v_now - v_from) * v_replay.rate_per_second + 0.000001));
  v_positions := array(select i.position from tasker.dlq_replay_items i
    where i.replay_uuid = v_replay.replay_uuid and i.outcome is null order by i.position limit v_most);
  v_locked := array(select q.task_uuid from (select t.task_uuid from tasker.dlq_replay_items i
    join tasker.tasks t on t.task_uuid = i.task_uuid
    where i.replay_uuid = v_replay.replay_uuid and i.position = any (v_positions)
    order by i.position limit v_due for no key update of t skip locked) q);
  v_locked := array(select q.task_uuid from (
    select t.task_uuid, sum(t.failed) over (order by u.n) - t.failed as before_it
    from unnest(v_locked) with ordinality u (task, n) join tasker.tasks t on t.task_uuid = u.task) q
    where q.before_it < v_steps);

  select jsonb_agg(jsonb_build_object('s', r.step_uuid, 't', e.task_uuid, 'kind', 'reset',
      'n', jsonb_build_object(
      'actor', v_replay.actor, 'reason', v_replay.reason, 'replay', v_replay.replay_uuid))) into v_items
  from tasker.dlq_replay_items i
  join tasker.tasks_dlq e on e.dlq_entry_uuid = i.dlq_entry_uuid and e.resolution_status = 'pending'
  join tasker.tasks t on t.task_uuid = i.task_uuid and t.state <> 'cancelled'
  cross join lateral tasker.replayable(i.task_uuid, v_replay.fingerprint) r
  where i.replay_uuid = v_replay.replay_uuid and i.position = any (v_positions)
    and i.task_uuid = any (v_locked) and not r.once;
  if v_items is not null then
    v_answer := tasker.advance_v1(p_args - '{replay,steps}'::text[]
      || jsonb_build_object('items', v_items, 'grants', false));
  end if;

  with items as (
    update tasker.dlq_replay_items i set outcome = case when q.task is null then 'skipped'
      else 'replayed' end,
      detail = case when q.task is null then 'nothing of it is to be reset any more' end
    -- and tasks deleted since
    from (select unnest(v_locked) as task union select i.task_uuid from tasker.dlq_replay_items i
      where i.replay_uuid = v_replay.replay_uuid and i.position = any (v_positions)
        and not exists (select from tasker.tasks t where t.task_uuid = i.task_uuid)) l
      left join (select distinct (x->>'t')::uuid as task from jsonb_array_elements(v_items) x) q
      on q.task = l.task
    where i.replay_uuid = v_replay.replay_uuid and i.position = any (v_positions) and i.task_uuid = l.task
    returning i.dlq_entry_uuid, i.outcome
  ), closed as (
    update tasker.tasks_dlq e set resolution_status = 'manually_resolved', resolved_at = v_now,
      updated_at = v_now,
      resolved_by = v_replay.actor, resolution_notes = coalesce(e.resolution_notes || E'\n', '') || 'replayed'
        || coalesce(': ' || nullif(v_replay.reason, ''), ''),
      metadata = coalesce(e.metadata, '{}')
        || jsonb_build_object('replay_uuid', v_replay.replay_uuid, 'replayed_at', v_now)
    from items i where i.outcome = 'replayed' and e.dlq_entry_uuid = i.dlq_entry_uuid
  )
  select count(*) filter (where i.outcome = 'replayed'), count(*) filter (where i.outcome = 'skipped')
  into v_replayed, v_skipped from items i;

  update tasker.dlq_replays r set replayed = r.replayed + v_replayed, skipped = r.skipped + v_skipped,
    looked_at = clock_timestamp(), paced_at = v_from + v_replayed * interval '1 second' / r.rate_per_second,
    state = case when r.replayed + r.skipped + v_replayed + v_skipped = r.total then 'complete'
      else r.state end,
    finished_at = case when r.replayed + r.skipped + v_replayed + v_skipped = r.total then v_now end
  where r.replay_uuid = v_replay.replay_uuid;
  return v_answer - 'verdicts'
    || jsonb_build_object('replay', v_replay.replay_uuid, 'done', v_replayed + v_skipped,
    'left', v_replay.total - v_replay.replayed - v_replay.skipped - v_replayed - v_skipped);
end
$$;
