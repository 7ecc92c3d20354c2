-- Adds items of a fan-out that is planned: in slices, before open_fan_out_v1. Repeating it changes nothing.
-- p_args: {step, token, items: [[index, input]]}
-- Returns: {}
create or replace function tasker.add_fan_out_items_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
begin
  perform tasker.require_read_committed();
  insert into tasker.fan_out_items (workflow_step_uuid, token, index, input)
  select (p_args->>'step')::uuid, (p_args->>'token')::bigint, (i->>0)::int, i->1
  from jsonb_array_elements(p_args->'items') i order by 3
  on conflict do nothing;
  return '{}';
end
$$;

-- Opens the fan-out of a suspended step whose items have been added: from now on children are started. The
-- template of the children is chosen once.
-- Locks: task of the step, family.
-- p_args: {step, token, task, template (of the children), is_list, collects, total, max_parallel, tolerated,
--   max_depth, max_descendants}
-- Returns: {opened: boolean}: false if the step does not wait with this token any more, or another process
--   was faster; {too_deep: depth} or {too_many: number of descendants} if it must not be opened
create or replace function tasker.open_fan_out_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_step constant uuid := (p_args->>'step')::uuid;
  v_token constant bigint := (p_args->>'token')::bigint;
  v_task constant uuid := (p_args->>'task')::uuid;
  v_total constant int := (p_args->>'total')::int;
  v_most constant int not null := (p_args->>'max_descendants')::int;
  v_depth int;
  v_root uuid := v_task;
  v_parent uuid;
  v_descendants int;
begin
  perform tasker.require_read_committed();
  perform from tasker.tasks t where t.task_uuid = v_task for no key update;
  update tasker.step_waits w set probed = true
  where w.workflow_step_uuid = v_step and w.token = v_token and w.kind = 'c' and w.ended_at is null
    and not w.probed;
  if not found then
    return '{"opened": false}';
  end if;
  v_depth := 1 + coalesce((select l.depth from tasker.task_links l where l.child_uuid = v_task), 0);
  if v_depth > tasker.required(p_args, 'max_depth')::int then
    update tasker.step_waits w set probed = false where w.workflow_step_uuid = v_step and w.token = v_token;
    return jsonb_build_object('too_deep', v_depth);
  end if;
  loop   -- as many links as the depth allows
    select l.parent_task into v_parent from tasker.task_links l where l.child_uuid = v_root;
    exit when not found;
    v_root := v_parent;
  end loop;
  insert into tasker.task_families as f (root_uuid, descendants) values (v_root, v_total)
  on conflict (root_uuid) do update set descendants = f.descendants + v_total
  returning f.descendants into v_descendants;
  if v_descendants > v_most then
    update tasker.task_families f set descendants = f.descendants - v_total where f.root_uuid = v_root;
    update tasker.step_waits w set probed = false where w.workflow_step_uuid = v_step and w.token = v_token;
    return jsonb_build_object('too_many', v_descendants);
  end if;
  insert into tasker.fan_outs (workflow_step_uuid, token, task_uuid, template_id, depth, is_list, collects,
    total, max_parallel, tolerated, opened_at)
  values (v_step, v_token, v_task, (p_args->>'template')::int, v_depth, (p_args->>'is_list')::boolean,
    (p_args->>'collects')::boolean, v_total, (p_args->>'max_parallel')::int, (p_args->>'tolerated')::int,
    tasker.now());
  return '{"opened": true}';
end
$$;
