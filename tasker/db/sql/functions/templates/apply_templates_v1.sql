-- Registers the templates of a plan, all or none, if the registered ones have not changed since it was made.
-- Locks: one apply at a time, beside no changed registration; name and version of the templates, schedules.
-- p_args: {state: that of registry_state for these templates, namespaces, names, registrations: [p_args of
--   register_template_v1]}
-- Returns: {registered: number}; or {changed: true} if the state is
--   another one; or {refusal: the answer that refuses one, place: its position from 0}.
create or replace function tasker.apply_templates_v1(p_args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $$
declare
  v_each record;
  v_answer jsonb;
  v_count int := 0;
begin
  perform pg_advisory_xact_lock(0, -2);
  if tasker.registry_state(array(select jsonb_array_elements_text(p_args->'namespaces')),
      array(select jsonb_array_elements_text(p_args->'names'))) <> p_args->>'state' then
    return '{"changed": true}';
  end if;
  for v_each in
    select r.value, r.place - 1 as place
    from jsonb_array_elements(p_args->'registrations') with ordinality as r (value, place)
    order by r.value->'plan'->>'namespace', r.value->'plan'->>'name', r.value->'plan'->>'version'
  loop
    v_answer := tasker.register_template_v1(v_each.value);
    if v_answer ? 'refused' or v_answer ? 'unknown_limits' then
      raise exception sqlstate 'TKREF';  -- takes back those before it
    end if;
    v_count := v_count + 1;
  end loop;
  return jsonb_build_object('registered', v_count);
exception when sqlstate 'TKREF' then
  return jsonb_build_object('refusal', v_answer, 'place', v_each.place);
end
$$;
