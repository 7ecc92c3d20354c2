-- Stores a compiled template by its content, with its steps and edges as rows; the identifier of what is there already.
create or replace function tasker.store_template(p_hash text, p_plan jsonb, p_namespace int, p_named_task uuid) returns int
language plpgsql as $$
declare
  v_prefix constant text := (p_plan->>'namespace') || '.' || (p_plan->>'name') || '.';
  v_template int;
begin
  insert into tasker.templates (hash, namespace_id, named_task_uuid, step_count, static_count, roots, plan)
  select p_hash, p_namespace, p_named_task, count(*), count(*) filter (where (s->>'static')::boolean),
    coalesce(array_agg((s->>'ordinal')::int order by (s->>'ordinal')::int)
      filter (where (s->>'static')::boolean and jsonb_array_length(s->'depends_on') = 0), '{}'), p_plan
  from jsonb_array_elements(p_plan->'steps') s
  on conflict (hash) do nothing returning template_id into v_template;
  if v_template is null then
    select template_id into v_template from tasker.templates where hash = p_hash;
    return v_template;
  end if;

  insert into tasker.named_steps (name, system_name)
  select s->>'name', v_prefix || (s->>'name') from jsonb_array_elements(p_plan->'steps') s order by 2
  on conflict (system_name) do nothing;

  insert into tasker.template_steps (template_id, ordinal, name, named_step_uuid, step_type, handler, is_static, unmet,
    max_attempts, retryable, timeout_ms, on_worker_lost, ancestors)
  select v_template, (s->>'ordinal')::int, s->>'name', ns.named_step_uuid, s->>'type', s->'handler'->>'callable',
    (s->>'static')::boolean, jsonb_array_length(s->'depends_on'), greatest((s->'retry'->>'max_attempts')::int, 1),
    (s->'retry'->>'retryable')::boolean, ((s->>'timeout_seconds')::float8 * 1000)::bigint, s->>'on_worker_lost',
    array(select (a->>'ordinal')::int from jsonb_array_elements(p_plan->'steps') a where s->'ancestors' ? (a->>'name'))
  from jsonb_array_elements(p_plan->'steps') s
  join tasker.named_steps ns on ns.system_name = v_prefix || (s->>'name');

  insert into tasker.template_edges (template_id, from_ordinal, to_ordinal)
  select v_template, f.ordinal, t.ordinal
  from jsonb_array_elements(p_plan->'steps') s
  cross join lateral jsonb_array_elements_text(s->'depends_on') d (name)
  join tasker.template_steps t on t.template_id = v_template and t.name = s->>'name' and t.is_static
  join tasker.template_steps f on f.template_id = v_template and f.name = d.name and f.is_static;
  return v_template;
end
$$;
