-- The inputs of the handlers of these steps, up to `max_bytes` (16 MiB; at least those of one step); the caller
-- requests the rest in further calls.
-- p_args: {steps: [uuid...], own: [uuid...]: steps whose own inputs did not fit into the answer that claimed them,
--   describe: true if an earlier answer could not be read: only sizes are returned, max_bytes}
-- Returns: as tasker.shared_inputs, own: as tasker.own_inputs, rest: [steps and own that are left]
create or replace function tasker.inputs_v1(p_args jsonb) returns jsonb
language plpgsql stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set jit to off
as $$
declare
  v_steps constant uuid[] := array(select jsonb_array_elements_text(p_args->'steps')::uuid);
  v_max constant bigint := coalesce((p_args->>'max_bytes')::bigint, 16777216);
  v_beyond uuid[];
  v_answer jsonb;
begin
  if p_args ? 'describe' then
    return jsonb_build_object('too_large', tasker.too_large(v_steps));
  end if;
  if cardinality(v_steps) > 1 then
    v_beyond := tasker.cut_by_bytes(v_steps, v_max);
  end if;
  v_answer := tasker.shared_inputs(v_steps[:cardinality(v_steps) - coalesce(cardinality(v_beyond), 0)]);
  if v_beyond is not null then
    v_answer := v_answer || jsonb_build_object('rest', to_jsonb(v_beyond));
  end if;
  if p_args ? 'own' then
    v_answer := v_answer || jsonb_build_object('own',
      tasker.own_inputs(array(select jsonb_array_elements_text(p_args->'own')::uuid), v_max));
  end if;
  return v_answer;
end
$$;
