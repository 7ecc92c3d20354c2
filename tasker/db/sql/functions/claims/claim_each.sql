-- Claims steps one by one, after the database refused a value of one of them (SQLSTATE classes 22, 23, 54)
-- and with it the claim of all. The inputs of the handlers are not part of the answer: the worker reads them
-- with tasker.inputs_v1.
-- p_args: as claim_v1.
-- Returns: as claim_v1, and unclaimable: [{step, task, attempt, reason}], which are still enqueued.
create or replace function tasker.claim_each(p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_args jsonb := (p_args - 'each')
    || jsonb_build_object('known', (select jsonb_agg(s.task_uuid) from tasker.workflow_steps s
    where s.workflow_step_uuid in (select jsonb_array_elements_text(p_args->'steps')::uuid)));
  v_step text;
  v_part jsonb;
  v_answer jsonb :=
    '{"claims": [], "send": [], "verdicts": {}, "dead": 0, "tasks": {}, "results": {}, "unclaimable": []}';
begin
  -- An invalid argument of the caller raises here, so that no step fails for it.
  perform (p_args->>'worker')::uuid, (p_args->>'timeout_ms')::bigint, (p_args->>'grace_ms')::bigint,
    (p_args->>'window')::int, (p_args->>'max_claim_bytes')::bigint,
    array(select n::int from jsonb_array_elements_text(p_args->'namespace_ids') n);
  for v_step in select s from jsonb_array_elements_text(p_args->'steps') s order by s loop
    begin
      v_part := jsonb_strip_nulls(tasker.claim_v1(v_args
          || jsonb_build_object('steps', jsonb_build_array(v_step))));
      v_answer := v_answer || (v_part - '{claims,send,later,verdicts,dead}'::text[]) || jsonb_build_object(
        'claims', v_answer->'claims' || coalesce(v_part->'claims', '[]'),
        'send', v_answer->'send' || coalesce(v_part->'send', '[]'),
        'later', coalesce(v_answer->'later', '{}') || coalesce(v_part->'later', '{}'),
        'verdicts', v_answer->'verdicts' || coalesce(v_part->'verdicts', '{}'),
        'dead', (v_answer->>'dead')::int + coalesce((v_part->>'dead')::int, 0));
    exception when data_exception or integrity_constraint_violation or program_limit_exceeded then
      v_answer := jsonb_insert(v_answer, '{unclaimable,0}',
        (select jsonb_build_object('step', s.workflow_step_uuid,
        'task', s.task_uuid, 'attempt', s.attempts + 1, 'reason', sqlstate || ': ' || sqlerrm)
        from tasker.workflow_steps s where s.workflow_step_uuid = v_step::uuid));
    end;
  end loop;
  return v_answer;
end
$$;
