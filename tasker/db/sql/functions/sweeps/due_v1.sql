-- Promotes steps whose retry is due: waiting_for_retry -> pending -> enqueued, or handed off to the caller. Takes the
-- longest due steps of the tasks that it can lock (SKIP LOCKED), so any number of processes may run it, and a locked
-- task delays only its own retries.
-- Locks: tasks (skips), then as advance_v1.
-- p_args: as advance_v1 without items, and limit.
-- Returns: as advance_v1, with promoted, next_due_ms (null: nothing waits; 0: more may be due) and passed_over (true:
--   steps of tasks locked by other transactions are due).
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
  v_items jsonb;
  v_answer jsonb := '{}';
  v_next timestamptz;
begin
  select jsonb_agg(jsonb_build_object('s', q.workflow_step_uuid, 't', q.task_uuid, 'kind', 'promote',
    'k', q.claim_token)) into v_items   -- the token: a later failure of the same step is not due yet
  from (select s.workflow_step_uuid, s.task_uuid, s.claim_token
        from tasker.workflow_steps s join tasker.tasks t on t.task_uuid = s.task_uuid
        where s.due_at is not null and s.due_at <= v_now and s.state = 'waiting_for_retry' and not t.complete
        order by s.due_at limit v_limit for no key update of t skip locked) q;
  if v_items is not null then
    v_answer := tasker.advance_v1(p_args || jsonb_build_object('items', v_items, 'wait', false));
    v_answer := v_answer || jsonb_build_object('promoted', jsonb_array_length(v_items)
      - (select count(*) from jsonb_object_keys(coalesce(nullif(v_answer->'verdicts', 'null'), '{}'))));
  end if;
  if jsonb_array_length(v_items) = v_limit then
    v_next := v_now;
  else
    select min(s.due_at) into v_next from tasker.workflow_steps s where s.due_at > v_now;
    if exists (select from tasker.workflow_steps s where s.due_at <= v_now and s.state = 'waiting_for_retry') then
      v_answer := v_answer || '{"passed_over": true}';
    end if;
  end if;
  return (v_answer - 'verdicts') || case when v_next is null then '{}' else jsonb_build_object('next_due_ms',
    greatest(0, ceil(extract(epoch from v_next - v_now) * 1000))) end;
end
$$;
