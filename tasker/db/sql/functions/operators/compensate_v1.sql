-- Undoes the effects of the complete steps of a task that failed, as an operator action.
-- Locks: task, then as begin_phase.
-- p_args: {task, worker, reason, actor}, and what begin_phase needs.
-- Returns: {compensates: true, from} and as begin_phase; {compensates: false, state, outcome, undoable} if
-- the
--   task has not failed, is or was compensated, or has no complete step with a compensation; {missing: true}.
create or replace function tasker.compensate_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := tasker.now();
  v_note constant jsonb := jsonb_strip_nulls(jsonb_build_object('worker', p_args->'worker',
      'reason', p_args->'reason', 'actor', p_args->'actor'));
  v_task tasker.tasks;
  v_undoable boolean;
  v_path text;
begin
  perform tasker.require_read_committed();
  select * into v_task from tasker.tasks t where t.task_uuid = (p_args->>'task')::uuid for no key update;
  if v_task.task_uuid is null then
    return '{"missing": true}';
  end if;
  v_undoable := tasker.compensations_of(v_task.task_uuid) is not null;
  if not tasker.task_is_blocked(v_task.state) or v_task.outcome is not null
      or v_task.active > 0 or not v_undoable then
    return jsonb_build_object('compensates', false, 'state', v_task.state, 'outcome', v_task.outcome,
      'undoable', v_undoable);
  end if;
  v_path := tasker.path_code(v_task.state) || tasker.task_path(v_task.state, 'waiting_for_dependencies');
  update tasker.tasks t set state = tasker.path_end(v_path), complete = false, completed_at = null,
    sort_key = t.sort_key + tasker.path_length(v_path), updated_at = v_now
  where t.task_uuid = v_task.task_uuid;
  insert into tasker.task_moves (task_uuid, path, sort_key, processor_uuid, metadata, created_at)
  values (v_task.task_uuid, v_path, v_task.sort_key + tasker.path_length(v_path),
    (p_args->>'worker')::uuid, v_note, v_now);
  return jsonb_build_object('compensates', true, 'from', v_task.state)
    || tasker.begin_phase(jsonb_build_object(v_task.task_uuid, 'c'),
      p_args || jsonb_build_object('note', v_note), v_now);
end
$$;
