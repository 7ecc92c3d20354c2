-- The gates of a step of a compiled template, as bits (template_steps.gates).
create or replace function tasker.gates_of(p_step jsonb) returns int
language sql immutable parallel safe as $$
  select case when jsonb_array_length(coalesce(nullif(p_step->'limits', 'null'), '[]')) > 0 then 1 else 0 end
    | case when (p_step->>'delay_seconds')::numeric > 0 or jsonb_typeof(p_step->'not_before') = 'object'
      then 4 else 0 end
    | case when coalesce(p_step->>'on_failure', 'fail_task') not in ('fail_task', 'compensate')
      then 16 else 0 end
    | case when p_step->>'on_failure' = 'compensate' then 8192 else 0 end
    | case when jsonb_typeof(p_step->'wait') = 'object' then 8 else 0 end
    | case when p_step->'wait'->>'on' = 'task' then 1024 else 0 end
    | case when (p_step->>'at_rest')::boolean then 4096 else 0 end
$$;
