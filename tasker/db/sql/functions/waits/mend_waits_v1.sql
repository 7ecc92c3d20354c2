-- Writes the timers that waits of suspended steps have lost (sweep_v1, `untimed`).
-- Locks: tasks (skips).
-- p_args: {steps: [uuid...]}
-- Returns: {mended: number}
create or replace function tasker.mend_waits_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_steps constant uuid[] := array(select jsonb_array_elements_text(p_args->'steps')::uuid);
  v_tasks uuid[];
  v_mended int;
begin
  perform tasker.require_read_committed();
  v_tasks := array(select t.task_uuid from tasker.tasks t
    where t.task_uuid = any (array(select distinct tasker.step_uuid(s, 0) from unnest(v_steps) s))
    order by t.task_uuid for no key update skip locked);
  insert into tasker.timers (subject, kind, due_at, task_uuid, token)
  select w.workflow_step_uuid, 'w', min(w.until), w.task_uuid, w.token
  from tasker.step_waits w
  where w.workflow_step_uuid = any (v_steps) and w.task_uuid = any (v_tasks) and w.ended_at is null
    and w.until is not null
  group by w.workflow_step_uuid, w.task_uuid, w.token
  on conflict (subject, kind) do nothing;
  get diagnostics v_mended = row_count;
  if v_mended > 0 then
    perform tasker.record_repairs_v1(jsonb_build_object('wait_timer_lost', v_mended));
  end if;
  return jsonb_build_object('mended', v_mended);
end
$$;
