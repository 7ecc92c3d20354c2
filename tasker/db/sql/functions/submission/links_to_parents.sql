-- The links of tasks that are about to be created, by task: {step, task, token, index, depth}; null for one
-- that would be more than `p_max_depth` links below a task that no step started. A parent that this database
-- does not have is that of a handler of another one: no link.
-- p_tasks: as submit_v1; a task without `parent` has no link
create or replace function tasker.links_to_parents(p_tasks jsonb, p_max_depth int) returns jsonb
language sql stable as $$
  select coalesce(jsonb_object_agg(g.id, case when d.depth <= p_max_depth
    then g.parent || jsonb_build_object('task', d.task, 'depth', d.depth) end), '{}')
  from jsonb_to_recordset(p_tasks) as g (id uuid, parent jsonb)
  cross join lateral (select (left(g.parent->>'step', 30) || '000000')::uuid as task) p
  cross join lateral (select p.task, 1 + coalesce((select l.depth from tasker.task_links l
    where l.child_uuid = p.task), 0) as depth) d
  where g.parent is not null and exists (select from tasker.workflow_steps s
    where s.workflow_step_uuid = (g.parent->>'step')::uuid)
$$;

-- A field of the answer of submit_v1: tasks that were not created because of their depth.
create or replace function tasker.too_deep(p_links jsonb) returns jsonb
language plpgsql immutable as $$
begin
  if p_links = '{}' then
    return '{}';
  end if;
  return (select case when count(*) = 0 then '{}' else jsonb_build_object('too_deep', jsonb_agg(l.key)) end
    from jsonb_each(p_links) l where l.value = 'null');
end
$$;
