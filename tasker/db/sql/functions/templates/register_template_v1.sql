-- Stores a compiled template and makes it the current one of its name and version. Idempotent.
-- Its schedules become the declared ones of the template, unless a higher version is registered
-- (declare_schedules).
-- Locks: shared, that of an apply; name and version of the template, schedules.
-- p_args: {hash, plan, content: hash of the author's text, force, adopt}. `plan` and `hash` include the
--   fleet's defaults.
-- Returns: {template, hash, namespace, changed}: with `adopt`, those of the existing template with the same
--   content, whatever its defaults; or {template, refused: true} if the name and version exist with other
--   content and `force` is not set; or {unknown_limits, known_limits: [name...]} if a step names a limit of
--   no configuration.
create or replace function tasker.register_template_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_plan constant jsonb := p_args->'plan';
  v_content constant text := coalesce(p_args->>'content', p_args->>'hash');
  v_namespace constant int := tasker.namespace_id(v_plan->>'namespace');
  v_template int;
  v_named_task tasker.named_tasks;
  v_unknown text[];
begin
  -- An unchanged template needs no lock: else an open transaction of a client that submits would make others
  -- wait.
  select * into v_named_task from tasker.named_tasks
  where namespace_id = v_namespace and name = v_plan->>'name' and version = v_plan->>'version';
  if v_named_task.content = v_content then
    select t.template_id into v_template from tasker.templates t
    where t.template_id = v_named_task.template_id
      and ((p_args->>'adopt')::boolean or t.hash = p_args->>'hash');
    if v_template is not null then
      return jsonb_build_object('template', v_template, 'namespace', v_namespace,
        'hash', (select t.hash from tasker.templates t where t.template_id = v_template), 'changed', false);
    end if;
  end if;

  v_unknown := tasker.unknown_limits(v_plan);
  if cardinality(v_unknown) > 0 then
    return jsonb_build_object('unknown_limits', to_jsonb(v_unknown), 'known_limits', (
      select coalesce(jsonb_agg(r.name order by r.name), '[]') from tasker.limit_rules r
      where r.declared_at is not null));
  end if;
  perform pg_advisory_xact_lock_shared(0, -2);  -- apply_templates_v1
  insert into tasker.named_tasks (namespace_id, name, version)
  values (v_namespace, v_plan->>'name', v_plan->>'version')
  on conflict (namespace_id, name, version) do nothing;
  select * into v_named_task from tasker.named_tasks
  where namespace_id = v_namespace and name = v_plan->>'name' and version = v_plan->>'version' for update;

  if v_named_task.content = v_content and (p_args->>'adopt')::boolean then
    v_template := v_named_task.template_id;
  elsif v_named_task.content <> v_content and not coalesce((p_args->>'force')::boolean, false) then
    return jsonb_build_object('template', v_named_task.template_id, 'refused', true);
  else
    v_template := tasker.store_template(p_args->>'hash', v_plan, v_namespace, v_named_task.named_task_uuid);
  end if;
  update tasker.named_tasks set template_id = v_template, content = v_content,
    description = v_plan->>'description', identity_strategy = v_plan->>'identity_strategy',
    metadata = coalesce(v_plan->'metadata', '{}'),
    updated_at = case when content is distinct from v_content then tasker.now() else updated_at end
  where named_task_uuid = v_named_task.named_task_uuid and template_id is distinct from v_template;
  if v_named_task.template_id is distinct from v_template then
    perform tasker.declare_schedules(v_plan, v_namespace);
  end if;
  perform tasker.set_limits(v_plan);
  if jsonb_typeof(v_plan->'fairness') = 'object' then
    perform tasker.make_fair(v_namespace, v_plan->'fairness');
  end if;
  return jsonb_build_object('template', v_template, 'namespace', v_namespace,
    'hash', (select t.hash from tasker.templates t where t.template_id = v_template),
    'changed', v_named_task.template_id is distinct from v_template);
end
$$;

-- Finds or creates a namespace; exactly one row under any concurrency.
create or replace function tasker.namespace_id(p_name text) returns int
language plpgsql as $$
declare
  v_id int;
begin
  select namespace_id into v_id from tasker.task_namespaces where name = p_name;
  if v_id is null then
    insert into tasker.task_namespaces (name) values (p_name) on conflict (name) do nothing
    returning namespace_id into v_id;
    if v_id is null then
      select namespace_id into v_id from tasker.task_namespaces where name = p_name;
    end if;
  end if;
  return v_id;
end
$$;
