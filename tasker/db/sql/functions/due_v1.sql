-- Promotes steps whose retry is due: waiting_for_retry -> pending -> enqueued, or handed to the caller. Takes what it
-- can lock (SKIP LOCKED through advance_v1 with wait: false), so any number of processes may run it.
-- p_args: as advance_v1 without items, and limit. Answer: as advance_v1, with promoted and next_due_ms (null: nothing
-- waits).
create or replace function tasker.due_v1(p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_now constant timestamptz := tasker.now();
  v_items jsonb;
  v_answer jsonb := '{}';
  v_next timestamptz;
begin
  select jsonb_agg(jsonb_build_object('s', q.workflow_step_uuid, 't', q.task_uuid, 'kind', 'promote',
    'k', q.claim_token)) into v_items   -- the token: a later failure of the same step is not due yet
  from (select s.workflow_step_uuid, s.task_uuid, s.claim_token from tasker.workflow_steps s
        where s.due_at is not null and s.due_at <= v_now order by s.due_at limit coalesce((p_args->>'limit')::int, 100)) q;
  if v_items is not null then
    v_answer := tasker.advance_v1(p_args || jsonb_build_object('items', v_items, 'wait', false));
    v_answer := v_answer || jsonb_build_object('promoted', jsonb_array_length(v_items)
      - (select count(*) from jsonb_object_keys(coalesce(nullif(v_answer->'verdicts', 'null'), '{}'))));
  end if;
  select min(s.due_at) into v_next from tasker.workflow_steps s where s.due_at is not null;
  return (v_answer - 'verdicts') || case when v_next is null then '{}' else jsonb_build_object('next_due_ms',
    greatest(0, ceil(extract(epoch from v_next - v_now) * 1000))) end;
end
$$;
