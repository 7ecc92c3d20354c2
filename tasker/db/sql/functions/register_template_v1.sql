-- Stores a compiled template by its content and points the named task at it. Idempotent.
-- p_args: {hash, plan, system_names: [..] by ordinal, force}. Answers {template, changed, refused}: `refused` when the
-- name and version exist with other content and `force` is not set.
create or replace function tasker.register_template_v1(p_args jsonb) returns jsonb
language plpgsql as $$
declare
  v_plan constant jsonb := p_args->'plan';
  v_namespace constant int := tasker.namespace_id(v_plan->>'namespace');
  v_template int;
  v_old int;
begin
  select template_id into v_template from tasker.templates where hash = p_args->>'hash';
  if v_template is null then
    insert into tasker.templates (hash, step_count, static_count, plan)
    values (p_args->>'hash', jsonb_array_length(v_plan->'steps'),
      (select count(*) from jsonb_array_elements(v_plan->'steps') s where (s->>'static')::boolean), v_plan)
    on conflict (hash) do nothing returning template_id into v_template;
    if v_template is null then
      select template_id into v_template from tasker.templates where hash = p_args->>'hash';
    else
      insert into tasker.named_steps (name, system_name)
      select s->>'name', (v_plan->>'namespace') || '.' || (v_plan->>'name') || '.' || (s->>'name')
      from jsonb_array_elements(v_plan->'steps') s order by 2 on conflict (system_name) do nothing;

      insert into tasker.template_steps (template_id, ordinal, name, named_step_uuid, step_type, handler, is_static, unmet,
        max_attempts, retryable, timeout_ms, on_worker_lost, ancestors)
      select v_template, (s->>'ordinal')::int, s->>'name', ns.named_step_uuid, s->>'type', s->'handler'->>'callable',
        (s->>'static')::boolean, jsonb_array_length(s->'depends_on'), greatest((s->'retry'->>'max_attempts')::int, 1),
        (s->'retry'->>'retryable')::boolean, ((s->>'timeout_seconds')::float8 * 1000)::bigint, s->>'on_worker_lost',
        array(select (a->>'ordinal')::int from jsonb_array_elements(v_plan->'steps') a
              where s->'ancestors' ? (a->>'name'))
      from jsonb_array_elements(v_plan->'steps') s
      join tasker.named_steps ns
        on ns.system_name = (v_plan->>'namespace') || '.' || (v_plan->>'name') || '.' || (s->>'name');

      insert into tasker.template_edges (template_id, from_ordinal, to_ordinal)
      select v_template, f.ordinal, t.ordinal
      from jsonb_array_elements(v_plan->'steps') s
      cross join lateral jsonb_array_elements_text(s->'depends_on') d (name)
      join tasker.template_steps t on t.template_id = v_template and t.name = s->>'name' and t.is_static
      join tasker.template_steps f on f.template_id = v_template and f.name = d.name and f.is_static;
    end if;
  end if;

  select template_id into v_old from tasker.named_tasks
  where namespace_id = v_namespace and name = v_plan->>'name' and version = v_plan->>'version' for update;
  if v_old is not null and v_old <> v_template and not coalesce((p_args->>'force')::boolean, false) then
    return jsonb_build_object('template', v_old, 'refused', true);
  end if;
  insert into tasker.named_tasks as n (namespace_id, name, version, description, identity_strategy, metadata, template_id)
  values (v_namespace, v_plan->>'name', v_plan->>'version', v_plan->>'description', v_plan->>'identity_strategy',
    coalesce(v_plan->'metadata', '{}'), v_template)
  on conflict (namespace_id, name, version) do update set template_id = excluded.template_id,
    description = excluded.description, identity_strategy = excluded.identity_strategy, metadata = excluded.metadata,
    updated_at = tasker.now()
    where n.template_id <> excluded.template_id;
  return jsonb_build_object('template', v_template, 'namespace', v_namespace, 'changed', v_old is distinct from v_template);
end
$$;
