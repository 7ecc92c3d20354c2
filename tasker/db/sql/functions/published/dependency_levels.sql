-- The depth of each step of a task: 0 without parents, else one more than the deepest parent. Steps of one
-- level may run at the same time. Each pair of step and level is followed once, so converging paths cost
-- nothing extra, and a cycle terminates.
create or replace function tasker.calculate_dependency_levels(input_task_uuid uuid)
returns table (workflow_step_uuid uuid, dependency_level int)
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  with recursive edge as materialized (
    select e.from_step_uuid as parent, e.to_step_uuid as child from tasker.workflow_step_edges e
    where e.task_uuid = $1
  ), children as materialized (
    select coalesce(jsonb_object_agg(e.parent, e.steps), '{}') as of_step
    from (select e.parent, jsonb_agg(e.child) as steps from edge e group by e.parent) e
  ), step as materialized (
    select s.workflow_step_uuid as step from tasker.workflow_steps s where s.task_uuid = $1
  ), placed as (
    select s.step, 0 as level from (select s.step from step s except select e.child from edge e) s
    union
    select c.step::uuid, p.level + 1 from placed p
    cross join jsonb_array_elements_text((select children.of_step from children)->p.step::text) as c (step)
    where p.level < (select count(*) from step)
  )
  select p.step, max(p.level) from placed p group by p.step order by 2, 1
$$;

-- The level of one step; null if there is no such step.
create or replace function tasker.calculate_step_depth(input_step_uuid uuid)
returns int language sql stable as $$
  select l.dependency_level from tasker.workflow_steps s
  cross join lateral tasker.calculate_dependency_levels(s.task_uuid) l
  where s.workflow_step_uuid = $1 and l.workflow_step_uuid = $1
$$;
