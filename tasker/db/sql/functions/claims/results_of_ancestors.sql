-- The steps whose results the handlers of these steps may read: all their ancestors in the template, once for
-- each task. Found by walking up from all steps together, because a chain of n steps has n squared over two
-- pairs of step and ancestor. Ancestors without a row are included; they have no result.
create or replace function tasker.results_of_ancestors(p_steps uuid[])
returns table (task_uuid uuid, ordinal int)
language plpgsql stable rows 10
set enable_seqscan to off
set enable_hashjoin to off
set enable_mergejoin to off
as $$
#variable_conflict use_column
begin
  return query with recursive wanted (task_uuid, template_id, ordinal) as (
    select s.task_uuid, s.template_id, p.ordinal from tasker.workflow_steps s
    join tasker.template_steps ts on ts.template_id = s.template_id and ts.ordinal = s.ordinal
    cross join lateral unnest(ts.parents) as p (ordinal)
    where s.workflow_step_uuid = any (p_steps)
    union
    select w.task_uuid, w.template_id, p.ordinal from wanted w
    join tasker.template_steps ts on ts.template_id = w.template_id and ts.ordinal = w.ordinal
    cross join lateral unnest(ts.parents) as p (ordinal)
  )
  select w.task_uuid, w.ordinal from wanted w;
end
$$;
