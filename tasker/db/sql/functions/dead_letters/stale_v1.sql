-- One slice of the search for stale tasks: each becomes a dead letter, and ends in `error` with its
-- unfinished steps unless it would continue by itself; all in this transaction. Skips tasks that another
-- transaction has locked, and judges again under the lock, so a task that moves meanwhile is not changed. A
-- task with a pending entry gets no second one.
-- Locks: turn (skips), tasks (skips), then as advance_v1.
-- p_args: {every_ms: search only if no process has searched for this time (absent in a slice that follows
--   another), after: task uuid, limit, dry_run, to_error, to_dlq, channel (notified of each stale task; null:
--   none), worker, settings: {column of staleness_settings: value}}
-- Returns: {searched: false}, or {searched: true, last: task uuid|null, stale: [{task_uuid, namespace_name,
--   task_name, current_state, time_in_state_minutes, threshold_minutes, reason, signal, action_taken,
--   moved_to_dlq, transition_success}]} and the answer of advance_v1.
create or replace function tasker.stale_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_dry constant boolean := coalesce((p_args->>'dry_run')::boolean, false);
  v_to_error constant boolean := coalesce((p_args->>'to_error')::boolean, true);
  v_to_dlq constant boolean := coalesce((p_args->>'to_dlq')::boolean, true);
  v_found uuid[];
  v_locked uuid[];
  v_limit constant int not null := (p_args->>'limit')::int;
  v_stale jsonb;
  v_items jsonb;
  v_answer jsonb := '{}';
begin
  perform tasker.require_read_committed();
  if p_args ? 'every_ms' and not tasker.staleness_turn(tasker.ms((p_args->>'every_ms')::numeric),
    p_args->'settings', v_now) then
    return '{"searched": false}';
  end if;

  if not tasker.stale_candidates() then
    return '{"searched": true}';
  end if;
  v_found := array(select s.task_uuid from tasker.stale_tasks(null, (p_args->>'after')::uuid, v_limit) s);
  if v_found = '{}' then
    return '{"searched": true}';
  end if;
  v_locked := case when v_dry then v_found
    else array(select q.task_uuid from (select t.task_uuid from tasker.tasks t
    where t.task_uuid = any (v_found) and not t.complete
    order by t.task_uuid for no key update skip locked) q) end;
  -- a later statement: judged under the locks
  v_stale := tasker.staleness_actions(v_locked, v_to_error, v_to_dlq);

  if not v_dry then
    insert into tasker.tasks_dlq (task_uuid, original_state, dlq_reason, dlq_timestamp, task_snapshot,
      created_at, updated_at)
    select (x->>'task_uuid')::uuid, x->>'current_state', (x->>'reason')::tasker.dlq_reason, v_now,
      tasker.dlq_snapshot((x->>'task_uuid')::uuid) || jsonb_strip_nulls(jsonb_build_object(
        'time_in_state_minutes', x->'time_in_state_minutes', 'threshold_minutes', x->'threshold_minutes',
        'signal', x->'signal', 'step', x->'step')), v_now, v_now
    from jsonb_array_elements(v_stale) x where (x->>'moved_to_dlq')::boolean
    order by 1 on conflict (task_uuid) where resolution_status = 'pending' do nothing;

    v_items := tasker.expire_items(array(select (x->>'task_uuid')::uuid from jsonb_array_elements(v_stale) x
      where (x->>'transition_success')::boolean), v_stale);
    if v_items is not null then
      v_answer := tasker.advance_v1(p_args || jsonb_build_object('items', v_items, 'on_blocked', 'give_up',
        'dead_letters', false, 'grants', false,
        'worker', p_args->'worker', 'note', '{"reason": "staleness_timeout"}'::jsonb));
      perform pg_notify('tasker_cancelled', q.task) from (select distinct i->>'t' as task
        -- workers stop their handlers
        from jsonb_array_elements(v_items) i where (i->>'running')::boolean) q;
      update tasker.tasks_dlq e set fingerprints = (tasker.dlq_fingerprints(e.task_uuid)).fingerprints
      where e.resolution_status = 'pending' and e.task_uuid = any (array(
        select (x->>'task_uuid')::uuid from jsonb_array_elements(v_stale) x
        where (x->>'transition_success')::boolean));
    end if;
    perform pg_notify(p_args->>'channel', x::text) from jsonb_array_elements(v_stale) x
    where p_args->>'channel' is not null;
  end if;
  return v_answer - 'verdicts' || jsonb_build_object('searched', true, 'stale', v_stale,
    'last', case when cardinality(v_found) = v_limit then v_found[v_limit] end);
end
$$;

-- Items for advance_v1 that end stale tasks: every step that has not ended, so that none is left to run, with
-- the reason as its failure; `running` marks the steps that a worker has.
create or replace function tasker.expire_items(p_tasks uuid[], p_stale jsonb) returns jsonb
language sql stable
as $$
  select jsonb_agg(jsonb_build_object('s', s.workflow_step_uuid, 't', s.task_uuid, 'kind', 'expire',
    'running', s.state = 'in_progress',
    'e', jsonb_build_object('error_type', 'staleness_timeout', 'retryable', false,
      'message', format('nothing moved the task for %s minutes (%s), and %s is the limit',
        x->>'time_in_state_minutes', x->>'signal', x->>'threshold_minutes'),
      'attempt', s.attempts, 'fingerprint', left(md5('staleness_timeout ' || (x->>'signal')), 16))))
  from jsonb_array_elements(p_stale) x
  join tasker.workflow_steps s on s.task_uuid = (x->>'task_uuid')::uuid
  where s.task_uuid = any (p_tasks) and tasker.step_path(s.state, 'expire') is not null
    and (s.state <> 'pending' or s.unmet = 0)
$$;
